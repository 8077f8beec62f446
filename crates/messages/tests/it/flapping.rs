//! Tests that flap.

use assay_domain::timestamp::Timestamp;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::world::{HOUR, Inbox, MINUTE, Run, START, World};

#[test]
fn ten_flapping_tests_send_at_most_one_message_an_hour() {
    let (world, inbox) = (World::new(1), Inbox::default());
    let project = &world.projects[0];
    let mut random = StdRng::seed_from_u64(3);
    let run = |number: i64, failed: Vec<(usize, String)>| Run::of_main(number, 40, failed);
    let at = |number: i64| START.plus_ms(number * 10 * MINUTE);
    for number in 0..30 {
        world.import(project, &run(number, Vec::new()), at(number));
        world.pass(&inbox, at(number).plus_ms(MINUTE));
    }
    assert!(inbox.lock().unwrap().is_empty());
    // For a day, each of ten tests fails in a third of the runs, each with an error of its own.
    let mut failed_runs = 0;
    for number in 30..174 {
        let failed: Vec<(usize, String)> = (0..10)
            .filter(|_| random.random_bool(1.0 / 3.0))
            .map(|test| (test, format!("error {test}")))
            .collect();
        failed_runs += usize::from(!failed.is_empty());
        world.import(project, &run(number, failed), at(number));
        for minutes in [1, 6] {
            world.pass(&inbox, at(number).plus_ms(minutes * MINUTE));
        }
    }
    let times: Vec<Timestamp> = inbox.lock().unwrap().iter().map(|(at, _)| *at).collect();
    assert!(failed_runs > 100, "{failed_runs}");
    assert!(!times.is_empty());
    for pair in times.windows(2) {
        assert!(pair[1].since_ms(pair[0]) >= HOUR, "{times:?}");
    }
    println!("{failed_runs} failed runs, {} messages", times.len());
}
