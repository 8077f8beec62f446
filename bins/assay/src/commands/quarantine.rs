//! `assay quarantine`: the flaky tests as a list for a test runner.

use std::{io::Write as _, path::PathBuf, time::Duration};

use anyhow::Context as _;
use assay_cli_job::runners::{Runner, RunnerList, Use};
use assay_cli_local::sources::values;
use assay_cli_remote::server::read_api::ReadApi;
use assay_cli_terminal::{message, output, terminal, values::age};
use assay_domain::{test::TestName, timestamp::Timestamp, verdict::VerdictStatus};
use clap::{ArgGroup, Args, ValueEnum};
use serde::Deserialize;
use serde_json::json;

use crate::{
    clock,
    global::Global,
    runner_flag,
    server_flags::{ConnectionFlags, ReadApiFlags},
};

const EXAMPLES: &str = "\
Only tests with the verdict flaky are listed, never broken or failing ones. A test that the runner cannot name exactly is \
left out, and standard error says why.

Examples:
  The tests that Playwright should leave out, with ASSAY_API_URL and ASSAY_READ_KEY as variables of the job:
    assay quarantine --project storefront --format playwright > flaky.txt
    npx playwright test --test-list-invert flaky.txt
  The same tests in a job of their own:
    npx playwright test --test-list flaky.txt
  For pytest, by a folder of earlier reports and without a server:
    assay quarantine --history reports/ --format pytest > assay_quarantine.py
    PYTHONPATH=. pytest -p assay_quarantine";

/// List the flaky tests in the format of a test runner
///
/// Asks the server, with a read key, for the flaky tests of a project, or judges reports and CSV histories here. Prints a
/// list in the runner's format.
#[derive(Debug, Args)]
#[command(
    override_usage = "assay quarantine [OPTIONS] --format <FORMAT> --project <PROJECT>
       assay quarantine [OPTIONS] --format <FORMAT> --history <PATH>",
    after_help = EXAMPLES,
    group = ArgGroup::new("from").required(true)
)]
pub(crate) struct QuarantineArgs {
    /// The project: its id or name
    #[arg(long, group = "from")]
    project: Option<String>,
    /// Earlier runs: CSV histories, or reports with one run each; no server is asked
    #[arg(long, value_name = "PATH", group = "from")]
    history: Vec<PathBuf>,
    /// The format of the list
    #[arg(long, value_parser = runner_flag::lists())]
    format: Runner,
    /// Whether the runner skips the tests or runs only them
    #[arg(long = "as", value_name = "USE", value_enum, default_value_t = ListUse::Deselect)]
    list_use: ListUse,
    /// Leave out tests whose last run is longer before the newest run, such as those that no longer exist: 3d, 12h
    #[arg(long, value_name = "TIME", default_value = "3d", value_parser = age)]
    expire_after: Duration,
    /// The maximum number of tests, without their former names: those with the highest flake score
    #[arg(long, value_name = "N", default_value_t = 50)]
    max: usize,
    /// The stable branch, for --history
    #[arg(long, value_name = "BRANCH", default_value = "main", value_parser = values::name)]
    stable_branch: String,
    #[command(flatten)]
    api: ReadApiFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// The use of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ListUse {
    /// Skip them
    Deselect,
    /// Run only them
    Select,
}

impl From<ListUse> for Use {
    fn from(list_use: ListUse) -> Self {
        match list_use {
            ListUse::Deselect => Self::Deselect,
            ListUse::Select => Self::Select,
        }
    }
}

