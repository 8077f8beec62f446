//! `assay issues`: keeps issues about the tests and errors that cost most.

use std::time::Duration;

use anyhow::Context as _;
use assay_answers::links;
use assay_cli_job::issues::{Change, Place, Problem, errors, plan, tests};
use assay_cli_local::sources::ci;
use assay_cli_remote::{
    codehost::{PostError, issues::Issues},
    server::read_api::{ReadApi, path_of_test},
};
use assay_cli_terminal::{message, misuse::Misuse, output, retry::Transient as _, values::duration};
use assay_domain::{
    issue::{Issue, IssueAction},
    verdict::VerdictEntry,
};
use clap::{ArgGroup, Args};
use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{clock, environment, global::Global, server_flags::ProjectFlags};

const EXAMPLES: &str = "\
For a job of the stable branch on GitHub (GITHUB_TOKEN with `issues: write`) or GitLab (GITLAB_TOKEN with the scope `api`). Every \
issue has the label assay. It is closed only when a fix held or an older one is about the same, and never opened again. Text \
that people add is kept.

Examples:
  With ASSAY_URL and ASSAY_READ_KEY as variables of the job; what it would do:
    assay issues --project storefront --plan
  Do it, for flaky tests that cost an hour in 14 days or more:
    assay issues --project storefront --apply --min-time-lost 1h";

/// Keep issues about the tests and errors that cost most
///
/// One issue for each broken test, each flaky test, and each error of several tests that cost more than a limit on the stable
/// branch. A comment says when the state changes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("how").required(true))]
pub(crate) struct IssuesArgs {
    /// Print what --apply would do
    #[arg(long, group = "how")]
    plan: bool,
    /// Open, comment and close issues
    #[arg(long, group = "how")]
    apply: bool,
    /// The time of failed attempts in 14 days from which a flaky test has an issue
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    min_time_lost: Duration,
    /// The runs in 7 days from which an error of several tests has an issue
    #[arg(long, value_name = "N", default_value_t = 5)]
    min_runs: u64,
    /// Most changes in one call; the most urgent first
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=50))]
    max: u16,
    #[command(flatten)]
    server: ProjectFlags,
}

/// Runs `assay issues`.
pub(crate) fn run(global: &Global, args: &IssuesArgs) -> anyhow::Result<()> {
    let (progress, deadline) = (global.progress(), args.server.connection.deadline());
    let job = ci::context(&environment::variable);
    let host = Issues::of_job(job.provider, &environment::variable, deadline, progress)?;
    if host.is_none() {
        if args.apply {
            let missing =
                "no job of GitHub or GitLab with a token; set GITHUB_TOKEN or GITLAB_TOKEN, or use --plan";
            return Err(Misuse(missing.to_owned()).into());
        }
        message!("no token of GitHub or GitLab, so no issue was read and each is listed as new");
    }
    let (mut api, project) = args.server.open(global)?;
    let (listed, answer) = api.flaky_list(project, "")?;
    let stable_branch = answer.pointer("/stable/branch").and_then(Value::as_str);
    let stable_branch = stable_branch.context("the server's answer has no stable branch")?;
    if args.apply && job.context.branch.as_deref() != Some(stable_branch) {
        message!("nothing is changed: issues are kept by the jobs of {stable_branch}");
        let nothing = json!({"applied": false, "changes": [], "left": 0});
        return output::print(global.json, &nothing, String::new);
    }
    let place = Place {
        project,
        pages: args.server.pages(),
        stable_branch: stable_branch.to_owned(),
        now: clock::now(),
    };
    let existing = host.as_ref().map(Issues::list).transpose();
    let existing = existing.map_err(|error| explained(error, false).context("the issues were not read"))?;
    let existing = existing.unwrap_or_default();
    let problems = problems(&mut api, args, &place, &listed, &existing)?;
    let mut changes = plan(&problems, &existing);
    let most = usize::from(args.max);
    let left = changes.len().saturating_sub(most);
    changes.truncate(most);
    let mut refused = None;
    if let Some(host) = host.filter(|_| args.apply) {
        (changes, refused) = apply_all(&host, changes)?;
    }
    let answer = json!({"applied": args.apply, "changes": changes, "left": left});
    output::print(global.json, &answer, || {
        let line = |change: &Change<'_>| format!("{}\n  {}", heading(change), change.why);
        let lines = changes.iter().map(line);
        let last = match (changes.is_empty(), left) {
            (true, _) => Some("No issue needs a change".to_owned()),
            (false, 0) => None,
            (false, left) => Some(format!("{left} more in the next calls, because of --max {most}")),
        };
        lines.chain(last).collect::<Vec<_>>().join("\n")
    })?;
    refused.map_or(Ok(()), Err)
}

