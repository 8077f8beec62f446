//! `assay culprit`: which commit broke a test, although the test also fails by itself.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail, ensure};
use assay_console::{message, misuse::Misuse, output};
use assay_gate::plan::bisection::{Bisection, NextStep};
use assay_sources::values;
use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    git::git,
    global::Global,
    server_flags::{ConnectionFlags, ReadApiFlags},
};

const EXAMPLES: &str = "\
The commits between the last green run of the stable branch and the first failed one are searched. A failure may be a flake, so \
that the answer is a probability for each commit, and the next run is the one that teaches most.

Examples:
  Which commit to run next, and how often, with ASSAY_URL and ASSAY_READ_KEY as variables:
    assay culprit --project storefront --test 'cart > pays'
  The whole search, in a worktree of its own:
    assay culprit --project storefront --test 'cart > pays' --run 'npm ci && npx jest cart.test.js -t pays'
  Without a server:
    assay culprit --good v1.4 --bad main --flake-rate 0.1 --run 'go test -count=1 -run TestPays ./cart'

Exit status of CMD: 0 passed, 125 this commit cannot be run, any other failed.";

/// The exit status with which a command says that it cannot test a commit, as for `git bisect run`.
const CANNOT_RUN: i32 = 125;
/// The largest number of commits of a search.
const MOST_COMMITS: usize = 10_000;
/// The flake rate of a test of which nothing is known.
const USUAL_RATE: f64 = 0.05;
/// How many commits an answer lists.
const LISTED: usize = 10;

/// Find the commit that broke a test which also fails by itself
///
/// Asks the server for the last green and the first failed run of the stable branch, and for how often the test fails by itself.
/// Prints P(each commit broke it) and which commit to run next. With --run it runs the commits in a git worktree.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CulpritArgs {
    /// The test's stored name
    #[arg(long, value_name = "NAME", required_unless_present = "good")]
    test: Option<String>,
    /// The test's stored file, if several tests have the name
    #[arg(long, value_name = "PATH", requires = "test")]
    file: Option<String>,
    /// The project: its id or name
    #[arg(long)]
    project: Option<String>,
    /// A commit before the breakage; without it, that of the last green run
    #[arg(long, value_name = "COMMIT", value_parser = values::line, requires = "bad")]
    good: Option<String>,
    /// A commit after it; without it, that of the first failed run since
    #[arg(long, value_name = "COMMIT", value_parser = values::line, requires = "good")]
    bad: Option<String>,
    /// How often the test fails on good code, from 0 to 1; without it, as in its history
    #[arg(long, value_name = "RATE", value_parser = rate)]
    flake_rate: Option<f64>,
    /// Run this shell command on commits until the culprit is found
    #[arg(long = "run", value_name = "CMD")]
    command: Option<String>,
    /// The largest number of runs
    #[arg(long, value_name = "N", default_value_t = 100, requires = "command")]
    most_runs: u32,
    /// The folder of the repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    #[command(flatten)]
    api: ReadApiFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or_else(|| "expected a rate from 0 to 1".to_owned())
}

/// Runs `assay culprit`.
pub(crate) fn run(global: &Global, args: &CulpritArgs) -> anyhow::Result<()> {
    let history = match &args.test {
        Some(test) => Some(History::of(global, args, test)?),
        None => None,
    };
    let (good, bad) = match (&args.good, &args.bad, &history) {
        (Some(good), Some(bad), _) => (good.clone(), bad.clone()),
        (.., Some(history)) => history.bounds()?,
        (.., None) => bail!(Misuse("--test, or --good and --bad, are required".to_owned())),
    };
    let commits = commits(&args.root, &good, &bad)?;
    let known = args
        .flake_rate
        .or_else(|| history.as_ref().and_then(History::flake_rate));
    let flake_rate = known.unwrap_or(USUAL_RATE);
    let mut bisection = Bisection::new(commits.len(), flake_rate);
    let places: HashMap<&str, usize> = commits
        .iter()
        .enumerate()
        .map(|(place, commit)| (commit.as_str(), place))
        .collect();
    for (commit, failed) in history.iter().flat_map(History::results) {
        if let Some(place) = places.get(commit) {
            bisection.add(*place, failed);
        }
    }
    // The failed commit of the search is known to have failed once, where no history has it.
    if history.is_none() {
        bisection.add(commits.len() - 1, true);
    }
    message!(
        "{} from {} to {}; the test fails by itself in {:.1} % of its runs",
        output::count(u64::try_from(commits.len()).unwrap_or(u64::MAX), "commit"),
        short(commits.first().map_or("", String::as_str)),
        short(&bad),
        100.0 * flake_rate
    );
    let mut runs = 0;
    if let Some(command) = &args.command {
        runs = search(args, &commits, &mut bisection, command)?;
    }
    answer(global, &args.root, &commits, &bisection, runs)
}

