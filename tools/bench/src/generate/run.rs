//! The reports of one run.

use assay_domain::{
    attempt::{Attempt, AttemptStatus},
    recording::{CheckoutFiles, RecordedAttempt, RecordedTest, Recording, RunContext, Sender, ShardIndex},
    run::{CiProvider, RunState},
    test::TestName,
    timestamp::Timestamp,
};
use assay_fingerprint::classify;
use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng};

use super::{
    errors,
    plan::{Nature, ProjectPlan, RunPlan, TestPlan},
};

/// The maximum number of attempts of a test.
const ATTEMPTS: usize = 3;
/// The number of tests that run in parallel.
const WORKERS: usize = 8;
/// The number of shards of a sharded run.
const SHARDS: u32 = 4;

/// The recordings of a run, one or one per shard, generated from the plan's seed and this salt.
pub(crate) fn recordings(plan: &ProjectPlan, run: &RunPlan, salt: u64) -> Vec<Recording> {
    let seed = plan.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt);
    let mut random = StdRng::seed_from_u64(seed);
    let shards = if run.sharded { SHARDS } else { 1 };
    let breaks = broken(plan, run, &mut random);
    (0..shards)
        .map(|shard| {
            let mut workers = [0; WORKERS];
            let mine = plan.tests.iter().enumerate().filter(|(place, test)| {
                let part = u32::try_from(*place).unwrap_or(0) % shards;
                part == shard && test.since <= run.day
            });
            let tests = mine
                .map(|(place, test)| recorded(test, run, breaks.contains(&place), &mut workers, &mut random))
                .collect();
            let mut content = [0; 32];
            random.fill_bytes(&mut content);
            Recording {
                run_key: format!("run-{seed:x}"),
                content,
                shard: run.sharded.then_some(ShardIndex {
                    index: shard + 1,
                    total: Some(SHARDS),
                }),
                context: context(run, salt),
                sender: Sender::default(),
                replaces: false,
                is_backfilled: false,
                started_at: run.at,
                finished_at: Some(run.at.plus_ms(workers.into_iter().max().unwrap_or(0))),
                state: RunState::Completed,
                report_errors: Vec::new(),
                tests,
                passed_groups: Vec::new(),
                checkout: CheckoutFiles::default(),
            }
        })
        .collect()
}

/// The tests that the branch's change breaks.
fn broken(plan: &ProjectPlan, run: &RunPlan, random: &mut StdRng) -> Vec<usize> {
    (0..run.broken)
        .map(|_| random.random_range(0..plan.tests.len().max(1)))
        .collect()
}

fn context(run: &RunPlan, salt: u64) -> RunContext {
    let pull_request = run.branch.map(i64::from);
    RunContext {
        branch: Some(run.branch_name()),
        commit_sha: Some(run.revision.clone()),
        commit_message: Some(format!(
            "Change {salt}: keep the totals right when a line is removed"
        )),
        author_name: Some(format!("Developer {}", salt % 25)),
        tested_revision: None,
        pull_request_number: pull_request.map(|number| number + 1),
        pull_request_title: pull_request.map(|number| format!("Change {number} of the checkout")),
        ci_provider: Some(CiProvider::GithubActions),
        suite: None,
        run_url: None,
        merge_base: None,
        base_branch: None,
    }
}

fn recorded(
    test: &TestPlan,
    run: &RunPlan,
    breaks: bool,
    workers: &mut [i64; WORKERS],
    random: &mut StdRng,
) -> RecordedTest {
    let name = TestName {
        name: test.name.clone(),
        file_path: Some(test.file.clone()),
    };
    if matches!(test.nature, Nature::Skipped) {
        let attempt = attempt(AttemptStatus::Skipped, None, run.at, None);
        return RecordedTest {
            shown_as: Default::default(),
            test: name,
            attempts: vec![attempt].into(),
        };
    }
    let (fails, recovers) = if breaks { (1.0, 0.0) } else { test.failing(run) };
    // The worker that is the first to be free, and when it is.
    let mut idle = 0;
    let free_at = workers.iter_mut().min().unwrap_or(&mut idle);
    let mut attempts = Vec::with_capacity(1);
    let mut failed = random.random_bool(fails.min(1.0));
    loop {
        let duration = test.duration_ms * random.random_range(70..140) / 100;
        let at = run.at.plus_ms(*free_at);
        *free_at += duration.cast_signed();
        if !failed {
            attempts.push(attempt(AttemptStatus::Passed, Some(duration), at, None));
            break;
        }
        let (status, error) = errors::error(test, run.outage > 0.0, random);
        attempts.push(attempt(status, Some(duration), at, Some(error)));
        if attempts.len() == ATTEMPTS {
            break;
        }
        failed = !random.random_bool(recovers);
    }
    RecordedTest {
        shown_as: Default::default(),
        test: name,
        attempts: attempts.into(),
    }
}

fn attempt(
    status: AttemptStatus,
    duration_ms: Option<u64>,
    at: Timestamp,
    error: Option<assay_domain::attempt::ErrorDetail>,
) -> RecordedAttempt {
    RecordedAttempt {
        class: error.as_ref().and_then(classify),
        attempt: Attempt {
            status,
            duration_ms,
            started_at: duration_ms.map(|_| at),
            browser: Some("chromium".to_owned()),
            skip_reason: None,
            output: None,
            errors: error.into_iter().collect(),
        },
    }
}
