use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail},
    recording::{RunContext, ShardIndex},
    run::RunState,
    test::TestName,
};
use assay_reports::{Format, ReportedTest, SourceFile};

use super::*;

const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

fn report() -> Report {
    let attempt = |status, message: Option<&str>| Attempt {
        status,
        duration_ms: Some(5),
        started_at: Some(NOW.plus_ms(-900)),
        browser: None,
        skip_reason: None,
        output: None,
        errors: vec![
            ErrorDetail::default(),
            ErrorDetail {
                message: message.map(str::to_owned),
                ..ErrorDetail::default()
            },
        ],
    };
    Report {
        format: Format::Junit,
        context: RunContext {
            branch: Some("topic".into()),
            commit_sha: Some("c0ffee".into()),
            ..RunContext::default()
        },
        run_key: None,
        host: None,
        shard: Some(ShardIndex {
            index: 2,
            total: Some(3),
        }),
        started_at: Some(NOW.plus_ms(-1_000)),
        finished_at: Some(NOW),
        duration_ms: None,
        state: RunState::Completed,
        errors: Vec::new(),
        tests: vec![ReportedTest {
            shown_as: Default::default(),
            test: TestName {
                name: "totals > adds".into(),
                file_path: None,
            },
            attempts: vec![
                attempt(AttemptStatus::Failed, Some("expected 3, got 4")),
                attempt(AttemptStatus::Passed, Some("expected 3, got 4")),
            ]
            .into(),
        }],
        passed_groups: Vec::new(),
        warnings: Vec::new(),
        hides_retries: false,
        has_qualified_names: false,
        is_cached: false,
    }
}

fn prepared(report: Report, flags: &Flags, now: Timestamp) -> PreparedReport {
    prepared_or_not(report, flags, now).unwrap()
}

fn prepared_or_not(report: Report, flags: &Flags, now: Timestamp) -> Result<PreparedReport, TooLarge> {
    let file = SourceFile {
        name: "r.xml".into(),
        bytes: b"<r/>".to_vec(),
        modified: None,
    };
    let ci = CiContext::default();
    prepare(
        Arrival {
            files: Files::of(&[file]),
            report,
            flags,
            ci: &ci,
            job_started_at: None,
        },
        now,
    )
}

#[test]
fn a_failed_attempt_is_classed_by_its_first_error_with_text() {
    let prepared = prepared(report(), &Flags::default(), NOW);
    let attempts = &prepared.recording.tests[0].attempts;
    assert!(attempts[0].class.is_some());
    assert_eq!(attempts[1].class, None, "a passed attempt has no signature");
    let counts = prepared.counts();
    assert_eq!((counts.total, counts.passed, counts.recovered), (1, 1, 1));
}

#[test]
fn a_shard_without_a_run_key_causes_a_warning() {
    assert!(prepared(report(), &Flags::default(), NOW).warnings()[0].contains("--run-key"));
    let flags = Flags {
        run_key: Some("b1".into()),
        ..Flags::default()
    };
    assert_eq!(prepared(report(), &flags, NOW).warnings(), Vec::<String>::new());
}

#[test]
fn a_run_without_branch_and_commit_causes_a_warning() {
    let unknown = Report {
        context: RunContext::default(),
        shard: None,
        ..report()
    };
    let warnings = prepared(unknown.clone(), &Flags::default(), NOW).warnings();
    assert!(
        warnings[0].contains("--branch") && warnings[1].contains("--commit"),
        "{warnings:?}"
    );
    let flags = Flags {
        context: RunContext {
            branch: Some("main".into()),
            tested_revision: Some("c0ffee".into()),
            ..RunContext::default()
        },
        ..Flags::default()
    };
    assert_eq!(prepared(unknown, &flags, NOW).warnings(), Vec::<String>::new());
}

