//! `assay issues`: keeps issues about the tests and errors that cost most.

use std::time::Duration;

use anyhow::Context as _;
use assay_answers::links;
use assay_cli_job::issues::{
    Action, Change, ErrorEntry, FixAnswer, Place, Problem, Section, Subject, TestEntry, dismissed_subjects,
    open_subjects, plan,
};
use assay_cli_local::sources::ci;
use assay_cli_remote::{
    codehost::{PostError, issues::Issues},
    server::read_api::{ReadApi, path_of_test},
};
use assay_cli_terminal::{message, misuse::Misuse, output, retry::Transient as _, values::duration};
use assay_domain::{issue::Issue, test::TestName};
use clap::{ArgGroup, Args};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{clock, environment, global::Global, server_flags::ProjectFlags};

/// Most tests without an issue whose fixes are looked up in a call.
const MOST_NEW: usize = 50;

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
    if host.is_none() && args.apply {
        let missing =
            "no job of GitHub or GitLab with a token; set GITHUB_TOKEN or GITLAB_TOKEN, or use --plan";
        return Err(Misuse(missing.to_owned()).into());
    }
    if host.is_none() {
        message!("no token of GitHub or GitLab, so no issue was read and each is listed as new");
    }
    let (mut api, project) = args.server.open(global)?;
    let (listed, answer) = api.flaky_list::<TestEntry>(project, "")?;
    let stable_branch = answer.pointer("/stable/branch").and_then(Value::as_str);
    let stable_branch = stable_branch
        .context("the server's answer has no stable branch")?
        .to_owned();
    if args.apply && job.context.branch.as_ref() != Some(&stable_branch) {
        message!("nothing is changed: issues are kept by the jobs of {stable_branch}");
        let nothing = json!({"applied": false, "changes": [], "left": 0});
        return output::print(global.json, &nothing, String::new);
    }
    let place = Place {
        project,
        pages: args.server.pages(),
        stable_branch,
        now: clock::now(),
    };
    let existing = host.as_ref().map(existing).transpose()?.unwrap_or_default();
    let problems = problems(&mut api, args, &place, &listed, &existing)?;
    let changes = plan(&problems, &existing);
    let most = usize::from(args.max);
    let left = changes.len().saturating_sub(most);
    let (mut done, mut made, mut refused) = (Vec::new(), Vec::new(), None);
    for change in changes.iter().take(most) {
        let mut number = change.number();
        if let Some(host) = host.as_ref().filter(|_| args.apply) {
            match apply(host, change) {
                Ok(of_issue) => number = Some(of_issue),
                Err(error) => {
                    let is_of_one_issue = matches!(error, PostError::Refused { .. }) && !error.is_transient();
                    let error = explained(error).context(heading(change, number));
                    if !is_of_one_issue {
                        let made = output::count(done.len(), "change");
                        return Err(error.context(format!("{made} made, and the next call goes on")));
                    }
                    // It must not keep the other changes from being made.
                    refused.get_or_insert(error);
                    continue;
                }
            }
            made.extend(number.filter(|_| change.action == Action::Create));
        }
        done.push((change, number));
    }
    if let Some(host) = host.as_ref().filter(|_| !made.is_empty()) {
        close_second(host, &problems, &made)?;
    }
    let entry = |(change, number): &(&Change<'_>, Option<u64>)| {
        let action = change.action.word();
        json!({"action": action, "number": number, "title": change.title(), "why": change.why()})
    };
    let entries: Vec<_> = done.iter().map(entry).collect();
    let answer = json!({"applied": args.apply, "changes": entries, "left": left});
    output::print(global.json, &answer, || {
        let line =
            |(change, number): &(&Change<'_>, _)| format!("{}\n  {}", heading(change, *number), change.why());
        let lines = done.iter().map(line);
        let last = match (done.is_empty(), left) {
            (true, _) => Some("No issue needs a change".to_owned()),
            (false, 0) => None,
            (false, left) => Some(format!("{left} more in the next calls, because of --max {most}")),
        };
        lines.chain(last).collect::<Vec<_>>().join("\n")
    })?;
    refused.map_or(Ok(()), Err)
}

