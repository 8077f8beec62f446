//! `assay verify`: whether a flaky test is fixed.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail};
use assay_cli_job::{
    gate::selector::Selector,
    runners::{Runner, selection},
    verify::{self, KnownFlake, NotVerified, Plan, Verified},
};
use assay_cli_local::sources::{ci, git::git, report_flags::FormatChoice, values as sources};
use assay_cli_remote::{
    codehost::ReportTo,
    server::{address::MissingSetting, http, ingest::Server, read_api::path_of_test},
};
use assay_cli_terminal::{
    message,
    misuse::Misuse,
    output,
    retry::{self, Backoff},
    values::duration,
};
use assay_domain::{
    fix::{FixOutcome, NewFix, RunMode, is_stored_commit},
    id::ProjectId,
    revision::{SHORTEST_COMMIT, tested_or_commit},
    test::TestName,
};
use assay_ingest::ci::CiContext;
use clap::{Args, builder::TypedValueParser as _};

use crate::{
    environment, errors, global::Global, repeated::Repeated, runner_flag, server_flags::ProjectFlags,
    upload_flags::server_of, values::rate,
};

/// Exit statuses.
const NOT_FIXED: u8 = 1;
const UNKNOWN: u8 = 3;

const EXAMPLES: &str = "\
The command runs again and again with the tests with which this one is known to fail: with its suite, unless an earlier `assay \
verify` on unfixed code saw it fail with fewer. It is proved if its rate is at most 1 %, or a tenth of the rate before, with a \
probability of .95. A pass on retry counts as a failure.

A larger time-out, a retry, a weaker assertion or a skipped test is no fix.

Examples:
  With ASSAY_URL, ASSAY_READ_KEY and ASSAY_INGEST_KEY as variables of the job:
    assay verify --project storefront --test 'cart > pays' --report junit.xml -- pytest --junitxml=junit.xml
  For at most half an hour, with the tests of its file:
    assay verify --test 'cart > pays' --budget 30m --mode with_file -- npx jest
  Without a server, for a test that failed in a tenth of its runs:
    assay verify --test 'cart > pays' --flake-rate 0.1 -- npx playwright test
  Claim that a commit fixed it, so that the stable branch is watched:
    assay verify --project storefront --test 'cart > pays' --claim --commit 4f1c2a9

Exit status: 0 proved or claimed, 1 still flaky or another error, 2 wrong usage, 3 not provable in this budget, or the command \
or the server failed.";

/// Prove that a flaky test is fixed, by repeating it within a budget
///
/// Asks the server how often the test failed before, and runs the command until its rate is known to be low, until it fails, or
/// until the budget ends. Stores the answer with the commit if there is an ingest key. It changes no verdict.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// The test's stored name
    #[arg(long, value_name = "NAME")]
    test: String,
    /// The test's stored file, if several tests have the name
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// The time for all runs: 90s, 10m, 1h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    budget: Duration,
    /// With which tests it runs; without it, those with which it is known to fail
    #[arg(long, value_parser = modes())]
    mode: Option<RunMode>,
    /// How often the test failed before, from 0 to 1; the server's rate counts if it is lower
    #[arg(long, value_name = "RATE", value_parser = rate)]
    flake_rate: Option<f64>,
    /// Claim that --commit fixed the test, and run nothing
    #[arg(long, conflicts_with = "command")]
    claim: bool,
    /// Reports that the command writes, as for `assay run`
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    report: Vec<PathBuf>,
    /// The report's format
    #[arg(long, default_value = "auto", value_parser = sources::formats(None).try_map(|word| FormatChoice::parse(&word)))]
    format: FormatChoice,
    /// The checkout of the tested sources
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The suite of this job, which names its variant; without it, CI's job
    #[arg(long, value_parser = sources::line)]
    suite: Option<String>,
    /// The commit with the fix; without it, CI's or that of the checkout
    #[arg(long, value_name = "SHA", value_parser = sources::line)]
    commit: Option<String>,
    /// The runner of the command, if its words do not name it
    #[arg(long, value_name = "RUNNER", value_parser = runner_flag::runners())]
    runner: Option<Runner>,
    #[command(flatten)]
    server: ProjectFlags,
    /// The command and its arguments
    #[arg(last = true, required_unless_present = "claim", value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn modes() -> impl clap::builder::TypedValueParser<Value = RunMode> {
    let words = RunMode::ALL.iter().map(|mode| mode.as_str());
    clap::builder::PossibleValuesParser::new(words).try_map(|word| word.parse::<RunMode>())
}

