//! Issues of a code host, by the documented routes of GitHub and GitLab.

use std::time::Instant;

use assay_cli_terminal::{
    progress::Progress,
    retry::{self, Backoff},
};
use assay_domain::{issue::Issue, run::CiProvider};
use serde::Deserialize as _;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::codehost::host::{CodeHost, PostError};

/// The label of every issue that is written here.
pub const LABEL: &str = "assay";

/// The list of these issues. Both hosts answer the newest first.
const LIST: &str = "labels=assay&state=all&scope=all&per_page=100";

/// The words of a host's routes for issues.
struct Words {
    /// The field with an issue's text.
    body: &'static str,
    /// The path of an issue's comments.
    comments: &'static str,
    /// The method that changes an issue, and the field and the value that close it.
    change: Method,
    close: (&'static str, &'static str),
    labels: fn([&str; 2]) -> Value,
}

const GITHUB: Words = Words {
    body: "body",
    comments: "/issues/{id}/comments",
    change: Method::PATCH,
    close: ("state", "closed"),
    labels: |labels| json!(labels),
};

const GITLAB: Words = Words {
    body: "description",
    comments: "/issues/{id}/notes",
    change: Method::PUT,
    close: ("state_event", "close"),
    labels: |labels| json!(labels.join(",")),
};

/// The issues of a job's repository.
pub struct Issues<'a> {
    host: CodeHost,
    words: Words,
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
        let words = match provider {
            Some(CiProvider::GithubActions) => GITHUB,
            Some(CiProvider::GitlabCi) => GITLAB,
            Some(_) | None => return Ok(None),
        };
        // Issues belong to no pull request.
        let host = CodeHost::of_job(provider, variable, 0, deadline)?;
        Ok(host.map(|host| Self {
            host,
            words,
            progress,
        }))
    }

    /// Sends again while the host is busy.
    fn again<T>(&self, request: impl FnMut() -> Result<T, PostError>) -> Result<T, PostError> {
        let mut backoff = Backoff::until(self.host.requests().deadline);
        retry::until_expired(self.progress, &mut backoff, "the code host is busy", request)
    }

    fn send(&self, method: &Method, path: &str, content: Option<&Value>) -> Result<Value, PostError> {
        self.host.requests().send(method.clone(), path, content)
    }

    fn get(&self, path: &str) -> Result<Value, PostError> {
        self.again(|| self.send(&Method::GET, path, None))
    }

    fn path(&self, number: u64) -> String {
        self.host.path("/issues/{id}", number)
    }

    /// The issues that the token may have written with [`LABEL`], the newest first.
    pub fn list(&self) -> Result<Vec<Issue>, PostError> {
        let mut issues = Vec::new();
        // GitHub lists pull requests, too.
        let is_issue = |entry: &&Value| entry.get("pull_request").is_none();
        let add = |own: Vec<&Value>| {
            let of_issues = own.into_iter().filter(is_issue);
            issues.extend(of_issues.filter_map(|entry| Issue::deserialize(entry).ok()));
            None::<()>
        };
        let path = self.host.path("/issues", 0);
        self.host.search((&path, LIST), |path| self.get(path), add)?;
        Ok(issues)
    }

    /// Creates an issue with [`LABEL`] and another label by one request, and returns its number. If there is no answer, the issue
    /// may exist, so only a request that was refused for its rate is repeated.
    pub fn create(&self, title: &str, body: &str, label: &str) -> Result<u64, PostError> {
        let labels = (self.words.labels)([LABEL, label]);
        let content = json!({ "title": title, self.words.body: body, "labels": labels });
        let path = self.host.path("/issues", 0);
        let answer = self.again(|| match self.send(&Method::POST, &path, Some(&content)) {
            Err(error @ PostError::RateLimited { .. }) => Err(error),
            done => Ok(done),
        })??;
        let created = Issue::deserialize(&answer);
        let created = created.map_err(|_| PostError::Unreadable("number of the issue"))?;
        // The host leaves labels out if the token may not set them. Each call would create an issue that none finds.
        let is_label = |label: &Value| [label, label.get("name").unwrap_or(label)].contains(&&json!(LABEL));
        let labels = answer.get("labels").and_then(Value::as_array);
        if labels.is_some_and(|labels| labels.iter().any(is_label)) {
            return Ok(created.number);
        }
        self.edit(created.number, body, true)?;
        Err(PostError::Unreadable(
            "label \"assay\" on the new issue, which is closed again; give the token the right to set labels",
        ))
    }

    /// An issue as it is at present.
    pub fn issue(&self, number: u64) -> Result<Issue, PostError> {
        let answer = self.get(&self.path(number))?;
        Issue::deserialize(answer).map_err(|_| PostError::Unreadable("issue"))
    }

    /// Replaces the text of an issue, and closes it if asked to, by one request.
    pub fn edit(&self, number: u64, body: &str, close: bool) -> Result<(), PostError> {
        let (field, value) = self.words.close;
        let content = match close {
            true => json!({ self.words.body: body, field: value }),
            false => json!({ self.words.body: body }),
        };
        let path = self.path(number);
        self.again(|| self.send(&self.words.change, &path, Some(&content)).map(drop))
    }

    /// Comments on an issue, unless an own comment has the `mark` already.
    pub fn comment(&self, number: u64, mark: &str, text: &str) -> Result<(), PostError> {
        let comments = self.host.path(self.words.comments, number);
        let body = json!({ "body": format!("{text}\n\n{mark}") });
        let is_marked = |entry: &&Value| {
            let text = entry.get("body").and_then(Value::as_str);
            text.is_some_and(|text| text.contains(mark))
        };
        let get = |path: &str| self.send(&Method::GET, path, None);
        let find = |own: Vec<&Value>| own.iter().any(is_marked).then_some(());
        // A repetition looks first, because the failed request may have written the comment.
        self.again(
            || match self.host.search((&comments, "per_page=100"), get, find)? {
                Some(()) => Ok(()),
                None => self.send(&Method::POST, &comments, Some(&body)).map(drop),
            },
        )
    }
}
