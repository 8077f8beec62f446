//! Limits of answers for very long texts and lists.

use assay_domain::{
    attempt::ErrorDetail,
    excerpt::EXCERPT_CHARS,
    period::Days,
    recording::Recording,
    signature::{SignatureQuery, SignatureSort},
    store::Store,
    test::TestLookup,
};

use crate::{
    fixture::*,
    signatures::{query, with_failing_test},
};

fn long_message(characters: usize) -> String {
    let mut message = "wrong: ".to_owned();
    message.extend(std::iter::repeat_n('é', characters - 7));
    message
}

/// The excerpt of such a message in lists.
fn excerpt_of(message: &str) -> String {
    let beginning: String = message.chars().take(EXCERPT_CHARS - 1).collect();
    beginning + "…"
}

#[test]
fn lists_show_the_beginning_of_a_message_and_the_attempts_all_of_it() {
    let world = World::new();
    let message = long_message(16_000);
    let mut recording = with_failing_test(report("a"), "long", None, &[&message]);
    let fits = long_message(EXCERPT_CHARS);
    recording = with_failing_test(recording, "fits", None, &[&fits]);
    let imported = world.import(&recording);
    let detail = world.detail(&imported);
    let messages: Vec<_> = detail
        .tests
        .iter()
        .map(|test| test.error_message.clone().unwrap())
        .collect();
    assert_eq!(messages, [fits.clone(), excerpt_of(&message)]);
    let signature = world
        .store
        .signature(&world.project, &fingerprint(&message), &period(Days::Seven))
        .unwrap()
        .unwrap();
    assert_eq!(signature.signature.message, Some(excerpt_of(&message)));
    let list = world.store.signatures(&world.project, &query()).unwrap();
    let mut messages: Vec<_> = list
        .signatures
        .into_iter()
        .map(|signature| signature.message.unwrap())
        .collect();
    messages.sort();
    let mut expected = [fits, excerpt_of(&message)];
    expected.sort();
    assert_eq!(messages, expected);
    let attempts = world
        .store
        .attempts(&world.project, imported.run_id, &any_file("long"))
        .unwrap();
    let Some(TestLookup::Found(attempts)) = attempts else {
        panic!("the test was not found")
    };
    assert_eq!(attempts.attempts[0].errors[0].message, Some(message));
    assert_eq!(attempts.omitted, 0);
}

#[test]
fn a_search_looks_at_the_whole_message() {
    let world = World::new();
    let message = long_message(3_000) + " Needle";
    world.import(&with_failing_test(report("a"), "long", None, &[&message]));
    for (search, matches) in [("needLE", 1), ("needles", 0)] {
        let query = SignatureQuery {
            search: Some(search.to_owned()),
            ..query()
        };
        let page = world.store.signatures(&world.project, &query).unwrap();
        assert_eq!(page.page.total, matches, "{search}");
    }
}

/// 1,003 tests that fail with one error, in a run on the stable branch and the last three in another.
fn world_of_many_failures() -> World {
    let world = World::new();
    let fail = |recording: Recording, tests: std::ops::Range<usize>| {
        tests.fold(recording, |recording, test| {
            with_failing_test(recording, &format!("test {test:04}"), Some("a.ts"), &["boom"])
        })
    };
    world.import(&fail(report("first").at(2 * HOUR), 0..1_003));
    world.import(&fail(report("second"), 1_000..1_003));
    world
}

#[test]
fn a_signature_counts_everything_and_lists_the_first_thousand() {
    let world = world_of_many_failures();
    let detail = world
        .store
        .signature(&world.project, &fingerprint("boom"), &period(Days::Seven))
        .unwrap()
        .unwrap();
    let signature = &detail.signature;
    assert_eq!(
        (
            signature.occurrence_count,
            signature.test_count,
            signature.run_count
        ),
        (1_006, 1_003, 2)
    );
    assert_eq!(signature.file_count, 1);
    assert!(detail.truncated && signature.truncated);
    assert_eq!((detail.tests.len(), detail.runs.len()), (1_000, 1_000));
    assert_eq!(signature.test_names.len(), 1_000);
    // Most occurrences first, then by name.
    let tests: Vec<_> = detail.tests.iter().map(|test| test.test_name.as_str()).collect();
    assert_eq!(tests[..4], ["test 1000", "test 1001", "test 1002", "test 0000"]);
    assert_eq!(tests[999], "test 0996");
    // Newest first, then by name.
    let runs: Vec<_> = detail
        .runs
        .iter()
        .map(|run| (run.run_number, &*run.test_name))
        .collect();
    assert_eq!(runs[2..4], [(2, "test 1002"), (1, "test 0000")]);
    assert_eq!(runs[999], (1, "test 0996"));
    let list = world
        .store
        .signatures(&world.project, &query())
        .unwrap()
        .signatures;
    assert_eq!(list[0], detail.signature);
}