/// Runs commits in a worktree until the culprit is found, and returns the number of runs.
fn search(
    args: &CulpritArgs,
    commits: &[String],
    bisection: &mut Bisection,
    command: &str,
) -> anyhow::Result<u32> {
    let mut worktree = None;
    let mut runs = 0;
    while let NextStep::Run { commit: place, .. } = bisection.next_step() {
        if runs >= args.most_runs {
            message!("stopped after {runs} runs (--most-runs)");
            break;
        }
        let commit = commits.get(place).context("the commit of the next run")?;
        let worktree = match &mut worktree {
            Some(worktree) => worktree,
            None => worktree.insert(Worktree::new(&args.root, commit)?),
        };
        worktree.check_out(commit)?;
        runs += 1;
        let status = Command::new("sh")
            .args(["-c", command])
            .current_dir(&worktree.folder)
            .stdin(Stdio::null())
            .stdout(std::io::stderr())
            .status()
            .context("--run")?;
        let result = match status.code() {
            Some(CANNOT_RUN) => {
                bisection.skip(place);
                "cannot be run"
            }
            Some(0) => {
                bisection.add(place, false);
                "passed"
            }
            Some(_) => {
                bisection.add(place, true);
                "failed"
            }
            None => bail!("the command was ended by a signal on {}", short(commit)),
        };
        message!("run {runs}: {} {result}", short(commit));
    }
    Ok(runs)
}

/// Prints the answer.
fn answer(
    global: &Global,
    repository: &Path,
    commits: &[String],
    bisection: &Bisection,
    runs: u32,
) -> anyhow::Result<()> {
    let posterior = bisection.posterior();
    let mut likely: Vec<(&String, f64)> = commits.iter().zip(posterior.of_commit.iter().copied()).collect();
    likely.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    likely.truncate(LISTED);
    let commit = |place: usize| commits.get(place).map_or("", String::as_str);
    let (word, next) = match bisection.next_step() {
        NextStep::Found(place) => ("found", json!({ "commit": commit(place) })),
        NextStep::NotBroken => ("not_broken", Value::Null),
        NextStep::Run { commit: place, times } => {
            ("open", json!({ "commit": commit(place), "times": times }))
        }
        NextStep::Stuck => ("stuck", Value::Null),
    };
    let value = json!({
        "outcome": word,
        "commit": next.get("commit").filter(|_| word == "found"),
        "next": Some(&next).filter(|_| word == "open"),
        "commits": likely.iter().map(|(commit, probability)| json!({"commit": commit, "probability": probability})).collect::<Vec<_>>(),
        "none": posterior.none,
        "searched": commits.len(),
        "runs": runs,
    });
    output::print(global.json, &value, || {
        let mut text = match bisection.next_step() {
            NextStep::Found(place) => format!("{} broke the test\n", subject(repository, commit(place))),
            NextStep::NotBroken => "No commit broke the test; it fails by itself\n".to_owned(),
            NextStep::Stuck => "No commit that can be run tells more\n".to_owned(),
            NextStep::Run { commit: place, times } => format!(
                "Run {} next, until it passes or has failed {times} times\n",
                subject(repository, commit(place))
            ),
        };
        let rows = likely.iter().filter(|(_, probability)| *probability >= 0.001);
        let rows =
            rows.map(|(commit, probability)| vec![subject(repository, commit), format!("{probability:.3}")]);
        let none = std::iter::once(vec!["no commit".to_owned(), format!("{:.3}", posterior.none)]);
        text += &output::table(&["COMMIT", "P"], rows.chain(none).collect::<Vec<_>>());
        text
    })
}

