//! The content of the store in memory.

use std::{
    collections::HashMap,
    sync::{Mutex, atomic::AtomicUsize},
};

use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail, Location, ShardTag},
    history::Occurrence,
    id::OrganizationId,
    key::{KeyHash, KeyKind, SecretKey, StoredKey, mint},
    observation::History,
    plan::Plan,
    revision::RevisionOrigin,
    run::{
        Counts, Outcome, Run, RunDetail, RunRow, RunState, RunStatus, Shard, ShardCount, Shards, TestEntry,
    },
    signature::{Category, Signature, SignatureDetail, SignatureRun, SignatureTest},
    test::TestName,
    test_attempts::StoredAttempt,
    timestamp::Timestamp,
    verdict::{Judge as _, LastRun, StoredVerdict},
};
use assay_flakiness::{Engine, HistoryBuilder, ObservedAttempt, ObservedRun};

use crate::{
    ids::{FILE, FINGERPRINT, NOW, ORGANIZATION, OTHER_ORGANIZATION, RUN, SHARD, TEST, TWICE},
    store::Mode,
};

pub(crate) struct Seed {
    pub(crate) keys: Keys,
    pub(crate) stored: HashMap<KeyHash, StoredKey>,
    pub(crate) history: History,
    pub(crate) names: Vec<TestName>,
    pub(crate) mode: Mutex<Mode>,
    /// Additional tests of the run detail, for large bodies.
    pub(crate) padding: Mutex<usize>,
    /// The number of look-ups of unknown keys that began.
    pub(crate) unknown_key_look_ups: AtomicUsize,
}

/// The texts of the seed's keys.
pub(crate) struct Keys {
    pub(crate) good: SecretKey,
    pub(crate) expiring: SecretKey,
    pub(crate) revoked: SecretKey,
    pub(crate) expired: SecretKey,
    pub(crate) free: SecretKey,
    pub(crate) standard: SecretKey,
    pub(crate) other: SecretKey,
    pub(crate) unknown: SecretKey,
    pub(crate) ingest: SecretKey,
}

impl Seed {
    pub(crate) fn new() -> Self {
        let mut stored = HashMap::new();
        let mut add = |organization: &str, plan, expires_at, revoked_at| {
            let (secret, new) = mint(KeyKind::Read, NOW);
            let key = StoredKey {
                id: new.id,
                organization: OrganizationId(organization.parse().unwrap()),
                plan,
                expires_at,
                revoked_at,
            };
            stored.insert(new.hash, key);
            secret
        };
        let later = NOW.plus_days(30);
        let keys = Keys {
            good: add(ORGANIZATION, Plan::Pro, later, None),
            expiring: add(ORGANIZATION, Plan::Pro, NOW.plus_days(7), None),
            revoked: add(ORGANIZATION, Plan::Pro, later, Some(NOW)),
            expired: add(ORGANIZATION, Plan::Pro, NOW, None),
            free: add(ORGANIZATION, Plan::Free, later, None),
            standard: add(ORGANIZATION, Plan::Standard, later, None),
            other: add(OTHER_ORGANIZATION, Plan::Pro, later, None),
            unknown: mint(KeyKind::Read, NOW).0,
            ingest: mint(KeyKind::Ingest, NOW).0,
        };
        let (history, names) = history();
        Self {
            keys,
            stored,
            history,
            names,
            mode: Mutex::new(Mode::Healthy),
            padding: Mutex::new(0),
            unknown_key_look_ups: AtomicUsize::new(0),
        }
    }

    /// The engine's verdict on the first test of the history, in its stored form.
    pub(crate) fn stored_verdict(&self) -> StoredVerdict {
        let judgement = Engine::default().judge_tests(&self.history, NOW, &[0]).remove(0);
        let verdict = judgement.verdict;
        let last = LastRun {
            run_id: RUN.to_owned(),
            run_number: 41,
            status: AttemptStatus::Passed,
            started_at: NOW,
        };
        StoredVerdict {
            status: verdict.status,
            reason: verdict.reason,
            explanation: verdict.explanation,
            signals: verdict.signals,
            labels: verdict.labels,
            failing_on: verdict.failing_on,
            figures: verdict.figures,
            evaluated_at: NOW,
            last: Some((NOW, last)),
            evidence: judgement.evidence,
        }
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }
}

pub(crate) fn test_name() -> TestName {
    TestName {
        name: TEST.to_owned(),
        file_path: Some(FILE.to_owned()),
    }
}

/// Every test that look-ups by name return.
pub(crate) fn tests() -> Vec<TestName> {
    let twice = |file_path| TestName {
        name: TWICE.to_owned(),
        file_path,
    };
    vec![
        test_name(),
        twice(None),
        twice(Some("b \"quoted\".ts".to_owned())),
    ]
}

