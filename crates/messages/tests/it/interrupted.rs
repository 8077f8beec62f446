//! Passes that end in the middle.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
};

use crate::world::{HOUR, Inbox, MINUTE, Run, START, World};

#[test]
fn a_new_target_gets_what_settled_in_a_pass_that_was_killed_before_it_wrote() {
    let (world, inbox) = (World::new(1), Inbox::default());
    let project = &world.projects[0];
    for number in 0..4 {
        let failed = (number == 3).then(|| (0, "it is gone".to_owned()));
        let run = Run::of_main(number, 3, failed.into_iter().collect());
        world.import(project, &run, START.plus_ms(number * 24 * HOUR));
    }
    let now = START.plus_ms(3 * 24 * HOUR);
    assert!(world.unsettled(project) > 0);

    // The clock is read for the list of projects, for the project, and then, with everything settled, for the target.
    let reads = Cell::new(0);
    let clock = || {
        reads.set(reads.get() + 1);
        assert!(reads.get() < 3, "killed");
        now
    };
    let other: Inbox = Arc::new(Mutex::default());
    let killed = catch_unwind(AssertUnwindSafe(|| world.pass_by(&other, &clock)));
    assert!(killed.is_err());
    assert_eq!(world.unsettled(project), 0);
    assert!(other.lock().unwrap().is_empty());

    world.pass(&inbox, now.plus_ms(MINUTE));
    assert_eq!(inbox.lock().unwrap().len(), 1);
}