/// What the server knows of the tests and errors that cost enough, and of those with an open issue.
fn problems(
    api: &mut ReadApi<'_>,
    args: &IssuesArgs,
    place: &Place,
    listed: &[VerdictEntry],
    existing: &[Issue],
) -> anyhow::Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for (test, entry) in tests(listed, existing, args.min_time_lost) {
        let path = path_of_test(place.project, &test.name, test.file_path.as_deref(), "/fix");
        let answer = api.find(&path)?;
        let fixes = answer.map(|answer| list(&answer, "fixes")).transpose()?;
        problems.push(Problem::of_test(test, entry, &fixes.unwrap_or_default(), place));
    }
    let (project, branch) = (place.project, links::escaped(&place.stable_branch));
    let path = format!("projects/{project}/errors?days=7&perPage=50&branch={branch}");
    let listed = list(&api.get(&path)?, "errors")?;
    let costly = errors(&listed, existing, args.min_runs);
    problems.extend(costly.map(|error| Problem::of_error(error, place)));
    Ok(problems)
}

fn list<E: DeserializeOwned>(answer: &Value, of: &str) -> anyhow::Result<Vec<E>> {
    let listed = answer.get(of).map(Vec::deserialize);
    let no_list = || format!("the server's answer is no list of {of}");
    listed.with_context(no_list)?.with_context(no_list)
}

/// Makes the changes. Returns those that were made, and the first refusal of a single one.
fn apply_all<'c>(
    host: &Issues<'_>,
    changes: Vec<Change<'c>>,
) -> anyhow::Result<(Vec<Change<'c>>, Option<anyhow::Error>)> {
    let (mut done, mut refused): (Vec<Change<'c>>, _) = (Vec::new(), None);
    for mut change in changes {
        match apply(host, &mut change) {
            Ok(()) => done.push(change),
            // It must not keep the other changes from being made.
            Err(error) if is_of_one(&error, &change) => {
                refused.get_or_insert(explained(error, true).context(heading(&change)));
            }
            Err(error) => {
                let made = output::count(done.len(), "change");
                let stopped = format!("{made} made, and the next call goes on");
                return Err(explained(error, false).context(heading(&change)).context(stopped));
            }
        }
    }
    Ok((done, refused))
}

/// Makes a change, which has the number of its issue then. A comment comes before the text that remembers it, and is not
/// written twice.
fn apply(host: &Issues<'_>, change: &mut Change<'_>) -> Result<(), PostError> {
    let Some(number) = change.number else {
        change.number = Some(host.create(
            change.title,
            &change.section.written_into("", change.problem),
            change.problem.label,
        )?);
        return Ok(());
    };
    if change.action != IssueAction::Edit {
        host.comment(number, &change.section.mark(), &change.why)?;
    }
    // People may have changed the text since the list was read.
    let present = host.issue(number)?;
    let closes = change.action == IssueAction::Close;
    host.edit(
        number,
        &change.section.written_into(present.text(), change.problem),
        closes,
    )
}

/// Whether the host refuses the change of one issue. The token may read issues, so an issue that it may not write may be
/// locked.
fn is_of_one(error: &PostError, change: &Change<'_>) -> bool {
    match error {
        PostError::Refused { .. } => !error.is_transient(),
        PostError::Forbidden { status, .. } => change.number.is_some() && matches!(status, 403 | 404),
        PostError::NoAnswer(_) | PostError::RateLimited { .. } | PostError::Unreadable(_) => false,
    }
}

/// An error with what to do about it. It may be of one issue.
fn explained(error: PostError, is_of_one: bool) -> anyhow::Error {
    let advice = match &error {
        PostError::Forbidden { .. } if is_of_one => {
            "unlock the issue, or give the token the right to write issues"
        }
        PostError::Forbidden { .. } => {
            "give it `permissions: issues: write` on GitHub, or the scope api and the role Reporter on GitLab"
        }
        PostError::Refused { status: 410, .. } => "turn on issues in the settings of the repository",
        PostError::Refused {
            status: 400 | 422, ..
        } => "shorten the issue's text, or close the issue; a closed one is not changed",
        PostError::Refused { .. }
        | PostError::NoAnswer(_)
        | PostError::RateLimited { .. }
        | PostError::Unreadable(_) => return error.into(),
    };
    anyhow::anyhow!("{error}; {advice}")
}

fn heading(change: &Change<'_>) -> String {
    let number = change.number.map(|number| format!(" #{number}"));
    let (action, number, title) = (change.action, number.unwrap_or_default(), change.title);
    format!("{action}{number}: {title}")
}