/// Runs `assay verify`.
pub(crate) fn run(global: &Global, args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    match verify(global, args) {
        Err(error) if !error.is::<Misuse>() => {
            errors::print(&error.context("nothing is known of the fix"));
            Ok(ExitCode::from(UNKNOWN))
        }
        done => done,
    }
}

fn verify(global: &Global, args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    if args.flake_rate.is_some_and(|rate| rate <= 0.0) {
        return Err(Misuse(
            "--flake-rate must be above 0: nothing proves that a test fails less often".to_owned(),
        )
        .into());
    }
    let ci = ci::context(&environment::variable);
    let (known, test, project) = known(global, args, &ci)?;
    let destination = match Destination::of(global, args, &ci, project) {
        Err(error) if args.claim || error.is::<Misuse>() => return Err(error),
        destination => destination,
    };
    if args.claim {
        let known = known.as_ref().map(|known| known.rate);
        destination?.store(global, args, &test, known, None)?;
        let json = serde_json::json!({ "outcome": "claimed", "test": test });
        output::print(global.json, &json, || {
            "claimed; the stable branch is watched\n".to_owned()
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let known = known.context(
        "the test did not fail in the last 14 days, so its rate is unknown; give the rate of before as --flake-rate",
    )?;
    let runner = args.runner.or_else(|| selection::runner_of(&args.command));
    if let Some(reason) = runner.and_then(|runner| selection::unreachable(&args.command, runner))
        && args.mode.unwrap_or(known.mode) != RunMode::InSuite
    {
        return Err(Misuse(reason.to_owned()).into());
    }
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let mut command = Repeated {
        global,
        command: &args.command,
        report: &args.report,
        format: args.format.0,
        root: args.root.as_deref(),
        ci: &ci,
        reports_to: ReportTo::default(),
        folder: folder.path(),
        to_stderr: true,
        files: Vec::new(),
    };
    let plan = Plan {
        test: &test,
        known: &known,
        mode: args.mode,
        budget: args.budget,
        runner,
    };
    let select = |runner, report: &_| Selector::new(runner, report, folder.path().to_path_buf());
    let verified = verify::verify(&plan, &mut command, select).map_err(|error| match error {
        NotVerified::Command(error) => error,
        error @ (NotVerified::NoReport | NotVerified::NoTest(_)) => anyhow!("{error}"),
        error @ NotVerified::NoRunner(_) => Misuse(error.to_string()).into(),
    })?;
    output::print(global.json, &verified.to_json(), || verified.in_words())?;
    let rate = Some(verified.rate_before);
    let stored = destination
        .and_then(|destination| destination.store(global, args, &verified.test, rate, Some(&verified)));
    if let Err(error) = stored {
        let text = |why: &str| format!("the answer is not stored: {why}");
        match error.downcast_ref::<MissingSetting>() {
            Some(missing) => message!("{}", text(missing.message())),
            None => errors::warn(ci.provider, &text(&format!("{error:#}"))),
        }
    }
    Ok(match verified.check.outcome {
        FixOutcome::Proved => ExitCode::SUCCESS,
        FixOutcome::StillFlaky | FixOutcome::Differs => ExitCode::from(NOT_FIXED),
        FixOutcome::NotProvable => ExitCode::from(UNKNOWN),
    })
}

/// What the server knows of the test, with its stored name and its project. Without a server, only a given rate is known.
fn known(
    global: &Global,
    args: &VerifyArgs,
    ci: &CiContext,
) -> anyhow::Result<(Option<KnownFlake>, TestName, Option<ProjectId>)> {
    let has_server = args.server.has_key();
    if let (Some(rate), false) = (args.flake_rate, has_server) {
        let test = TestName {
            name: args.test.clone(),
            file_path: args.file.clone(),
        };
        return Ok((Some(KnownFlake::of_rate(rate)), test, None));
    }
    let opened = args.server.open(global);
    let (mut api, project) =
        opened.context("only a server or --flake-rate tells how often the test failed before")?;
    let answer = api.get(&path_of_test(project, &args.test, args.file.as_deref(), "/fix"))?;
    let suite = args.suite.as_deref().or(ci.context.suite.as_deref());
    let (known, test) = KnownFlake::of_answer(&answer, suite, args.flake_rate)?;
    Ok((known, test, Some(project)))
}

/// The commit that a user names: a name or the beginning of an id that the checkout knows, else an id.
fn commit_of(name: &str) -> anyhow::Result<String> {
    let commit = format!("{name}^{{commit}}");
    let known = git(
        Path::new("."),
        &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit],
    );
    let id = known.map_or_else(|_| name.to_ascii_lowercase(), |id| id.trim().to_owned());
    match is_stored_commit(&id) {
        true => Ok(id),
        false => Err(Misuse(format!(
            "--commit {name} is no commit of this checkout; give at least {SHORTEST_COMMIT} characters of its id"
        ))
        .into()),
    }
}

/// Where the answer or the claim is stored, and the commit with the fix. It is known before the command runs.
struct Destination {
    server: Server,
    revision: String,
}

impl Destination {
    /// Only a clean checkout has the code of its commit.
    fn of(
        global: &Global,
        args: &VerifyArgs,
        ci: &CiContext,
        project: Option<ProjectId>,
    ) -> anyhow::Result<Self> {
        let url = environment::variable("ASSAY_INGEST_URL");
        let server = server_of(url.as_deref(), None, &args.server.connection)?;
        let mut backoff = Backoff::until(args.server.connection.deadline());
        let key = retry::until_expired(global.progress(), &mut backoff, "no answer yet", || server.key())?;
        let of_key = key.pointer("/project/id").and_then(serde_json::Value::as_str);
        if project.is_some_and(|project| of_key != Some(&project.to_string())) {
            let name = key.pointer("/project/name").and_then(serde_json::Value::as_str);
            return Err(Misuse(format!(
                "the ingest key is of project {:?}, not of the project that the read key and --project name; use keys of one \
                 project",
                name.unwrap_or_default()
            ))
            .into());
        }
        let here = |arguments: &[&str]| git(Path::new("."), arguments).ok();
        let context = &ci.context;
        let of_ci = || tested_or_commit(context.tested_revision.clone(), context.commit_sha.clone());
        let of_checkout = || Some(here(&["rev-parse", "HEAD"])?.trim().to_owned());
        let named = args.commit.as_deref().map(commit_of).transpose()?;
        let revision = named.or_else(of_ci).or_else(of_checkout);
        let changed = || here(&["status", "--porcelain", "--untracked-files=no"]);
        if !args.claim && args.commit.is_none() && changed().is_some_and(|files| !files.is_empty()) {
            bail!(
                "the checkout has changes that are in no commit, so the answer is not about its commit; commit them first, or name \
                 the commit that has them as --commit"
            );
        }
        Ok(Self {
            server,
            revision: revision.context("no commit is known; give --commit")?,
        })
    }

    fn store(
        &self,
        global: &Global,
        args: &VerifyArgs,
        test: &TestName,
        rate_before: Option<f64>,
        verified: Option<&Verified>,
    ) -> anyhow::Result<()> {
        let fix = NewFix {
            test_name: test.name.clone(),
            file_path: test.file_path.clone(),
            revision: self.revision.clone(),
            rate_before,
            check: verified.map(|verified| verified.check),
        };
        let deadline = args.server.connection.deadline();
        let mut backoff = Backoff::until(deadline);
        let sent = retry::until_expired(
            global.progress(),
            &mut backoff,
            "the answer is not stored yet",
            || self.server.store_fix(&fix, http::until(deadline)),
        );
        sent.map(drop).map_err(anyhow::Error::new)
    }
}
