//! `assay prune`.

use crate::{junit, world::World};

#[test]
fn what_is_past_the_retention_is_counted_then_deleted() {
    let world = World::new();
    let report = world.file(
        "r.xml",
        &junit::report("2020-01-01T00:00:00Z", &[("adds", true), ("sums", false)]),
    );
    let imported = world.import(&["--run-key", "old", &report]);
    assert!(
        imported["warnings"][0].as_str().unwrap().contains("retention"),
        "{imported}"
    );
    let fresh = world.file("f.xml", &junit::report("2020-01-01T00:00:00Z", &[("adds", true)]));
    let now = world
        .database
        .text("SELECT to_char(now() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
        .unwrap();
    world.import(&["--run-key", "new", "--started-at", &now, &fresh]);

    let counted = world.cli.json(&["prune", "--dry-run"]);
    assert_eq!(
        (&counted["runs"], &counted["results"], &counted["dryRun"]),
        (&1.into(), &2.into(), &true.into())
    );
    // Nobody is asked where no one can answer.
    let deleted = world.cli.json(&["prune"]);
    assert_eq!((&deleted["runs"], &deleted["dryRun"]), (&1.into(), &false.into()));
    assert_eq!(world.cli.json(&["prune"])["runs"], 0);
}
