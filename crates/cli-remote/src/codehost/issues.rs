//! Issues of a code host, by the documented routes of GitHub and GitLab.

use std::time::Instant;

use assay_cli_terminal::{
    progress::Progress,
    retry::{self, Backoff},
};
use assay_domain::run::CiProvider;
use serde_json::{Value, json};

use crate::codehost::{
    github::GitHub,
    gitlab::GitLab,
    host::{Method, PostError},
};

/// The label of every issue that is written here.
pub const LABEL: &str = "assay";
/// Issues per page.
const PER_PAGE: usize = 100;
/// Most pages that are read, of the newest issues and of the comments on one issue.
const MOST_PAGES: u32 = 20;

/// An issue that the host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Its number in the repository.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Whether it is open.
    pub open: bool,
}

/// The words of a host's routes.
trait Routes {
    /// The path of all issues, and the field with an issue's number.
    fn issues(&self) -> (String, &'static str);

    /// The parameters of a list that ends with the oldest issue.
    const NEWEST_FIRST: &'static str;

    /// The name of an issue's text.
    const BODY: &'static str;

    /// The path of comments below an issue.
    const COMMENTS: &'static str;

    /// The method that changes an issue.
    const CHANGE: Method;

    /// The field and the value that close an issue.
    const CLOSE: (&'static str, &'static str);

    fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, PostError>;

    /// Those of the entries that the token may have written.
    fn own<'a>(&self, entries: &'a [Value]) -> Result<Vec<&'a Value>, PostError>;

    /// The labels of a new issue.
    fn labels(labels: [&str; 2]) -> Value;
}

impl Routes for GitHub {
    const NEWEST_FIRST: &'static str = "state=all&sort=created&direction=desc";
    const BODY: &'static str = "body";
    const COMMENTS: &'static str = "comments";
    const CHANGE: Method = Method::Patch;
    const CLOSE: (&'static str, &'static str) = ("state", "closed");

    fn issues(&self) -> (String, &'static str) {
        (format!("/repos/{}/issues", self.repository()), "number")
    }

    fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, PostError> {
        self.requests().send(method, path, body)
    }

    fn own<'a>(&self, entries: &'a [Value]) -> Result<Vec<&'a Value>, PostError> {
        self.own(entries)
    }

    fn labels(labels: [&str; 2]) -> Value {
        json!(labels)
    }
}

impl Routes for GitLab {
    const NEWEST_FIRST: &'static str = "scope=all&order_by=created_at&sort=desc";
    const BODY: &'static str = "description";
    const COMMENTS: &'static str = "notes";
    const CHANGE: Method = Method::Put;
    const CLOSE: (&'static str, &'static str) = ("state_event", "close");

    fn issues(&self) -> (String, &'static str) {
        (format!("/projects/{}/issues", self.project()), "iid")
    }

    fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, PostError> {
        self.requests().send(method, path, body)
    }

    fn own<'a>(&self, entries: &'a [Value]) -> Result<Vec<&'a Value>, PostError> {
        self.own(entries)
    }

    fn labels(labels: [&str; 2]) -> Value {
        json!(labels.join(","))
    }
}

/// The issues of a job's repository.
pub struct Issues<'a> {
    host: Host,
    deadline: Instant,
    progress: &'a dyn Progress,
}

enum Host {
    GitHub(GitHub),
    GitLab(GitLab),
}

/// Sends by the routes of the host.
macro_rules! by_host {
    ($issues:expr, $host:ident => $request:expr) => {
        match &$issues.host {
            Host::GitHub($host) => $request,
            Host::GitLab($host) => $request,
        }
    };
}

impl<'a> Issues<'a> {
    /// The issues of the repository of a job on GitHub or GitLab. None elsewhere, and without a token. All requests end at
    /// `deadline`.
    pub fn of_job(
        provider: Option<CiProvider>,
        variable: &dyn Fn(&str) -> Option<String>,
        deadline: Instant,
        progress: &'a dyn Progress,
    ) -> anyhow::Result<Option<Self>> {
        // Issues belong to no pull request.
        const NO_PULL_REQUEST: i64 = 0;
        let host = match provider {
            Some(CiProvider::GithubActions) => {
                let host = GitHub::of_job(variable, NO_PULL_REQUEST)?;
                host.map(|host| Host::GitHub(host.until(deadline)))
            }
            Some(CiProvider::GitlabCi) => {
                let host = GitLab::of_job(variable, NO_PULL_REQUEST)?;
                host.map(|host| Host::GitLab(host.until(deadline)))
            }
            Some(_) | None => None,
        };
        Ok(host.map(|host| Self {
            host,
            deadline,
            progress,
        }))
    }

    /// Sends again while the host is busy.
    fn again<T>(&self, request: impl FnMut() -> Result<T, PostError>) -> Result<T, PostError> {
        let mut backoff = Backoff::until(self.deadline);
        retry::until_expired(self.progress, &mut backoff, "the code host is busy", request)
    }

    /// The issues that the token may have written with [`LABEL`], the newest first.
    pub fn list(&self) -> Result<Vec<Issue>, PostError> {
        self.again(|| by_host!(self, host => list(host)))
    }