/// A commit and its subject on one line.
fn subject(repository: &Path, commit: &str) -> String {
    let line = git(repository, &["log", "-1", "--format=%h %s", commit]);
    let line = line.unwrap_or_else(|_| short(commit).to_owned());
    assay_reports::shown_name(line.trim()).chars().take(72).collect()
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// The commits after `good` until `bad`, oldest first.
fn commits(repository: &Path, good: &str, bad: &str) -> anyhow::Result<Vec<String>> {
    let range = format!("{good}..{bad}");
    let listed = git(
        repository,
        &["rev-list", "--reverse", "--first-parent", &range, "--"],
    );
    let listed =
        listed.with_context(|| format!("the commits {range} are not in this repository; fetch them"))?;
    let commits: Vec<String> = listed.lines().map(str::to_owned).collect();
    ensure!(!commits.is_empty(), "there is no commit in {range}");
    ensure!(
        commits.len() <= MOST_COMMITS,
        "{range} has {} commits, more than {MOST_COMMITS}; give a later --good",
        commits.len()
    );
    Ok(commits)
}

/// A worktree of this repository, removed at the end.
struct Worktree {
    /// Holds the folder of the worktree.
    _parent: tempfile::TempDir,
    folder: PathBuf,
    repository: PathBuf,
}

impl Worktree {
    fn new(repository: &Path, commit: &str) -> anyhow::Result<Self> {
        let parent = tempfile::tempdir().context("a temporary folder")?;
        let folder = parent.path().join("worktree");
        let name = folder.display().to_string();
        git(
            repository,
            &["worktree", "add", "--quiet", "--detach", &name, commit],
        )?;
        Ok(Self {
            _parent: parent,
            folder,
            repository: repository.to_path_buf(),
        })
    }

    fn check_out(&self, commit: &str) -> anyhow::Result<()> {
        git(
            &self.folder,
            &["checkout", "--quiet", "--force", "--detach", commit],
        )
        .map(drop)
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let name = self.folder.display().to_string();
        if let Err(error) = git(&self.repository, &["worktree", "remove", "--force", &name]) {
            message!("the worktree is not removed: {error:#}");
        }
    }
}

/// The test's runs on the stable branch, oldest first.
struct History {
    runs: Vec<Occurrence>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TestDetail {
    stable_branch: String,
    occurrences: Vec<Occurrence>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Occurrence {
    branch: Option<String>,
    tested_revision: Option<String>,
    commit_sha: Option<String>,
    started_at: String,
    status: String,
    any_failed_attempt: bool,
}

impl Occurrence {
    fn commit(&self) -> Option<&str> {
        self.tested_revision.as_deref().or(self.commit_sha.as_deref())
    }

    fn failed(&self) -> bool {
        !["passed", "skipped"].contains(&self.status.as_str())
    }
}

impl History {
    fn of(global: &Global, args: &CulpritArgs, test: &str) -> anyhow::Result<Self> {
        let mut api = args.api.client(global.json, &args.connection)?;
        let project = api.project(args.project.as_deref())?;
        let file = args
            .file
            .as_ref()
            .map_or_else(String::new, |file| format!("&filePath={}", encoded(file)));
        let path = format!("projects/{project}/tests/{}?days=90{file}", encoded(test));
        let detail =
            TestDetail::deserialize(&api.get(&path)?).context("the server's answer is not about a test")?;
        let mut runs: Vec<Occurrence> = detail
            .occurrences
            .into_iter()
            .filter(|run| {
                run.branch.as_deref() == Some(detail.stable_branch.as_str()) && run.status != "skipped"
            })
            .collect();
        // RFC 3339 in UTC sorts as text.
        runs.sort_by(|left, right| left.started_at.cmp(&right.started_at));
        Ok(Self { runs })
    }

    /// The index of the last green run that a failure follows.
    fn last_green(&self) -> Option<usize> {
        let last_failed = self.runs.iter().rposition(Occurrence::failed)?;
        self.runs.iter().take(last_failed).rposition(|run| !run.failed())
    }

    /// The commits of the last green run, and of the newest failed one.
    fn bounds(&self) -> anyhow::Result<(String, String)> {
        let green = self.last_green().context(
            "the stable branch has no failed run of this test after a green one in 90 days; give --good and --bad",
        )?;
        let bad = self.runs.iter().skip(green + 1).find(|run| run.failed());
        let commit = |run: Option<&Occurrence>| {
            let commit = run.and_then(Occurrence::commit);
            commit
                .map(str::to_owned)
                .context("the run names no commit; give --good and --bad")
        };
        Ok((commit(self.runs.get(green))?, commit(bad)?))
    }

    /// The share of runs until the last green one in which an attempt failed, drawn towards the usual rate.
    fn flake_rate(&self) -> Option<f64> {
        let green = self.last_green()?;
        let before = self.runs.iter().take(green + 1);
        let (mut failed, mut all) = (20.0 * USUAL_RATE, 20.0);
        for run in before {
            all += 1.0;
            failed += if run.any_failed_attempt { 1.0 } else { 0.0 };
        }
        Some(failed / all)
    }

    /// The commit and whether it failed, of each run.
    fn results(&self) -> impl Iterator<Item = (&str, bool)> {
        self.runs
            .iter()
            .filter_map(|run| Some((run.commit()?, run.failed())))
    }
}

/// A text in a path or a query.
fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, NON_ALPHANUMERIC)
}
