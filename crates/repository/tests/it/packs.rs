//! Packs, the engine's input.

use crate::fixture::*;

#[test]
fn observations_equal_the_rows() {
    let world = World::new();
    let mut first = report("a")
        .at(2 * HOUR)
        .test("clean", "p")
        .test("recovered", "fp")
        .test("failed", "ft");
    first = first.test("off", "fs").test("cut", "i").test("untimed", "f");
    first.context.suite = Some("e2e".to_owned());
    first.tests[1].attempts[0].attempt.duration_ms = None;
    first.tests[5].attempts[0].attempt.duration_ms = None;
    let imported = world.import(&first);
    let mut second = report("b").branch("dev").test("failed", "p");
    second.context.tested_revision = Some("beef".to_owned());
    world.import(&second);
    world.import(&report("old").at(15 * DAY).test("clean", "p"));
    let history = world.history(14);
    assert_eq!((history.stable_branch.as_ref(), history.tests), ("main", 6));
    assert_eq!(
        words(&history),
        [
            "run 1 test 0",
            "run 1 test 1 failed 1 recovered true lost None",
            "run 1 test 2 failed 2 recovered false lost Some(200)",
            "run 1 test 3 failed 1 recovered false lost Some(100)",
            "run 1 test 4 skipped",
            "run 1 test 5 untimed failed 1 recovered false lost None",
            "run 2 test 2",
        ]
    );
    let facts = &history.runs[0].run;
    assert_eq!(
        (facts.id.as_ref(), facts.number),
        (imported.run_id.to_string().as_str(), 1)
    );
    assert_eq!((facts.started_at, &*facts.variant), (first.started_at, "e2e"));
    assert_eq!(
        (facts.branch.clone(), facts.revision.clone()),
        (shared("main"), shared("c0ffee"))
    );
    let facts = &history.runs[1].run;
    assert_eq!((facts.revision.clone(), &*facts.variant), (shared("beef"), ""));
    assert_eq!(world.history(15).runs.len(), 3, "both ends belong to the period");
}

#[test]
fn a_run_with_a_damaged_pack_is_left_out_until_it_is_rebuilt() {
    let world = World::new();
    world.import(&report("a").test("x", "f"));
    world.import(&report("b").test("x", "p"));
    let before = world.packs();
    for damage in [
        "''",
        "'\\x02'",
        "substring(pack FROM 1 FOR length(pack) - 1)",
        "pack || '\\x00'",
    ] {
        world.database.execute(&format!(
            "UPDATE run_pack SET pack = {damage} WHERE run_number = 1"
        ));
        // Another process: this one may have read the pack before.
        let store = world.database.connect();
        let history = observations(&store, &world.project, (NOW.plus_days(-14), NOW)).unwrap();
        assert_eq!(words(&history), ["run 2 test 0"], "{damage}");
        assert_eq!(world.rebuild(world.project.id).runs_changed, 1);
        assert_eq!(world.packs(), before);
    }
}

#[test]
fn packs_lie_inline_and_uncompressed() {
    let world = World::new();
    let mut recording = report("a");
    for index in 0..2_000 {
        recording = recording.test(&format!("test {index}"), if index % 3 == 0 { "fp" } else { "p" });
    }
    world.import(&recording);
    let sql = "SELECT pg_column_size(pack) - octet_length(pack) FROM run_pack";
    assert!(world.database.text(sql).unwrap().parse::<i64>().unwrap() <= 4);
    let toasted = "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE relname = 'run_pack'";
    assert_eq!(world.database.text(toasted).as_deref(), Some("0"));
}
