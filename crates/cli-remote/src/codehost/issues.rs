//! Issues of a code host, by the documented routes of GitHub and GitLab.

use std::time::Instant;

use assay_cli_terminal::{
    progress::Progress,
    retry::{self, Backoff},
};
use assay_domain::run::CiProvider;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::codehost::host::{self, CodeHost, PostError};

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

/// The words of a host's routes for issues.
struct Words {
    /// The parameters of a list that ends with the oldest issue.
    newest_first: &'static str,
    /// The fields with an issue's number and text.
    number: &'static str,
    body: &'static str,
    /// The path of comments below an issue.
    comments: &'static str,
    /// The method that changes an issue, and the field and the value that close it.
    change: Method,
    close: (&'static str, &'static str),
    labels: fn([&str; 2]) -> Value,
}

const GITHUB: Words = Words {
    newest_first: "state=all&sort=created&direction=desc",
    number: "number",
    body: "body",
    comments: "comments",
    change: Method::PATCH,
    close: ("state", "closed"),
    labels: |labels| json!(labels),
};

const GITLAB: Words = Words {
    newest_first: "scope=all&order_by=created_at&sort=desc",
    number: "iid",
    body: "description",
    comments: "notes",
    change: Method::PUT,
    close: ("state_event", "close"),
    labels: |labels| json!(labels.join(",")),
};

/// The issues of a job's repository.
pub struct Issues<'a> {
    host: CodeHost,
    words: Words,
    /// The path of all issues.
    path: String,
    deadline: Instant,
    progress: &'a dyn Progress,
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
        let found = match provider {
            Some(CiProvider::GithubActions) => host::github(variable, deadline)?
                .map(|(_, repository)| (GITHUB, format!("/repos/{repository}/issues"))),
            Some(CiProvider::GitlabCi) => host::gitlab(variable, deadline)?
                .map(|(_, project)| (GITLAB, format!("/projects/{project}/issues"))),
            Some(_) | None => None,
        };
        // Issues belong to no pull request.
        let host = CodeHost::of_job(provider, variable, 0, deadline)?;
        Ok(found.zip(host).map(|((words, path), host)| Self {
            host,
            words,
            path,
            deadline,
            progress,
        }))
    }

    /// Sends again while the host is busy.
    fn again<T>(&self, request: impl FnMut() -> Result<T, PostError>) -> Result<T, PostError> {
        let mut backoff = Backoff::until(self.deadline);
        retry::until_expired(self.progress, &mut backoff, "the code host is busy", request)
    }

    fn get(&self, path: &str) -> Result<Value, PostError> {
        self.again(|| self.host.send(Method::GET, path, None))
    }

    /// The issues that the token may have written with [`LABEL`], the newest first.
    pub fn list(&self) -> Result<Vec<Issue>, PostError> {
        let mut issues = Vec::new();
        for page in 1..=MOST_PAGES {
            let answer = self.get(&format!(
                "{}?labels={LABEL}&{}&per_page={PER_PAGE}&page={page}",
                self.path, self.words.newest_first
            ))?;
            let all = answer.as_array().ok_or(PostError::Unreadable("list of issues"))?;
            // GitHub lists pull requests, too.
            let own = self.host.own(all)?.into_iter();
            let of_issues = own.filter(|entry| entry.get("pull_request").is_none());
            issues.extend(of_issues.filter_map(|entry| self.issue(entry)));
            if all.len() < PER_PAGE {
                break;
            }
        }
        Ok(issues)
    }

    fn issue(&self, entry: &Value) -> Option<Issue> {
        Some(Issue {
            number: entry.get(self.words.number)?.as_u64()?,
            title: entry.get("title")?.as_str()?.to_owned(),
            // A person may have deleted the text.
            body: entry
                .get(self.words.body)?
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            open: entry.get("state")?.as_str()?.starts_with("open"),
        })
    }

    /// Creates an issue with [`LABEL`] and another label by one request, and returns its number. If there is no answer, the issue
    /// may exist, so only a request that was refused for its rate is repeated.
    pub fn create(&self, title: &str, body: &str, label: &str) -> Result<u64, PostError> {
        let labels = (self.words.labels)([LABEL, label]);
        let content = json!({ "title": title, self.words.body: body, "labels": labels });
        let answer = self.again(
            || match self.host.send(Method::POST, &self.path, Some(&content)) {
                Err(error @ PostError::RateLimited { .. }) => Err(error),
                done => Ok(done),
            },
        )??;
        let created = answer.get(self.words.number).and_then(Value::as_u64);
        let number = created.ok_or(PostError::Unreadable("number of the issue"))?;
        // The host leaves labels out if the token may not set them. Each call would create an issue that none finds.
        let is_label = |label: &Value| label.as_str().or_else(|| label.get("name")?.as_str()) == Some(LABEL);
        let labels = answer.get("labels").and_then(Value::as_array);
        if labels.is_some_and(|labels| labels.iter().any(is_label)) {
            return Ok(number);
        }
        self.edit(number, body, true)?;
        Err(PostError::Unreadable(
            "label \"assay\" on the new issue, which is closed again; give the token the right to set labels",
        ))
    }

    /// The present text of an issue.
    pub fn body(&self, number: u64) -> Result<String, PostError> {
        let answer = self.get(&format!("{}/{number}", self.path))?;
        let body = answer.get(self.words.body).and_then(Value::as_str);
        Ok(body.unwrap_or_default().to_owned())
    }

    /// Replaces the text of an issue, and closes it if asked to, by one request.
    pub fn edit(&self, number: u64, body: &str, close: bool) -> Result<(), PostError> {
        let path = format!("{}/{number}", self.path);
        let (field, value) = self.words.close;
        let content = match close {
            true => json!({ self.words.body: body, field: value }),
            false => json!({ self.words.body: body }),
        };
        let method = &self.words.change;
        self.again(|| self.host.send(method.clone(), &path, Some(&content)).map(drop))
    }

    /// Comments on an issue, unless an own comment has the `mark` already.
    pub fn comment(&self, number: u64, mark: &str, text: &str) -> Result<(), PostError> {
        let comments = format!("{}/{number}/{}", self.path, self.words.comments);
        let body = json!({ "body": format!("{text}\n\n{mark}") });
        // A repetition looks first, because the failed request may have written the comment.
        self.again(|| match self.has_comment(&comments, mark)? {
            true => Ok(()),
            false => self.host.send(Method::POST, &comments, Some(&body)).map(drop),
        })
    }

    fn has_comment(&self, comments: &str, mark: &str) -> Result<bool, PostError> {
        for page in 1..=MOST_PAGES {
            let path = format!("{comments}?per_page={PER_PAGE}&page={page}");
            let answer = self.host.send(Method::GET, &path, None)?;
            let all = answer
                .as_array()
                .ok_or(PostError::Unreadable("list of comments"))?;
            let has_mark = |entry: &&Value| {
                let text = entry.get("body").and_then(Value::as_str);
                text.is_some_and(|text| text.contains(mark))
            };
            if self.host.own(all)?.iter().any(has_mark) {
                return Ok(true);
            }
            if all.len() < PER_PAGE {
                break;
            }
        }
        Ok(false)
    }
}