#[test]
fn a_signature_with_a_thousand_of_each_is_shown_whole() {
    let world = World::new();
    let recording = (0..1_000).fold(report("a"), |recording, test| {
        with_failing_test(recording, &format!("test {test}"), None, &["boom"])
    });
    world.import(&recording);
    let detail = world
        .store
        .signature(&world.project, &fingerprint("boom"), &period(Days::Seven))
        .unwrap()
        .unwrap();
    assert_eq!((detail.tests.len(), detail.runs.len()), (1_000, 1_000));
    assert!(!detail.truncated && !detail.signature.truncated);
}

#[test]
fn names_have_a_megabyte_in_a_signature_and_less_in_the_list() {
    let world = World::new();
    let recording = (0..900).fold(report("a"), |recording, test| {
        with_failing_test(
            recording,
            &format!("{test:03} {}", "n".repeat(1_900)),
            None,
            &["boom"],
        )
    });
    world.import(&recording);
    let detail = world
        .store
        .signature(&world.project, &fingerprint("boom"), &period(Days::Seven))
        .unwrap()
        .unwrap();
    assert_eq!(
        (detail.signature.test_count, detail.tests.len()),
        (900, (1 << 20) / 1_904)
    );
    assert_eq!(detail.runs.len(), (1 << 20) / (1_904 + "main".len()));
    assert!(detail.truncated && detail.signature.truncated);
    for sort in SignatureSort::ALL {
        let query = SignatureQuery {
            sort: *sort,
            ..query()
        };
        let list = world.store.signatures(&world.project, &query).unwrap().signatures;
        assert_eq!(list[0].test_names.len(), (128 << 10) / 1_904);
        assert!(list[0].truncated);
    }
}

#[test]
fn a_list_of_too_many_branches_has_those_with_the_newest_runs() {
    let world = World::new();
    world.import(&report("a").branch("zz").test("x", "p"));
    let count = |count: u32| {
        world.database.execute(&format!(
            "INSERT INTO branch SELECT project_id, 'branch ' || lpad(n::text, 5, '0'), newest - n * interval '1 minute' \
             FROM branch, generate_series(1, {count}) AS n WHERE name = 'zz' ON CONFLICT DO NOTHING"
        ));
        world.store.branches(&world.project).unwrap()
    };
    let all = count(9_999);
    assert_eq!((all.names.len(), all.truncated), (10_000, false));
    let newest = count(10_050);
    assert_eq!((newest.names.len(), newest.truncated), (10_000, true));
    assert_eq!(newest.names, all.names);
}

#[test]
fn of_attempts_with_very_long_errors_the_oldest_and_the_newest_are_read() {
    let world = World::new();
    let message = long_message(15_000);
    let messages = vec![message.as_str(); 1_000];
    let imported = world.import(&with_failing_test(report("a"), "x", None, &messages));
    let attempts = world
        .store
        .attempts(&world.project, imported.run_id, &any_file("x"))
        .unwrap();
    let Some(TestLookup::Found(attempts)) = attempts else {
        panic!("the test was not found")
    };
    let retries: Vec<u32> = attempts.attempts.iter().map(|attempt| attempt.retry).collect();
    let bytes = message.len();
    let (oldest, newest) = ((4 << 20) / bytes + 1, (4 << 20) / bytes);
    let expected: Vec<u32> = (0..1_000)
        .filter(|retry| *retry < oldest as u32 || *retry >= 1_000 - newest as u32)
        .collect();
    assert_eq!(retries, expected);
    assert_eq!(attempts.omitted as usize, 1_000 - oldest - newest);
}

#[test]
fn a_run_shows_a_megabyte_of_the_errors_of_its_reports() {
    let world = World::new();
    let error = |message: &str| ErrorDetail {
        message: Some(message.to_owned()),
        ..ErrorDetail::default()
    };
    let mut recording = report("a").shard(1, 2).test("x", "p");
    recording.report_errors = vec![error("first"), error(&long_message(16_000))];
    world.import(&recording);
    let mut recording = report("a").shard(2, 2).test("y", "p");
    recording.report_errors = vec![error(&long_message(16_000)); 50];
    let detail = world.detail(&world.import(&recording));
    let bytes = long_message(16_000).len();
    let shown_errors = 1 + ((1 << 20) - "first".len()) / bytes;
    assert_eq!(detail.run.report_errors.len(), shown_errors);
    assert_eq!(detail.run.report_errors[0], error("first"));
    assert_eq!(detail.run.omitted_report_errors as usize, 52 - shown_errors);
}