#[test]
fn a_jobs_name_is_its_suite_and_keeps_jobs_apart_unless_they_are_shards_of_a_named_run() {
    let key = |flags: &Flags, shard| {
        let ci = CiContext {
            run_key: Some("ci/1".into()),
            job: Some("e2e".into()),
            context: RunContext {
                suite: Some("e2e".into()),
                ..RunContext::default()
            },
            ..CiContext::default()
        };
        let arrival = Arrival {
            files: Files::of(&[]),
            report: Report { shard, ..report() },
            flags,
            ci: &ci,
            job_started_at: None,
        };
        let recording = prepare(arrival, NOW).unwrap().recording;
        assert_eq!(recording.sender.job.as_deref(), Some("e2e"));
        (recording.run_key, recording.context.suite.unwrap())
    };
    let named = |suite: Option<&str>| Flags {
        run_key: Some("b1".into()),
        context: RunContext {
            suite: suite.map(Into::into),
            ..RunContext::default()
        },
        ..Flags::default()
    };
    let shard = report().shard;
    let e2e = |key: &str| (key.to_owned(), "e2e".to_owned());
    assert_eq!(key(&Flags::default(), None), e2e("ci/1\te2e"));
    assert_eq!(key(&Flags::default(), shard), e2e("ci/1\te2e"));
    assert_eq!(key(&named(None), None), e2e("b1\te2e"));
    assert_eq!(key(&named(None), shard), e2e("b1"));
    let api = key(&named(Some("api")), shard);
    assert_eq!(api, ("b1\tapi".to_owned(), "api".to_owned()));
}

#[test]
fn attempts_move_with_a_given_start() {
    let flags = Flags {
        started_at: Some(NOW.plus_days(-3)),
        ..Flags::default()
    };
    let recording = prepared(report(), &flags, NOW).recording;
    assert_eq!(recording.started_at, NOW.plus_days(-3));
    assert_eq!(recording.finished_at, Some(NOW.plus_days(-3).plus_ms(1_000)));
    assert_eq!(
        recording.tests[0].attempts[0].attempt.started_at,
        Some(NOW.plus_days(-3).plus_ms(100))
    );
}

#[test]
fn the_same_report_later_is_the_same_content_and_any_change_another() {
    let untimed = || Report {
        started_at: None,
        finished_at: None,
        ..report()
    };
    let content = |report, flags: &Flags, now| prepared(report, flags, now).recording.content;
    let none = Flags::default();
    assert_eq!(
        content(untimed(), &none, NOW),
        content(untimed(), &none, NOW.plus_days(1))
    );

    let base = content(report(), &none, NOW);
    assert_eq!(base, content(report(), &none, NOW.plus_days(1)));
    let branch = RunContext {
        branch: Some("main".into()),
        ..RunContext::default()
    };
    let flags = Flags {
        context: branch,
        ..Flags::default()
    };
    assert_ne!(base, content(report(), &flags, NOW));
    let flags = Flags {
        started_at: Some(NOW),
        ..Flags::default()
    };
    assert_ne!(base, content(report(), &flags, NOW));
    let mut other = report();
    other.tests[0].attempts[1].duration_ms = Some(6);
    assert_ne!(base, content(other, &none, NOW));
}

#[test]
fn a_run_past_the_retention_causes_a_warning() {
    let at = |started_at| {
        let flags = Flags {
            started_at: Some(started_at),
            run_key: Some("k".into()),
            ..Flags::default()
        };
        prepared(report(), &flags, NOW).warnings()
    };
    assert!(at(NOW.plus_days(1))[0].contains("future"));
    assert!(at(NOW.plus_days(-91))[0].contains("retention"));
    assert!(at(NOW.plus_days(-89)).is_empty());
}

#[test]
fn a_shortened_branch_causes_a_warning() {
    let on = |branch: &str| {
        let context = RunContext {
            branch: Some(branch.to_owned()),
            commit_sha: Some("c0ffee".into()),
            ..RunContext::default()
        };
        let flags = Flags {
            context,
            ..Flags::default()
        };
        prepared(report(), &flags, NOW)
    };
    let long = on(&"b".repeat(201));
    let stored = long.recording.context.branch.as_ref().unwrap();
    let warned =
        format!("The branch has 201 characters and 200 can be filtered by; it is stored as {stored}.");
    assert!(long.warnings().contains(&warned), "{:?}", long.warnings);
    let whole = on(&"b".repeat(200)).warnings();
    assert!(
        whole.iter().all(|warning| !warning.contains("branch")),
        "{whole:?}"
    );
}

#[test]
fn reports_that_the_store_cannot_hold_are_refused() {
    let mut long = report();
    long.tests[0].test.name = "n".repeat(8_001);
    let mut repeated = report();
    let attempt = repeated.tests[0].attempts[0].clone();
    repeated.tests[0].attempts = vec![attempt; 1_001].into();
    for refused in [long, repeated] {
        let error = prepared_or_not(refused, &Flags::default(), NOW)
            .unwrap_err()
            .to_string();
        assert!(error.contains("at most"), "{error}");
    }
}
