//! Error signatures: one, and the list.

use assay_domain::{
    attempt::AttemptStatus,
    page::PerPage,
    period::Days,
    plan::Plan,
    recording::{RecordedTest, Recording},
    signature::{SignatureDetail, SignatureQuery, SignatureSort},
    store::{ReadKeys, Store},
    test::TestName,
};

use crate::fixture::*;

/// Adds a test in a file with attempts that fail with these messages. An empty message means a passed attempt.
pub(crate) fn with_failing_test(
    mut recording: Recording,
    name: &str,
    file: Option<&str>,
    messages: &[&str],
) -> Recording {
    let attempts = messages
        .iter()
        .map(|message| {
            attempt(
                if message.is_empty() {
                    AttemptStatus::Passed
                } else {
                    AttemptStatus::Failed
                },
                message,
            )
        })
        .collect();
    let test = TestName {
        name: name.to_owned(),
        file_path: file.map(str::to_owned),
    };
    recording.tests.push(RecordedTest {
        shown_as: Default::default(),
        test,
        attempts,
    });
    recording
}

pub(crate) fn query() -> SignatureQuery {
    SignatureQuery {
        period: period(Days::Thirty),
        branch: None,
        category: None,
        search: None,
        sort: SignatureSort::Occurrences,
        page: 1,
        per_page: PerPage::Ten,
    }
}

/// Boom: old in one test, and in the period in two tests of two runs. Bang: only in the period. Ouch: only old.
fn world() -> World {
    let world = World::new();
    world.import(&with_failing_test(
        report("old").at(40 * DAY),
        "a",
        Some("a.ts"),
        &["boom"],
    ));
    world.import(&with_failing_test(
        report("old 2").at(50 * DAY),
        "a",
        Some("a.ts"),
        &["ouch"],
    ));
    let run = with_failing_test(
        report("new").at(3 * DAY),
        "b",
        Some("b.ts"),
        &["boom", "boom", "bang"],
    );
    world.import(&with_failing_test(run, "a", Some("a.ts"), &["boom", ""]));
    let mut silent = report("other").at(2 * DAY).branch("dev").test("silent", "ft");
    for attempt in silent.tests[0].attempts.iter_mut() {
        attempt.class = None;
        attempt.attempt.errors.clear();
    }
    world.import(&with_failing_test(silent, "b", Some("b.ts"), &["boom"]));
    world
}

fn find(world: &World, message: &str, days: Days) -> Option<SignatureDetail> {
    world
        .store
        .signature(&world.project, &fingerprint(message), &period(days))
        .unwrap()
}

#[test]
fn outside_of_the_period_the_figures_cover_everything() {
    let world = world();
    let ouch = find(&world, "ouch", Days::Thirty).unwrap();
    assert!(ouch.window_empty && !ouch.signature.is_new);
    assert_eq!((ouch.signature.occurrence_count, ouch.runs.len()), (1, 1));
    assert_eq!(ouch.signature.last_seen, NOW.plus_ms(-50 * DAY));
    assert_eq!(ouch.signature.message.as_deref(), Some("ouch"));
    assert_eq!(find(&world, "unknown", Days::Thirty), None);
    assert_eq!(
        world
            .store
            .signature(&world.project, "nul\0", &period(Days::Thirty))
            .unwrap(),
        None
    );
    let short = assay_domain::project::Caller {
        plan: Plan::Standard,
        ..world.caller.clone()
    };
    let later = world
        .store
        .project(&short, world.project.id, NOW)
        .unwrap()
        .unwrap();
    assert!(
        world
            .store
            .signature(&later, &fingerprint("ouch"), &period(Days::Thirty))
            .unwrap()
            .is_some()
    );
    let much_later = world
        .store
        .project(&short, world.project.id, NOW.plus_days(11))
        .unwrap()
        .unwrap();
    let period = assay_domain::period::Period::ending(NOW.plus_days(11), Days::Thirty);
    assert_eq!(
        world
            .store
            .signature(&much_later, &fingerprint("ouch"), &period)
            .unwrap(),
        None,
        "past retention"
    );
}

#[test]
fn of_simultaneous_occurrences_the_last_test_of_the_newest_run_has_the_message() {
    let world = World::new();
    for run in ["first", "second"] {
        let recording = with_failing_test(report(run).at(HOUR), "a", None, &["boom", "boom"]);
        let mut recording = with_failing_test(recording, "b", None, &["boom", "boom"]);
        for test in &mut recording.tests {
            for (retry, attempt) in test.attempts.iter_mut().enumerate() {
                attempt.attempt.errors[0].message = Some(format!("{run} {} {retry}", test.test.name));
            }
        }
        world.import(&recording);
    }
    let list = world
        .store
        .signatures(&world.project, &query())
        .unwrap()
        .signatures;
    let detail = find(&world, "boom", Days::Thirty).unwrap();
    for signature in [&list[0], &detail.signature] {
        assert_eq!(signature.occurrence_count, 8);
        assert_eq!(signature.message.as_deref(), Some("second b 1"));
    }
}

#[test]
fn a_search_finds_a_sigma_in_any_case_and_place() {
    let world = World::new();
    world.import(&with_failing_test(
        report("a"),
        "a",
        Some("a.ts"),
        &["ΟΔΟΣΑ is closed"],
    ));
    world.import(&with_failing_test(report("b"), "b", Some("b.ts"), &["no οδός"]));
    for search in ["ΟΔΟΣ", "οδος", "Οδοσ"] {
        let query = SignatureQuery {
            search: Some(search.to_owned()),
            ..query()
        };
        let page = world.store.signatures(&world.project, &query).unwrap();
        let titles: Vec<_> = page.signatures.iter().map(|titles| &*titles.title).collect();
        assert_eq!(titles, ["Title of ΟΔΟΣΑ is closed"], "{search}");
    }
}

#[test]
fn an_error_is_new_in_the_period_of_its_first_run() {
    let world = World::new();
    for (days, test, texts) in [
        (20, "x", &["older"][..]),
        (6, "x", &["older", "boom"]),
        (5, "y", &["boom", "bang"]),
        (4, "z", &["clash"]),
        (8, "z", &["crash"]),
    ] {
        let recording = report(&format!("r{days}")).at(days * DAY);
        world.import(&with_failing_test(recording, test, None, texts));
    }
    let by_first = SignatureQuery {
        period: period(Days::Seven),
        sort: SignatureSort::FirstSeen,
        ..query()
    };
    let new = |project| -> Vec<String> {
        let listed = world.store.signatures(project, &by_first).unwrap().signatures;
        let new = listed.into_iter().filter(|signature| signature.is_new);
        new.map(|signature| signature.title).collect()
    };
    let titles = ["clash", "bang", "boom"].map(|text| format!("Title of {text}"));
    assert_eq!(new(&world.project), titles);
    assert_eq!(new(&world.another_project("other")), [""; 0]);
}