/// 600 tests with long messages in one shard.
fn long_run(world: &World) -> Recording {
    let recording = (0..600).rev().fold(report("a").shard(1, 1), |recording, test| {
        let message = format!("{test} {}", long_message(9_000));
        with_failing_test(recording, &format!("test {test:03}"), Some("a.ts"), &[&message])
    });
    world.import(&recording);
    recording
}

#[test]
fn a_long_run_is_read_in_parts() {
    let world = World::new();
    let imported = world.import(&long_run(&world));
    let detail = world.detail(&imported);
    let mut rest = detail.rest.clone().unwrap();
    assert_eq!(rest.parts.len(), 2);
    let mut tests = detail.tests.clone();
    for part in std::mem::take(&mut rest.parts) {
        let part = world
            .store
            .run_part(&world.project, &rest, &part)
            .unwrap()
            .unwrap();
        tests.extend(part);
    }
    let names: Vec<_> = tests.iter().map(|test| test.test_name.clone()).collect();
    let expected: Vec<_> = (0..600).map(|test| format!("test {test:03}")).collect();
    assert_eq!(names, expected);
    for (index, test) in tests.iter().enumerate() {
        let message = test.error_message.as_ref().unwrap();
        assert!(message.starts_with(&format!("{index} wrong")) && message.chars().count() == EXCERPT_CHARS);
        assert!(test.fingerprint.is_some());
    }
    // The same run has the same version.
    assert_eq!(world.detail(&imported).rest.unwrap().version, rest.version);
}

#[test]
fn a_run_that_changes_while_it_is_read_is_read_no_further() {
    let world = World::new();
    let recording = long_run(&world);
    let imported = world.import(&recording);
    let read = || {
        let rest = world.detail(&imported).rest.unwrap();
        let part = rest.parts[1].clone();
        (rest, part)
    };
    let next = |(rest, part): &(assay_domain::run::RunRest, assay_domain::run::RunPart)| {
        world.store.run_part(&world.project, rest, part).unwrap()
    };
    let before = read();
    assert!(next(&before).is_some());
    // Its shard is imported again with another message.
    let mut other = recording.content(9).replacing();
    other.tests[0].attempts[0].attempt.errors[0].message = Some("another".to_owned());
    world.import(&other);
    assert_eq!(next(&before), None);
    let before = read();
    assert!(next(&before).is_some());
    // Its errors are grouped again.
    world
        .database
        .execute("UPDATE signature SET fingerprint = 'x' || fingerprint");
    assert_eq!(next(&before), None);
    assert_ne!(read().0.version, before.0.version);
}

#[test]
fn a_long_history_is_read_in_parts() {
    let world = World::new();
    world.import(&report("a").test("x", "p"));
    world.database.execute(&format!(
        "SELECT assay_create_partition(started_at - week * interval '7 days', started_at) FROM run, generate_series(0, 1) AS week;
         INSERT INTO run SELECT project_id, 1 + n, gen_random_uuid(), sha256(convert_to(n::text, 'UTF8')), false, branch, \
             commit_sha, NULL, NULL, NULL, NULL, NULL, NULL, NULL, status, started_at - (n / 3) * interval '1 minute', NULL, \
             1, NULL, 1, 1, 0, 0, 0 FROM run, generate_series(1, 2500) AS n;
         {}",
        insert_results(
            "SELECT run.project_id, run.started_at, 5, number, test, NULL, 0, 0, 0, 0 FROM run, result WHERE number > 1"
        )
    ));
    let history = world.test_history("x", Days::Seven);
    let mut parts = vec![history.occurrences];
    let mut rest = history.rest;
    while let Some(next) = rest {
        let (occurrences, next_rest) = world.store.history_part(&world.project, next).unwrap();
        parts.push(occurrences);
        rest = next_rest;
    }
    let lengths: Vec<usize> = parts.iter().map(Vec::len).collect();
    assert_eq!(lengths, [1_000, 1_000, 501]);
    let order: Vec<_> = parts
        .concat()
        .iter()
        .map(|occurrence| (occurrence.started_at, occurrence.run_number))
        .collect();
    assert!(order.windows(2).all(|pair| pair[0] > pair[1]));
}