/// Twenty runs of seven tests: flaky on retry in various degrees, broken, healthy, failed in the last run, and new.
fn history() -> (History, Vec<TestName>) {
    use AttemptStatus::{Failed, Passed};
    let mut builder = HistoryBuilder::new("main");
    for index in 0..20_i64 {
        let run = ObservedRun {
            started_at: NOW.plus_ms((index - 20) * 6 * 3_600_000),
            id: if index == 19 {
                RUN.to_owned()
            } else {
                format!("run-{index}")
            },
            branch: Some("main".to_owned()),
            revision: Some(format!("revision-{index}")),
            variant: String::new(),
        };
        let mut observe = |name: &str, statuses: &[AttemptStatus], duration_ms| {
            let test = TestName {
                name: name.to_owned(),
                file_path: Some(FILE.to_owned()),
            };
            let attempts = statuses.iter().map(|status| ObservedAttempt {
                status: *status,
                duration_ms,
            });
            builder.observe(&run, &test, attempts);
        };
        let flaky: &[_] = if index % 4 == 1 {
            &[Failed, Passed]
        } else {
            &[Passed]
        };
        observe("flaky cheap", flaky, Some(10));
        observe(
            "flaky dear",
            if index % 5 == 1 {
                &[Failed, Passed]
            } else {
                &[Passed]
            },
            Some(9_000),
        );
        observe("flaky untimed", flaky, None);
        observe(
            "broken",
            if index >= 14 { &[Failed] } else { &[Passed] },
            Some(500),
        );
        observe("healthy", &[Passed], Some(5));
        observe(
            "failing",
            if index == 19 { &[Failed] } else { &[Passed] },
            Some(5),
        );
        if index >= 18 {
            observe("new", &[Passed], Some(5));
        }
    }
    builder.build()
}

pub(crate) fn attempts() -> Vec<StoredAttempt> {
    let shard = Some(ShardTag {
        index: 1,
        run_id: run_id(),
    });
    let error = ErrorDetail {
        message: Some("expected 3, got 4".to_owned()),
        stack: None,
        snippet: None,
        location: Some(Location {
            file: FILE.to_owned(),
            line: Some(12),
            column: None,
        }),
    };
    let attempt = |retry, status, errors| StoredAttempt {
        execution: 0,
        retry,
        status,
        duration_ms: Some(1_200),
        browser_name: None,
        skip_reason: None,
        output: Default::default(),
        errors,
        shard,
    };
    vec![
        attempt(0, AttemptStatus::Failed, vec![error, ErrorDetail::default()]),
        attempt(1, AttemptStatus::Passed, Vec::new()),
    ]
}

pub(crate) fn run_id() -> assay_domain::id::RunId {
    RUN.parse().unwrap()
}

const COUNTS: Counts = Counts {
    total: 3,
    passed: 2,
    failed: 1,
    skipped: 0,
    recovered: 1,
};

pub(crate) fn run_row(number: i32, started_at: Timestamp) -> RunRow {
    RunRow {
        id: run_id(),
        run_number: number,
        branch: Some("main".to_owned()),
        commit_sha: None,
        tested_revision: None,
        pull_request_number: None,
        status: None,
        started_at,
        finished_at: None,
        duration_ms: None,
        counts: COUNTS,
        suite: None,
        pull_request_title: None,
        commit_message: None,
        author_name: None,
        run_url: None,
        trusted: true,
        shards: Some(ShardCount {
            received: 1,
            expected: None,
        }),
    }
}

pub(crate) fn run_detail(padding: usize) -> RunDetail {
    let entry = |test: TestName| TestEntry {
        test_name: test.name,
        file_path: test.file_path,
        status: AttemptStatus::Passed,
        attempts: 2,
        duration_ms: None,
        error_message: None,
        fingerprint: None,
        browser_name: None,
        shard: None,
    };
    let padded = (0..padding).map(|index| TestName {
        name: format!("padding > {index}"),
        file_path: None,
    });
    RunDetail {
        run: Run {
            trusted: true,
            id: run_id(),
            run_number: 41,
            branch: None,
            commit_sha: None,
            commit_message: None,
            author_name: None,
            tested_revision: None,
            pull_request_number: None,
            pull_request_title: None,
            ci_provider: None,
            suite: None,
            run_url: None,
            status: RunStatus::Incomplete,
            started_at: NOW.plus_ms(-5),
            finished_at: None,
            duration_ms: None,
            shards: Some(Shards {
                expected: Some(2),
                received: vec![Shard {
                    run_id: SHARD.parse().unwrap(),
                    index: 1,
                    run_state: RunState::Completed,
                    status: Some(Outcome::Passed),
                }],
            }),
            report_errors: Vec::new(),
            omitted_report_errors: 0,
        },
        counts: COUNTS,
        tests: tests().into_iter().chain(padded).map(entry).collect(),
        rest: None,
    }
}

pub(crate) fn occurrence() -> Occurrence {
    Occurrence {
        run_id: run_id(),
        run_number: 41,
        branch: None,
        tested_revision: None,
        commit_sha: None,
        suite: None,
        started_at: NOW.plus_ms(-5),
        status: AttemptStatus::Passed,
        duration_ms: None,
        attempts: 2,
        wasted_ms: 1_200,
        lost_ms: None,
        any_failed_attempt: true,
        revision: RevisionOrigin {
            revision_branch: None,
            revision_seen_at: Some(NOW.plus_ms(-5)),
        },
    }
}

pub(crate) fn signature() -> SignatureDetail {
    SignatureDetail {
        signature: Signature {
            fingerprint: FINGERPRINT.to_owned(),
            title: "expected 3, got 4".to_owned(),
            message: None,
            category: Category::Assertion,
            file_path: None,
            file_count: 0,
            test_count: 1,
            test_names: vec![TEST.to_owned()],
            truncated: false,
            occurrence_count: 1,
            run_count: 1,
            first_seen: NOW.plus_ms(-5),
            last_seen: NOW.plus_ms(-5),
            is_new: true,
        },
        window_empty: false,
        tests: vec![SignatureTest {
            test_name: TEST.to_owned(),
            file_path: None,
            occurrence_count: 1,
        }],
        runs: vec![SignatureRun {
            run_id: run_id(),
            run_number: 41,
            branch: None,
            started_at: NOW.plus_ms(-5),
            test_name: TEST.into(),
            file_path: None,
            attempts: 2,
            occurrences: 1,
            final_status: AttemptStatus::Passed,
        }],
        truncated: false,
    }
}
