//! How tests are shown where that differs from their identity: files found in the checkout, and written names.

use assay_domain::{
    period::Days,
    plan::Plan,
    recording::Recording,
    store::{Administration as _, ProjectChange, Recorder as _, Store as _, in_snapshot},
    test::{ShownAs, TestLookup, TestSelector},
};

use crate::fixture::*;

/// A report of a test without a file, for which this file was found.
fn found(run_key: &str, before_now_ms: i64, file: Option<&str>) -> Recording {
    let mut recording = report(run_key).at(before_now_ms).test_in("adds", None, "p");
    recording.tests[0].shown_as.file_path = file.map(str::to_owned);
    recording
}

/// The file of the only test of this name, and its number of results.
fn shown(world: &World, selector: &TestSelector) -> Option<(Option<String>, usize)> {
    match world
        .store
        .history(&world.project, selector, &period(Days::Thirty))
        .unwrap()
    {
        TestLookup::Found(history) => Some((history.test.file_path, history.occurrences.len())),
        TestLookup::Missing => None,
        TestLookup::Ambiguous(files) => panic!("{files:?}"),
    }
}

#[test]
fn a_found_file_is_shown_and_selects_the_test_but_is_not_compared() {
    let world = World::on(Plan::Standard);
    let first = world.import(&found("a", 30_000, Some("src/Cart.java")));
    world.import(&found("b", 20_000, None));
    let third = world.import(&found("c", 10_000, Some("shop/src/Cart.java")));
    let moved = Some((Some("shop/src/Cart.java".to_owned()), 3));
    assert_eq!(shown(&world, &any_file("adds")), moved);
    assert_eq!(shown(&world, &in_file("adds", Some("shop/src/Cart.java"))), moved);
    assert_eq!(
        shown(&world, &in_file("adds", None)),
        moved,
        "the identity has no file"
    );
    assert_eq!(
        shown(&world, &in_file("adds", Some("src/Cart.java"))),
        None,
        "the former file"
    );
    assert_eq!(shown(&world, &in_file("adds", Some("other.java"))), None);
    for imported in [&first, &third] {
        for (file, exists) in [
            (Some("shop/src/Cart.java"), true),
            (None, true),
            (Some("src/Cart.java"), false),
        ] {
            let attempts = world
                .store
                .attempts(&world.project, imported.run_id, &in_file("adds", file));
            let attempts = attempts.unwrap().unwrap();
            assert_eq!(matches!(attempts, TestLookup::Found(_)), exists, "{file:?}");
            let verdict = world
                .store
                .verdict(&world.project, &in_file("adds", file))
                .unwrap();
            assert_eq!(matches!(verdict, TestLookup::Found(_)), exists, "{file:?}");
            let ordinals = in_snapshot(&world.store, &world.project, |snapshot| {
                snapshot.test_ordinals(&[in_file("adds", file)])
            });
            assert_eq!(
                matches!(ordinals.unwrap()[0], TestLookup::Found(0)),
                exists,
                "{file:?}"
            );
        }
    }
    assert_eq!(
        world.detail(&first).tests[0].file_path.as_deref(),
        Some("shop/src/Cart.java")
    );
    // An older report that arrives later changes nothing.
    world.import(&found("d", 15_000, Some("old/Cart.java")));
    assert_eq!(
        shown(&world, &any_file("adds")).unwrap().0.as_deref(),
        Some("shop/src/Cart.java")
    );
}

#[test]
fn a_test_whose_report_has_the_file_is_preferred_to_one_for_which_it_was_found() {
    let world = World::on(Plan::Standard);
    let mut both = report("a")
        .test_in("adds", None, "p")
        .test_in("adds", Some("src/Cart.java"), "f");
    both.tests[0].shown_as.file_path = Some("src/Cart.java".into());
    let imported = world.import(&both);
    let of = |file| {
        let attempts = world
            .store
            .attempts(&world.project, imported.run_id, &in_file("adds", file));
        match attempts.unwrap().unwrap() {
            TestLookup::Found(test) => test.attempts[0].status,
            other @ (TestLookup::Missing | TestLookup::Ambiguous(_)) => panic!("{other:?}"),
        }
    };
    assert_eq!(of(Some("src/Cart.java")), status('f'));
    assert_eq!(of(None), status('p'));
    assert_eq!(
        shown(&world, &in_file("adds", Some("src/Cart.java"))).unwrap().1,
        1
    );
    assert!(shown(&world, &in_file("adds", None)).is_some());
}

#[test]
fn cached_names_have_the_file_that_was_found_last() {
    let world = World::on(Plan::Standard);
    let files = || -> Vec<Option<String>> {
        let names = in_snapshot(&world.store, &world.project, |snapshot| snapshot.all_test_names()).unwrap();
        names
            .iter()
            .map(|(_, test)| test.file_path.map(str::to_owned))
            .collect()
    };
    world.import(&found("a", 30_000, Some("src/Cart.java")));
    assert_eq!(files(), [Some("src/Cart.java".to_owned())]);
    let elsewhere = world.database.connect();
    let moved = found("b", 20_000, Some("shop/Cart.java"));
    elsewhere
        .record(world.project.id, &moved, &CountingJudge, NOW)
        .unwrap();
    assert_eq!(files(), [Some("shop/Cart.java".to_owned())]);
}

#[test]
fn the_written_name_of_the_newest_result_is_shown_and_finds_the_test() {
    let world = World::on(Plan::Standard);
    let written = |run_key: &str, before_now_ms: i64, address: &str| {
        let mut recording = report(run_key)
            .at(before_now_ms)
            .test("eq #<Cart:<address>>", "p");
        recording.tests[0].shown_as = ShownAs {
            name: Some(format!("eq #<Cart:{address}>")),
            file_path: None,
        };
        recording
    };
    world.import(&written("a", 30_000, "0x7f3a1c1d2e30"));
    let newest = world.import(&written("b", 20_000, "0x7f3a1c1d2e31"));
    world.import(&written("c", 25_000, "0x7f3a1c1d2e32"));
    for name in [
        "eq #<Cart:<address>>",
        "eq #<Cart:0x7f3a1c1d2e30>",
        "eq #<Cart:0x55aa1c1d2e99>",
    ] {
        let history = world.test_history(name, Days::Thirty);
        assert_eq!(history.test.name, "eq #<Cart:<address>>");
        assert_eq!(history.written_name.as_deref(), Some("eq #<Cart:0x7f3a1c1d2e31>"));
        assert_eq!(history.occurrences.len(), 3);
        let attempts = world
            .store
            .attempts(&world.project, newest.run_id, &any_file(name));
        assert!(
            matches!(attempts.unwrap().unwrap(), TestLookup::Found(_)),
            "{name}"
        );
        let verdict = world.store.verdict(&world.project, &any_file(name)).unwrap();
        assert!(matches!(verdict, TestLookup::Found(_)), "{name}");
    }
}

#[test]
fn a_project_may_keep_the_written_names() {
    let world = World::on(Plan::Standard);
    let id = world.project.id;
    assert!(world.store.stores_stable_names(id).unwrap());
    for stable_names in [false, true] {
        let change = ProjectChange {
            stable_names: Some(stable_names),
            ..ProjectChange::default()
        };
        assert!(world.store.set_project(id, &change, &CountingJudge, NOW).unwrap());
        assert_eq!(world.store.stores_stable_names(id).unwrap(), stable_names);
        assert_eq!(
            world.store.settings(&world.project).unwrap().stable_names,
            stable_names
        );
    }
}
