//! `assay culprit`: which commit broke a test, although the test also fails by itself.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, bail};
use assay_cli_job::culprit::{Answer, History, Search};
use assay_cli_local::sources::values;
use assay_cli_remote::server::read_api::path_of_test;
use assay_cli_terminal::{message, misuse::Misuse, output};
use clap::Args;

use crate::{
    environment,
    forwarding::{self, Forwarding, Place},
    global::Global,
    server_flags::ProjectFlags,
    values::rate,
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

Exit status of CMD: 0 passed, 125 to 127 this commit cannot be run, any other failed.";

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
    server: ProjectFlags,
}

/// Runs `assay culprit`.
pub(crate) fn run(global: &Global, args: &CulpritArgs) -> anyhow::Result<ExitCode> {
    let has_server = args.server.has_key();
    let test = args.test.as_ref().filter(|_| has_server || args.good.is_none());
    let history = test.map(|test| history(global, args, test)).transpose()?;
    let (good, bad) = match (&args.good, &args.bad, &history) {
        (Some(good), Some(bad), _) => (good.clone(), bad.clone()),
        (.., Some(history)) => history.bounds()?,
        (.., None) => bail!(Misuse("--test, or --good and --bad, are required".to_owned())),
    };
    let mut search = Search::new(&args.root, (&good, &bad), history.as_ref(), args.flake_rate)?;
    message!("{}", search.in_words());
    if let Some(command) = &args.command {
        // A signal ends the command. Then the worktree is removed.
        let mut forwarding = Forwarding::start().context("signals cannot be forwarded")?;
        let mut signal = None;
        let done = search.run(global.progress(), args.most_runs, |folder| {
            let ended = forwarding.run(&mut of_commit(folder, command), Place::Group(None))?;
            signal = ended.signal;
            Ok(ended.status.code().filter(|_| ended.signal.is_none()))
        });
        if let (Err(error), Some(signal)) = (&done, signal) {
            message!("{error}");
            return Ok(ExitCode::from(forwarding::code_of(signal)));
        }
        done?;
    }
    let answer = Answer::of(&search);
    output::print(global.json, &answer.to_json(), || answer.in_words())?;
    Ok(ExitCode::SUCCESS)
}

/// The shell command on a commit. Its output goes to standard error. Old code needs no secret of this job.
fn of_commit(folder: &Path, command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(folder)
        .stdout(io::stderr());
    for secret in environment::secrets() {
        shell.env_remove(secret);
    }
    shell
}

/// The test's runs, from the server.
fn history(global: &Global, args: &CulpritArgs, test: &str) -> anyhow::Result<History> {
    let (mut api, project) = args.server.open(global)?;
    let path = path_of_test(project, test, args.file.as_deref(), "?days=90");
    let answer = api.get(&path)?;
    Ok(History::of_answer(&answer)?)
}