/// What the server knows of the tests and errors that cost enough, and of those with an open issue. Those whose issue a person
/// closed are left out.
fn problems(
    api: &mut ReadApi<'_>,
    args: &IssuesArgs,
    place: &Place,
    listed: &[TestEntry],
    existing: &[Issue],
) -> anyhow::Result<Vec<Problem>> {
    #[derive(Deserialize)]
    struct Errors {
        errors: Vec<ErrorEntry>,
    }
    let least = u64::try_from(args.min_time_lost.as_millis()).unwrap_or(u64::MAX);
    let (open, dismissed) = (open_subjects(existing), dismissed_subjects(existing));
    let mut tests: Vec<TestName> = Vec::new();
    for subject in &open {
        let Subject::Test(test) = subject else { continue };
        let entry = listed.iter().find(|entry| entry.is(subject));
        let test = entry.map_or_else(|| test.clone(), TestEntry::test);
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    let (broken, flaky): (Vec<_>, Vec<_>) = listed
        .iter()
        .filter(|entry| entry.costs(least) && !open.iter().chain(&dismissed).any(|subject| entry.is(subject)))
        .partition(|entry| entry.is_broken());
    let new = broken.into_iter().chain(flaky).map(TestEntry::test);
    tests.extend(new.take(MOST_NEW));
    let mut problems = Vec::new();
    for test in tests {
        let entry = listed.iter().find(|entry| entry.test() == test);
        let path = path_of_test(place.project, &test.name, test.file_path.as_deref(), "/fix");
        let fixes = api.find(&path)?.map(FixAnswer::deserialize).transpose();
        let fixes = fixes
            .context("the server's answer is no list of fixes")?
            .unwrap_or_default();
        problems.push(Problem::of_test(test, entry, &fixes, place));
    }
    let branch = links::escaped(&place.stable_branch);
    let path = format!(
        "projects/{}/errors?days=7&perPage=50&branch={branch}",
        place.project
    );
    let answer = Errors::deserialize(api.get(&path)?);
    let Errors { errors } = answer.context("the server's answer is no list of errors")?;
    let is_open = |entry: &ErrorEntry| open.iter().any(|subject| entry.is(subject));
    let costly = errors
        .iter()
        .filter(|entry| entry.costs(args.min_runs) || is_open(entry));
    problems.extend(costly.map(|entry| Problem::of_error(entry, place)));
    Ok(problems)
}

fn existing(host: &Issues<'_>) -> anyhow::Result<Vec<Issue>> {
    let listed = host.list();
    listed.map_err(|error| explained(error).context("the issues were not read"))
}

/// Makes a change and returns the number of its issue. A comment comes before the text that remembers it, and is not written
/// twice.
fn apply(host: &Issues<'_>, change: &Change<'_>) -> Result<u64, PostError> {
    let problem = change.problem;
    let Some((issue, next)) = &change.issue else {
        let text = Section::of_new(problem).text(problem);
        return host.create(&problem.title, &text, problem.label);
    };
    if change.action != Action::Edit {
        host.comment(issue.number, &next.mark(), &change.why())?;
    }
    // People may have changed the text since the list was read.
    let present = host.body(issue.number)?;
    let closes = matches!(change.action, Action::Close | Action::CloseSecond(_));
    host.edit(issue.number, &next.written_into(&present, problem), closes)?;
    Ok(issue.number)
}

/// An error with what to do about it.
fn explained(error: PostError) -> anyhow::Error {
    let advice = match &error {
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

/// Closes an issue that was made here while a job at the same time made another one.
fn close_second(host: &Issues<'_>, problems: &[Problem], made: &[u64]) -> anyhow::Result<()> {
    for change in plan(problems, &existing(host)?) {
        let is_made = change.number().is_some_and(|number| made.contains(&number));
        if is_made && matches!(change.action, Action::CloseSecond(_)) {
            apply(host, &change).map_err(explained)?;
        }
    }
    Ok(())
}

fn heading(change: &Change<'_>, number: Option<u64>) -> String {
    let number = number.map_or_else(String::new, |number| format!(" #{number}"));
    format!("{}{number}: {}", change.action.word(), change.title())
}
