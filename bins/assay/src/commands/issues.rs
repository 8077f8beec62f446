//! `assay issues`: keeps issues about the tests and errors that cost most.

use std::time::Duration;

use anyhow::Context as _;
use assay_answers::links;
use assay_cli_job::issues::{
    Action, Change, ErrorEntry, ExistingIssue, FixAnswer, Place, Problem, Section, Subject, TestEntry,
    dismissed_subjects, open_subjects, plan,
};
use assay_cli_local::sources::ci;
use assay_cli_remote::{
    codehost::{
        PostError,
        issues::{Issue, Issues},
    },
    server::read_api::{ReadApi, path_of_test},
};
use assay_cli_terminal::{message, misuse::Misuse, output, retry::Transient as _, values::duration};
use assay_domain::test::TestName;
use clap::{ArgGroup, Args};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    clock, environment,
    global::Global,
    server_flags::{ConnectionFlags, ReadApiFlags},
};

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
    /// The project: its id or name
    #[arg(long)]
    project: Option<String>,
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
    api: ReadApiFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Runs `assay issues`.
pub(crate) fn run(global: &Global, args: &IssuesArgs) -> anyhow::Result<()> {
    let progress = global.progress();
    let job = ci::context(&environment::variable);
    let host = Issues::of_job(
        job.provider,
        &environment::variable,
        args.connection.deadline(),
        progress,
    )?;
    if host.is_none() && args.apply {
        return Err(Misuse(
            "no job of GitHub or GitLab with a token; set GITHUB_TOKEN or GITLAB_TOKEN, or use --plan"
                .to_owned(),
        )
        .into());
    }
    if host.is_none() {
        message!("no token of GitHub or GitLab, so no issue was read and each is listed as new");
    }
    let mut api = args.api.client(progress, &args.connection)?;
    let project = api.project(args.project.as_deref())?;
    let (listed, answer) = api.flaky_list::<TestEntry>(project, "")?;
    let stable_branch = answer.pointer("/stable/branch").and_then(Value::as_str);
    let stable_branch = stable_branch
        .context("the server's answer has no stable branch")?
        .to_owned();
    if args.apply && job.context.branch.as_ref() != Some(&stable_branch) {
        message!("nothing is changed: issues are kept by the jobs of {stable_branch}");
        return output::print(
            global.json,
            &json!({"applied": false, "changes": [], "left": 0}),
            String::new,
        );
    }
    let place = Place {
        project,
        pages: args.api.pages(),
        stable_branch,
        now: clock::now(),
    };
    let existing = host.as_ref().map(existing).transpose()?.unwrap_or_default();
    let problems = problems(&mut api, args, &place, &listed, &existing)?;
    let changes = plan(&problems, &existing);
    let most = usize::from(args.max);
    let left = changes.len().saturating_sub(most);
    let (mut done, mut refused) = (Vec::new(), None);
    let mut made: Vec<u64> = Vec::new();
    for change in changes.iter().take(most) {
        let number = match host.as_ref().filter(|_| args.apply) {
            Some(host) => match apply(host, change) {
                Ok(number) => number,
                Err(error) => {
                    let is_of_one_issue = matches!(error, PostError::Refused { .. }) && !error.is_transient();
                    let error = explained(error).context(words(change, number(change)));
                    if !is_of_one_issue {
                        let made = output::count(done.len(), "change");
                        return Err(error.context(format!("{made} made, and the next call goes on")));
                    }
                    // It must not keep the other changes from being made.
                    refused.get_or_insert(error);
                    continue;
                }
            },
            None => number(change),
        };
        if change.action == Action::Create {
            made.extend(number);
        }
        done.push((change, number));
    }
    if let Some(host) = host.as_ref().filter(|_| !made.is_empty() && args.apply) {
        close_second(host, &problems, &made)?;
    }
    let entry = |(change, number): &(&Change<'_>, Option<u64>)| {
        json!({
            "action": action(change.action), "number": number, "title": change.title(), "why": change.why(),
        })
    };
    let entries: Vec<_> = done.iter().map(entry).collect();
    output::print(
        global.json,
        &json!({"applied": args.apply, "changes": entries, "left": left}),
        || {
            let mut lines: Vec<String> = done
                .iter()
                .map(|(change, number)| words(change, *number))
                .collect();
            match (lines.is_empty(), left) {
                (true, _) => lines.push("No issue needs a change".to_owned()),
                (false, 0) => {}
                (false, left) => {
                    lines.push(format!("{left} more in the next calls, because of --max {most}"))
                }
            }
            lines.join("\n")
        },
    )?;
    refused.map_or(Ok(()), Err)
}