    /// Creates an issue with [`LABEL`] and another label by one request, and returns its number. If that fails, the issue may
    /// exist.
    pub fn create(&self, title: &str, body: &str, label: &str) -> Result<u64, PostError> {
        by_host!(self, host => create(host, title, body, label))
    }

    /// The present text of an issue.
    pub fn body(&self, number: u64) -> Result<String, PostError> {
        self.again(|| by_host!(self, host => body(host, number)))
    }

    /// Replaces the text of an issue.
    pub fn edit(&self, number: u64, body: &str) -> Result<(), PostError> {
        self.again(|| by_host!(self, host => edit(host, number, body)))
    }

    /// Closes an issue.
    pub fn close(&self, number: u64) -> Result<(), PostError> {
        self.again(|| by_host!(self, host => close(host, number)))
    }

    /// Comments on an issue, unless an own comment has the `mark` already.
    pub fn comment(&self, number: u64, mark: &str, text: &str) -> Result<(), PostError> {
        self.again(|| by_host!(self, host => comment(host, number, mark, text)))
    }
}

fn list<R: Routes>(host: &R) -> Result<Vec<Issue>, PostError> {
    let (path, number) = host.issues();
    let mut issues = Vec::new();
    for page in 1..=MOST_PAGES {
        let path = format!(
            "{path}?labels={LABEL}&{}&per_page={PER_PAGE}&page={page}",
            R::NEWEST_FIRST
        );
        let answer = host.send(Method::Get, &path, None)?;
        let all = answer.as_array().ok_or(PostError::Unreadable("list of issues"))?;
        let issue = |entry: &Value| {
            // GitHub lists pull requests, too.
            let is_issue = entry.get("pull_request").is_none();
            is_issue.then(|| issue::<R>(entry, number)).flatten()
        };
        issues.extend(host.own(all)?.into_iter().filter_map(issue));
        if all.len() < PER_PAGE {
            break;
        }
    }
    Ok(issues)
}

fn issue<R: Routes>(entry: &Value, number: &str) -> Option<Issue> {
    Some(Issue {
        number: entry.get(number)?.as_u64()?,
        title: entry.get("title")?.as_str()?.to_owned(),
        // A person may have deleted the text.
        body: entry.get(R::BODY)?.as_str().unwrap_or_default().to_owned(),
        open: entry.get("state")?.as_str()?.starts_with("open"),
    })
}

fn create<R: Routes>(host: &R, title: &str, body: &str, label: &str) -> Result<u64, PostError> {
    let (path, number) = host.issues();
    let content = json!({ "title": title, R::BODY: body, "labels": R::labels([LABEL, label]) });
    let answer = host.send(Method::Post, &path, Some(&content))?;
    // GitHub leaves labels out if the token may not set them. Without its label the issue would not be found again.
    let is_label = |label: &Value| label.as_str().or_else(|| label.get("name")?.as_str()) == Some(LABEL);
    let labels = answer.get("labels").and_then(Value::as_array);
    if !labels.is_some_and(|labels| labels.iter().any(is_label)) {
        return Err(PostError::Unreadable(
            "label \"assay\" on the new issue; give the token the right to set labels, and close the issue",
        ));
    }
    let created = answer.get(number).and_then(Value::as_u64);
    created.ok_or(PostError::Unreadable("number of the issue"))
}

fn body<R: Routes>(host: &R, number: u64) -> Result<String, PostError> {
    let (path, _) = host.issues();
    let answer = host.send(Method::Get, &format!("{path}/{number}"), None)?;
    let body = answer.get(R::BODY).and_then(Value::as_str);
    Ok(body.unwrap_or_default().to_owned())
}

fn edit<R: Routes>(host: &R, number: u64, body: &str) -> Result<(), PostError> {
    let (path, _) = host.issues();
    let content = json!({ R::BODY: body });
    host.send(R::CHANGE, &format!("{path}/{number}"), Some(&content))
        .map(drop)
}

fn close<R: Routes>(host: &R, number: u64) -> Result<(), PostError> {
    let (path, _) = host.issues();
    let (field, value) = R::CLOSE;
    host.send(
        R::CHANGE,
        &format!("{path}/{number}"),
        Some(&json!({ field: value })),
    )
    .map(drop)
}

fn comment<R: Routes>(host: &R, number: u64, mark: &str, text: &str) -> Result<(), PostError> {
    let (path, _) = host.issues();
    let comments = format!("{path}/{number}/{}", R::COMMENTS);
    for page in 1..=MOST_PAGES {
        let path = format!("{comments}?per_page={PER_PAGE}&page={page}");
        let answer = host.send(Method::Get, &path, None)?;
        let all = answer
            .as_array()
            .ok_or(PostError::Unreadable("list of comments"))?;
        let has_mark = |entry: &&Value| {
            let text = entry.get("body").and_then(Value::as_str);
            text.is_some_and(|text| text.contains(mark))
        };
        if host.own(all)?.iter().any(has_mark) {
            return Ok(());
        }
        if all.len() < PER_PAGE {
            break;
        }
    }
    let body = format!("{text}\n\n{mark}");
    host.send(Method::Post, &comments, Some(&json!({ "body": body })))
        .map(drop)
}
