use assay_domain::{
    attempt::{Attempt, AttemptStatus, ErrorDetail, Location},
    execution::Executions,
    recording::{CheckoutFiles, RecordedAttempt, RecordedTest, RunContext, Sender, ShardIndex},
    run::{CiProvider, RunState},
    signature::{Category, ErrorClass},
    test::TestName,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::*;

fn file(bytes: &str) -> SourceFile {
    SourceFile {
        name: "r.xml".into(),
        bytes: bytes.into(),
        modified: None,
    }
}

#[test]
fn one_file_has_the_sum_that_the_shell_prints() {
    assert_eq!(
        key_of(&[file("abc")]),
        "content:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn the_order_of_files_does_not_matter() {
    assert_eq!(key_of(&[file("a"), file("b")]), key_of(&[file("b"), file("a")]));
    assert_ne!(key_of(&[file("a"), file("b")]), key_of(&[file("ab")]));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A recording with a value in every field.
fn full() -> Recording {
    let text = |text: &str| Some(text.to_owned());
    let error = ErrorDetail {
        message: text("expected 1,\n\t\"got\" 2 \u{e9}\u{1f4a5}"),
        stack: text("at a.ts:3:7"),
        snippet: text("> 3 | expect"),
        location: Some(Location {
            file: "a.ts".to_owned(),
            line: Some(3),
            column: None,
        }),
    };
    let attempt = |status: AttemptStatus| RecordedAttempt {
        attempt: Attempt {
            status,
            duration_ms: Some(1_200),
            started_at: Some(Timestamp::from_unix_ms(1_795_000_000_123)),
            browser: text("firefox"),
            skip_reason: None,
            output: None,
            errors: vec![error.clone(), ErrorDetail::default()],
        },
        class: Some(ErrorClass {
            fingerprint: "0123456789abcdef0123456789abcdef".to_owned(),
            version: 3,
            title: "expected 1".to_owned(),
            category: Category::Assertion,
        }),
    };
    let mut attempts = Executions::with_capacity(3);
    attempts.push(vec![
        attempt(AttemptStatus::TimedOut),
        attempt(AttemptStatus::Passed),
    ]);
    attempts.push(vec![attempt(AttemptStatus::Failed)]);
    Recording {
        run_key: "github:1:1".to_owned(),
        content: [0; 32],
        shard: Some(ShardIndex {
            index: 2,
            total: Some(3),
        }),
        context: RunContext {
            branch: text("main"),
            commit_sha: text("c0ffee"),
            commit_message: text("Fix it"),
            author_name: text("Ada"),
            tested_revision: text("beef"),
            pull_request_number: Some(7),
            pull_request_title: text("Mend"),
            ci_provider: Some(CiProvider::GithubActions),
            suite: text("e2e"),
            run_url: text("https://ci.test/7"),
            merge_base: text("ba5e0001"),
            base_branch: text("main"),
        },
        sender: Sender::default(),
        replaces: false,
        is_backfilled: false,
        started_at: Timestamp::from_unix_ms(1_795_000_000_000),
        finished_at: Some(Timestamp::from_unix_ms(1_795_000_061_000)),
        state: RunState::Interrupted,
        report_errors: vec![error.clone()],
        tests: vec![
            RecordedTest {
                shown_as: Default::default(),
                test: TestName {
                    name: "pay > by card".to_owned(),
                    file_path: text("a.ts"),
                },
                attempts,
            },
            RecordedTest {
                shown_as: Default::default(),
                test: TestName {
                    name: "plain".to_owned(),
                    file_path: None,
                },
                attempts: Executions::from(vec![RecordedAttempt {
                    attempt: Attempt {
                        status: AttemptStatus::Skipped,
                        duration_ms: None,
                        started_at: None,
                        browser: None,
                        skip_reason: None,
                        output: None,
                        errors: Vec::new(),
                    },
                    class: None,
                }]),
            },
        ],
        passed_groups: Vec::new(),
        checkout: CheckoutFiles::default(),
    }
}

/// If this fails, imports no longer recognize stored content.
#[test]
fn a_recording_keeps_its_hash() {
    let mut recording = full();
    digest(&mut recording, true);
    assert_eq!(
        hex(&recording.content),
        "05e4394af15449455c184b23bd9ab76fb61110d99a97eeb6ead8af7cd0f35bb6"
    );
}

fn texts() -> impl Strategy<Value = Option<String>> {
    option::of(select(vec!["", "a", "aa", "ab", "\0", "\0\0\0\0\0\0\0\u{1}a"]))
        .prop_map(|text| text.map(str::to_owned))
}

fn errors() -> impl Strategy<Value = Vec<ErrorDetail>> {
    let location =
        (texts(), option::of(0..2_u32), option::of(0..2_u32)).prop_map(|(file, line, column)| Location {
            file: file.unwrap_or_default(),
            line,
            column,
        });
    let error =
        (texts(), texts(), texts(), option::of(location)).prop_map(|(message, stack, snippet, location)| {
            ErrorDetail {
                message,
                stack,
                snippet,
                location,
            }
        });
    vec(error, 0..3)
}

fn attempts() -> impl Strategy<Value = RecordedAttempt> {
    let class = (texts(), 0..2_u16, texts(), select(Category::ALL)).prop_map(
        |(fingerprint, version, title, category)| ErrorClass {
            fingerprint: fingerprint.unwrap_or_default(),
            version,
            title: title.unwrap_or_default(),
            category,
        },
    );
    let status = select(AttemptStatus::ALL);
    let measured = (
        option::of(0..2_u64),
        option::of((0..2_i64).prop_map(Timestamp::from_unix_ms)),
    );
    (status, measured, texts(), errors(), option::of(class)).prop_map(
        |(status, (duration_ms, started_at), browser, errors, class)| RecordedAttempt {
            attempt: Attempt {
                status,
                duration_ms,
                started_at,
                browser,
                skip_reason: None,
                output: None,
                errors,
            },
            class,
        },
    )
}

fn recordings() -> impl Strategy<Value = Recording> {
    let test =
        (texts(), texts(), vec(vec(attempts(), 1..3), 1..3)).prop_map(|(name, file_path, executions)| {
            let mut attempts = Executions::with_capacity(4);
            executions
                .into_iter()
                .for_each(|execution| attempts.push(execution));
            RecordedTest {
                shown_as: Default::default(),
                test: TestName {
                    name: name.unwrap_or_default(),
                    file_path,
                },
                attempts,
            }
        });
    let shard = (0..2_u32, option::of(0..2_u32)).prop_map(|(index, total)| ShardIndex { index, total });
    let context = (texts(), texts());
    let rest = (texts(), option::of(shard), context, select(RunState::ALL));
    (rest, errors(), vec(test, 0..3)).prop_map(|((run_key, shard, context, state), report_errors, tests)| {
        let (tested_revision, suite) = context;
        Recording {
            run_key: run_key.unwrap_or_default(),
            shard,
            context: RunContext {
                tested_revision,
                suite,
                ..RunContext::default()
            },
            state,
            report_errors,
            tests,
            ..full()
        }
    })
}

fn encoded(recording: &Recording) -> Vec<u8> {
    let mut bytes = Vec::new();
    encoding::encode(recording, None, None, &mut |piece| bytes.extend_from_slice(piece));
    bytes
}

type Edit = fn(&mut Recording);

/// The same report, sent by its job and by somebody who asked the code host later.
#[test]
fn what_else_is_known_of_a_run_is_no_content() {
    let text = |text: &str| Some(text.to_owned());
    let mut of_job = full();
    of_job.context.tested_revision = text("5eed");
    let mut of_host = of_job.clone();
    of_host.context = RunContext {
        commit_sha: text("5eed"),
        suite: of_job.context.suite.clone(),
        pull_request_title: text("Another title"),
        ..RunContext::default()
    };
    assert_eq!(encoded(&of_job), encoded(&of_host));
}

/// Each field of a recording, changed.
const EDITS: [(&str, Edit); 18] = [
    ("run key", |one| one.run_key.push('x')),
    ("shard", |one| {
        one.shard = match one.shard {
            None => Some(ShardIndex {
                index: 0,
                total: None,
            }),
            Some(_) => None,
        };
    }),
    ("shard's index", |one| {
        let shard = one.shard.unwrap_or(ShardIndex {
            index: 0,
            total: None,
        });
        one.shard = Some(ShardIndex {
            index: shard.index + 1,
            ..shard
        });
    }),
    ("shards in all", |one| {
        let shard = one.shard.unwrap_or(ShardIndex {
            index: 0,
            total: None,
        });
        one.shard = Some(ShardIndex {
            total: Some(shard.total.map_or(9, |total| total + 1)),
            ..shard
        });
    }),
    ("tested revision", |one| grow(&mut one.context.tested_revision)),
    ("suite", |one| grow(&mut one.context.suite)),
    ("state", |one| {
        one.state = RunState::ALL[usize::from(one.state == RunState::ALL[0])];
    }),
    ("report's errors", |one| {
        one.report_errors.push(ErrorDetail::default())
    }),
    ("a test", |one| {
        let test = first_test(one).clone();
        one.tests.push(test);
    }),
    ("test's name", |one| first_test(one).test.name.push('x')),
    ("test's file", |one| grow(&mut first_test(one).test.file_path)),
    ("an execution of its own", |one| {
        let attempt = first_test(one).attempts[0].clone();
        first_test(one).attempts.push([attempt]);
    }),
    ("attempt's status", |one| {
        let attempt = &mut first_test(one).attempts[0].attempt;
        attempt.status = AttemptStatus::ALL[usize::from(attempt.status == AttemptStatus::ALL[0])];
    }),
    ("attempt's duration", |one| {
        let attempt = &mut first_test(one).attempts[0].attempt;
        attempt.duration_ms = Some(attempt.duration_ms.map_or(3, |length| length + 1));
    }),
    ("attempt's start", |one| {
        let attempt = &mut first_test(one).attempts[0].attempt;
        attempt.started_at = Some(
            attempt
                .started_at
                .map_or(Timestamp::from_unix_ms(3), |at| at.plus_ms(1)),
        );
    }),
    ("attempt's browser", |one| {
        grow(&mut first_test(one).attempts[0].attempt.browser)
    }),
    ("attempt's reason for skipping", |one| {
        grow(&mut first_test(one).attempts[0].attempt.skip_reason)
    }),
    ("attempt's errors", |one| {
        first_test(one).attempts[0]
            .attempt
            .errors
            .push(ErrorDetail::default())
    }),
];

fn grow(text: &mut Option<String>) {
    text.get_or_insert_default().push('x');
}

fn first_test(recording: &mut Recording) -> &mut RecordedTest {
    if recording.tests.is_empty() {
        recording.tests = full().tests;
    }
    &mut recording.tests[0]
}

proptest! {
    #[test]
    fn every_field_counts(recording in recordings(), (field, edit) in select(EDITS.as_slice())) {
        let (mut before, mut after) = (recording.clone(), recording);
        // Editing a test needs one on both sides.
        if field.starts_with("test") || field.starts_with("attempt") || field.starts_with("an execution") {
            first_test(&mut before);
            first_test(&mut after);
        }
        edit(&mut after);
        let (left, right) = (encoded(&before), encoded(&after));
        prop_assert!(!left.starts_with(&right) && !right.starts_with(&left), "{field}");
    }

    /// No encoding is a prefix of another, which would reveal a missing length.
    #[test]
    fn no_two_different_recordings_share_an_encoding(one in recordings(), other in recordings()) {
        let (left, right) = (encoded(&one), encoded(&other));
        prop_assert_eq!(left.starts_with(&right), one == other);
        prop_assert_eq!(&left, &encoded(&one));
    }

    /// The byte that marks a text may also be part of a text. Only lengths distinguish the two.
    #[test]
    fn text_that_moves_to_the_next_field_is_another_content(one in ".{0,3}", other in ".{0,3}", recording in recordings()) {
        let with = |revision: String, suite: Option<String>| {
            let mut recording = recording.clone();
            recording.context.tested_revision = Some(revision);
            recording.context.suite = suite;
            encoded(&recording)
        };
        let together = with(format!("{one}\u{1}{other}"), None);
        prop_assert_ne!(together, with(one.clone(), Some(format!("{other}\0"))));
    }
}
