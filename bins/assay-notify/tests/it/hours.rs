//! Quiet hours.

use assay_testkit::assert_contains;
use std::{fs, path::Path};

use crate::{
    delivery::{import, outcomes, pass, world},
    program::run,
};

/// A target in a file, with this line.
fn target(messages: &Path, quiet: &str) -> String {
    format!("[[target]]\nname = \"log\"\n{quiet}\nfile = {{ path = {messages:?}, format = \"json\" }}\n")
}

/// Quiet hours of the whole day but a minute that is not now.
fn quiet() -> String {
    let hour = (time::OffsetDateTime::now_utc().hour() + 12) % 24;
    format!("quiet = {{ from = \"{hour:02}:01\", to = \"{hour:02}:00\" }}")
}

#[test]
fn quiet_hours_hold_messages_back_and_what_is_over_by_then_is_not_sent() {
    let world = world();
    let messages = world.folder.path().join("messages");
    let quiet = target(&messages, &quiet());
    pass(&world, &target(&messages, ""));
    import(&world, 60, "c000000000", &outcomes(3, 1));
    pass(&world, &quiet);
    import(&world, 50, "d000000000", &outcomes(3, 0));
    import(&world, 40, "e000000000", &outcomes(3, 0));
    pass(&world, &quiet);
    assert!(!messages.exists());
    import(&world, 30, "f000000000", &outcomes(3, 0));
    pass(&world, &target(&messages, ""));
    let sent = fs::read_to_string(&messages).unwrap_or_default();
    assert!(
        !sent.contains("run_failed") && !sent.contains("test_broken"),
        "{sent}"
    );
}

#[test]
fn a_target_that_begins_in_its_quiet_hours_gets_what_happens_in_them_afterwards() {
    let world = world();
    let messages = world.folder.path().join("messages");
    pass(&world, &target(&messages, &quiet()));
    import(&world, 60, "c000000000", &outcomes(3, 1));
    pass(&world, &target(&messages, &quiet()));
    assert!(!messages.exists());
    // A preview shows what waits.
    let preview = run(&world, &target(&messages, &quiet()), &["--dry-run"]);
    let printed = String::from_utf8(preview.stdout).unwrap();
    assert_contains(
        &printed,
        "to log after its quiet hours:\nweb: 1 test broke since c0000000",
    );
    pass(&world, &target(&messages, ""));
    let sent = fs::read_to_string(&messages).unwrap();
    assert_contains(&sent, "1 test broke since c0000000");
}