/// Runs `assay quarantine`.
pub(crate) fn run(global: &Global, args: &QuarantineArgs) -> anyhow::Result<()> {
    let mut flaky = match &args.project {
        Some(project) => {
            let mut api = args.api.client(global.progress(), &args.connection)?;
            of_project(&mut api, project, clock::now())?
        }
        None => of_history(global, args)?,
    };
    flaky.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.name.cmp(&b.name)));
    let flaky_tests = flaky.len();
    flaky.retain(|test| test.unseen_for <= args.expire_after);
    if flaky_tests > flaky.len() {
        message!(
            "{} of {flaky_tests} flaky tests are not listed, because their last run is longer ago than --expire-after",
            flaky_tests - flaky.len()
        );
    }
    let running = flaky.len();
    let listed = flaky.into_iter().take(args.max);
    // A runner may fail if it is to run a test that no longer exists.
    let is_deselected = matches!(args.list_use, ListUse::Deselect);
    let tests: Vec<TestName> = listed
        .flat_map(|test| {
            let former = test.former_names.into_iter().filter(|_| is_deselected);
            std::iter::once(test.name).chain(former)
        })
        .collect();
    let (runner, list_use) = (args.format, args.list_use.into());
    let list = assay_cli_job::runners::list(&tests, runner, list_use);
    print_reasons(&list, running, args.max);
    if global.json {
        let left_out = list.left_out.iter().map(
            |(test, reason)| json!({ "testName": test.name, "filePath": test.file_path, "reason": reason }),
        );
        let value = json!({
            "list": list.text,
            "usage": assay_cli_job::runners::usage(runner, list_use),
            "tests": list.named,
            "leftOut": left_out.collect::<Vec<_>>(),
            "flaky": flaky_tests,
        });
        return output::print(true, &value, String::new);
    }
    let mut out = terminal::plain_out();
    out.write_all(list.text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// A flaky test.
struct FlakyTest {
    name: TestName,
    /// The names under which a branch that lacks a rename still has it.
    former_names: Vec<TestName>,
    score: f64,
    /// The time between its last run and the newest run.
    unseen_for: Duration,
}

impl FlakyTest {
    /// A test whose last run was at this time, if it is known.
    fn new(name: TestName, score: f64, last_run: Option<Timestamp>, newest_run: Timestamp) -> Self {
        let unseen_ms = last_run.map_or(0, |last_run| newest_run.since_ms(last_run));
        Self {
            name,
            former_names: Vec::new(),
            score,
            unseen_for: Duration::from_millis(u64::try_from(unseen_ms).unwrap_or(0)),
        }
    }
}

/// Prints which tests the list leaves out. `flaky_tests` tests are flaky and run.
fn print_reasons(list: &RunnerList, flaky_tests: usize, most: usize) {
    for (test, reason) in &list.left_out {
        let name = assay_reports::shown_name(&test.name);
        message!("not listed: {name}: {reason}");
    }
    if flaky_tests > most {
        message!(
            "{} of {flaky_tests} flaky tests are not listed, because --max is {most}",
            flaky_tests - most
        );
    }
}

/// A test with this number of failed runs in a row may be broken, so the list does not hide it.
const RED_RUNS: u32 = 3;

/// Whether the list names a test: it is flaky, and not red for good.
fn is_skipped(status: VerdictStatus, failure_streak: u32) -> bool {
    status == VerdictStatus::Flaky && failure_streak < RED_RUNS
}

/// The flaky tests of a project, by the server's flaky list.
fn of_project(api: &mut ReadApi, project: &str, now: Timestamp) -> anyhow::Result<Vec<FlakyTest>> {
    let project = api.project(Some(project))?;
    let (tests, _) = api.flaky_list(project, "&status=flaky")?;
    let answer = api.get(&format!("projects/{project}/runs?perPage=10"))?;
    let newest = match answer.pointer("/runs/0/startedAt") {
        Some(at) => Timestamp::deserialize(at).context("the server's answer is not a list of runs")?,
        None => now,
    };
    let listed = tests
        .into_iter()
        .filter(|entry| is_skipped(VerdictStatus::Flaky, entry.figures.failure_streak));
    Ok(listed
        .map(|entry| {
            let (test, score) = (entry.test(), entry.figures.flake_score);
            FlakyTest {
                former_names: entry.former_names,
                ..FlakyTest::new(test, score, entry.last_seen_at, newest)
            }
        })
        .collect())
}

/// The flaky tests of a history.
fn of_history(global: &Global, args: &QuarantineArgs) -> anyhow::Result<Vec<FlakyTest>> {
    let collector = assay_cli_local::offline::collect(
        global.progress(),
        &args.history,
        &args.stable_branch,
        None,
        false,
        clock::now(),
    )?;
    let analysis = collector.judge(None)?;
    let newest = analysis.bars().iter().map(|bar| bar.started_at).max();
    let newest = newest.unwrap_or(analysis.now);
    let flaky = analysis
        .reported()
        .iter()
        .map(|test| &test.entry)
        .filter(|entry| is_skipped(entry.status, entry.figures.failure_streak));
    Ok(flaky
        .map(|entry| {
            let name = TestName {
                name: entry.test_name.clone(),
                file_path: entry.file_path.clone(),
            };
            FlakyTest::new(name, entry.figures.flake_score, entry.last_seen_at, newest)
        })
        .collect())
}