/// What the server knows of the tests and errors that cost enough, and of those with an open issue. Those whose issue a person
/// closed are left out.
fn problems(
    api: &mut ReadApi<'_>,
    args: &IssuesArgs,
    place: &Place,
    listed: &[TestEntry],
    existing: &[ExistingIssue],
) -> anyhow::Result<Vec<Problem>> {
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
        let fixes = match api.find(&path)? {
            Some(answer) => {
                FixAnswer::deserialize(&answer).context("the server's answer is no list of fixes")?
            }
            None => FixAnswer::default(),
        };
        problems.push(Problem::of_test(test, entry, &fixes, place));
    }
    problems.extend(errors(api, args, place, &open)?);
    Ok(problems)
}

fn errors(
    api: &mut ReadApi<'_>,
    args: &IssuesArgs,
    place: &Place,
    open: &[Subject],
) -> anyhow::Result<Vec<Problem>> {
    #[derive(Deserialize)]
    struct Errors {
        errors: Vec<ErrorEntry>,
    }
    let path = format!("projects/{}/errors?days=7&perPage=50", place.project);
    let branch = links::escaped(&place.stable_branch);
    let answer = api.get(&format!("{path}&branch={branch}"))?;
    let Errors { errors } =
        Errors::deserialize(&answer).context("the server's answer is no list of errors")?;
    let is_open = |entry: &ErrorEntry| open.iter().any(|subject| entry.is(subject));
    let costly = errors
        .iter()
        .filter(|entry| entry.costs(args.min_runs) || is_open(entry));
    Ok(costly.map(|entry| Problem::of_error(entry, place)).collect())
}

fn existing(host: &Issues<'_>) -> anyhow::Result<Vec<ExistingIssue>> {
    let issues = host
        .list()
        .map_err(|error| explained(error).context("the issues were not read"))?;
    let existing = |issue: Issue| ExistingIssue {
        number: issue.number,
        title: issue.title,
        body: issue.body,
        open: issue.open,
    };
    Ok(issues.into_iter().map(existing).collect())
}

/// Makes a change and returns the number of its issue. A comment comes before the text that remembers it, and is not written
/// twice.
fn apply(host: &Issues<'_>, change: &Change<'_>) -> Result<Option<u64>, PostError> {
    let problem = change.problem;
    let Some((issue, next)) = &change.issue else {
        let text = Section::of_new(problem).text(problem);
        return host.create(&problem.title(), &text, problem.label).map(Some);
    };
    if change.action != Action::Edit {
        host.comment(issue.number, &next.mark(), &change.why())?;
    }
    // People may have changed the text since the list was read.
    let present = host.body(issue.number)?;
    let closes = matches!(change.action, Action::Close | Action::CloseSecond(_));
    host.edit(issue.number, &next.written_into(&present, problem), closes)?;
    Ok(number(change))
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
        let is_made = number(&change).is_some_and(|number| made.contains(&number));
        if is_made && matches!(change.action, Action::CloseSecond(_)) {
            apply(host, &change).map_err(explained)?;
        }
    }
    Ok(())
}

fn number(change: &Change<'_>) -> Option<u64> {
    change.issue.as_ref().map(|(issue, _)| issue.number)
}

const fn action(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Comment => "comment",
        Action::Close | Action::CloseSecond(_) => "close",
        Action::Edit => "edit",
    }
}

fn words(change: &Change<'_>, number: Option<u64>) -> String {
    let number = number.map_or_else(String::new, |number| format!(" #{number}"));
    format!(
        "{}{number}: {}\n  {}",
        action(change.action),
        change.title(),
        change.why()
    )
}
