//! `assay issues`: keeps issues about the tests and errors that cost most.

use std::time::Duration;

use anyhow::Context as _;
use assay_answers::links;
use assay_cli_job::issues::{
    Change, ErrorEntry, ExistingIssue, FixAnswer, Place, Problem, Section, Subject, TestEntry, open_subjects,
    plan,
};
use assay_cli_local::sources::ci;
use assay_cli_remote::{
    codehost::issues::{Issue, Issues},
    server::read_api::{ReadApi, path_of_test},
};
use assay_cli_terminal::{message, misuse::Misuse, output, values::duration};
use assay_domain::{id::ProjectId, test::TestName};
use clap::{ArgGroup, Args};
use serde::Deserialize;
use serde_json::json;

use crate::{
    environment,
    global::Global,
    server_flags::{ConnectionFlags, ReadApiFlags},
};

/// Most tests whose fixes are looked up in a call.
const MOST_TESTS: usize = 50;
/// Most pages of the list of tests.
const MOST_PAGES: u64 = 4;

const EXAMPLES: &str = "\
For a job of the stable branch on GitHub (GITHUB_TOKEN with `issues: write`) or GitLab (GITLAB_TOKEN with the scope `api`). Every \
issue has the label assay. It is closed only when a fix held, and never opened again. Text that people add is kept.

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
    let (stable_branch, listed) = tests(&mut api, project)?;
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
    };
    let existing = host.as_ref().map(existing).transpose()?.unwrap_or_default();
    let problems = problems(&mut api, args, &place, &listed, &open_subjects(&existing))?;
    let changes = plan(&problems, &existing);
    let most = usize::from(args.max);
    let left = changes.len().saturating_sub(most);
    let mut done = Vec::new();
    for change in changes.iter().take(most) {
        let number = match host.as_ref().filter(|_| args.apply) {
            Some(host) => apply(host, change).with_context(|| {
                let made = output::count(count(done.len()), "change");
                format!(
                    "{}; {made} made, and the next call goes on",
                    words(change, number(change))
                )
            })?,
            None => number(change),
        };
        done.push((change, number));
    }
    if let Some(host) = host.as_ref().filter(|_| args.apply) {
        close_second(host, &problems, &changes)?;
    }
    let entry = |(change, number): &(&Change<'_>, Option<u64>)| {
        json!({
            "action": action(change), "number": number, "title": change.title(), "why": change.why(),
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
    )
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The project's stable branch, and its flaky and broken tests, the most expensive first.
fn tests(api: &mut ReadApi<'_>, project: ProjectId) -> anyhow::Result<(String, Vec<TestEntry>)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tests {
        stable: Stable,
        page: Page,
        tests: Vec<TestEntry>,
    }
    #[derive(Deserialize)]
    struct Stable {
        branch: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        page_count: u64,
    }
    let mut all = Vec::new();
    let mut page = 1;
    loop {
        let answer = api.get(&format!("projects/{project}/flaky?perPage=50&page={page}"))?;
        let answer = Tests::deserialize(&answer).context("the server's answer is no list of tests")?;
        all.extend(answer.tests);
        page += 1;
        if page > answer.page.page_count.min(MOST_PAGES) {
            return Ok((answer.stable.branch, all));
        }
    }
}

/// What the server knows of the tests and errors that cost enough, and of those with an open issue.
fn problems(
    api: &mut ReadApi<'_>,
    args: &IssuesArgs,
    place: &Place,
    listed: &[TestEntry],
    open: &[Subject],
) -> anyhow::Result<Vec<Problem>> {
    let least = u64::try_from(args.min_time_lost.as_millis()).unwrap_or(u64::MAX);
    let mut tests: Vec<TestName> = Vec::new();
    let of_open = open.iter().filter_map(|subject| match subject {
        Subject::Test(test) => Some(test.clone()),
        Subject::Error(_) => None,
    });
    let (broken, flaky): (Vec<_>, Vec<_>) = listed
        .iter()
        .filter(|entry| entry.costs(least))
        .partition(|entry| entry.is_broken());
    let costly = broken.into_iter().chain(flaky).map(TestEntry::test);
    for test in of_open.chain(costly) {
        let is_known = tests.contains(&test)
            || listed
                .iter()
                .any(|entry| entry.was(&test) && tests.contains(&entry.test()));
        if !is_known && tests.len() < MOST_TESTS {
            tests.push(test);
        }
    }
    let mut problems = Vec::new();
    for test in tests {
        let entry = listed
            .iter()
            .find(|entry| entry.test() == test || entry.was(&test));
        let test = entry.map_or(test, TestEntry::test);
        let path = path_of_test(place.project, &test.name, test.file_path.as_deref(), "/fix");
        let fixes = match api.find(&path)? {
            Some(answer) => {
                FixAnswer::deserialize(&answer).context("the server's answer is no list of fixes")?
            }
            None => FixAnswer::default(),
        };
        problems.push(Problem::of_test(test, entry, &fixes, place));
    }
    problems.extend(errors(api, args, place, open)?);
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
    let issues = host.list().context("the issues were not read")?;
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
fn apply(host: &Issues<'_>, change: &Change<'_>) -> anyhow::Result<Option<u64>> {
    let rewrite = |problem: &Problem, issue: &ExistingIssue, next: &Section| -> anyhow::Result<()> {
        // People may have changed the text since the list was read.
        let present = host.body(issue.number)?;
        host.edit(issue.number, &next.written_into(&present, problem))?;
        Ok(())
    };
    match change {
        Change::Create(problem) => {
            let text = Section::of_new(problem).text(problem);
            return Ok(Some(host.create(&problem.title(), &text, problem.label)?));
        }
        Change::Tell(problem, issue, next) => {
            host.comment(issue.number, &next.mark(), &problem.sentence)?;
            rewrite(problem, issue, next)?;
        }
        Change::Close(problem, issue, next) => {
            host.comment(issue.number, &next.mark(), &problem.sentence)?;
            host.close(issue.number)?;
            rewrite(problem, issue, next)?;
        }
        Change::CloseSecond(issue, first) => {
            let text = format!("Another job opened #{first} about the same at the same time.");
            host.comment(issue.number, SECOND, &text)?;
            host.close(issue.number)?;
        }
        Change::Edit(problem, issue, next) => rewrite(problem, issue, next)?,
    }
    Ok(number(change))
}

/// The hidden line of the comment on an issue that another one makes unnecessary.
const SECOND: &str = "<!-- assay:second -->";

/// Closes what a job at the same time created, too.
fn close_second(host: &Issues<'_>, problems: &[Problem], changes: &[Change<'_>]) -> anyhow::Result<()> {
    if !changes.iter().any(|change| matches!(change, Change::Create(_))) {
        return Ok(());
    }
    for change in plan(problems, &existing(host)?) {
        if matches!(change, Change::CloseSecond(..)) {
            apply(host, &change)?;
        }
    }
    Ok(())
}

fn number(change: &Change<'_>) -> Option<u64> {
    change.issue().map(|issue| issue.number)
}

const fn action(change: &Change<'_>) -> &'static str {
    match change {
        Change::Create(_) => "create",
        Change::Tell(..) => "comment",
        Change::Close(..) | Change::CloseSecond(..) => "close",
        Change::Edit(..) => "edit",
    }
}

fn words(change: &Change<'_>, number: Option<u64>) -> String {
    let number = number.map_or_else(String::new, |number| format!(" #{number}"));
    format!(
        "{}{number}: {}\n  {}",
        action(change),
        change.title(),
        change.why()
    )
}
