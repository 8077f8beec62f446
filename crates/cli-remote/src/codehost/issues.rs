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

use crate::{
    codehost::host::{CodeHost, PostError},
    server::http::Answer,
};

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
    /// The field and the value that close an issue.
    close: (&'static str, &'static str),
    labels: fn([&str; 2]) -> Value,
}

const GITHUB: Words = Words {
    body: "body",
    comments: "/issues/{id}/comments",
    close: ("state", "closed"),
    labels: |labels| json!(labels),
};

const GITLAB: Words = Words {
    body: "description",
    comments: "/issues/{id}/notes",
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

    /// Sends again while the host is busy. If there is no answer, an issue or a comment may have been written, so a request
    /// for one is repeated only if it was refused for its rate.
    fn answer(&self, method: &Method, path: &str, content: Option<&Value>) -> Result<Answer, PostError> {
        let requests = self.host.requests();
        let mut backoff = Backoff::until(requests.deadline);
        retry::until_expired(self.progress, &mut backoff, "the code host is busy", || {
            let is_new = method == Method::POST;
            match requests.answer(method.clone(), path, content) {
                Err(error) if is_new && !matches!(error, PostError::RateLimited { .. }) => Ok(Err(error)),
                answer => answer.map(Ok),
            }
        })?
    }

    fn send(&self, method: &Method, path: &str, content: Option<&Value>) -> Result<Value, PostError> {
        let answer = self.answer(method, path, content)?;
        Ok(answer.json.unwrap_or_default())
    }

    fn page(&self, path: &str) -> Result<Answer, PostError> {
        self.answer(&Method::GET, path, None)
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
        self.host.search((&path, LIST), |path| self.page(path), add)?;
        Ok(issues)
    }

    /// Creates an issue with [`LABEL`] and another label by one request, and returns its number.
    pub fn create(&self, title: &str, body: &str, label: &str) -> Result<u64, PostError> {
        let labels = (self.words.labels)([LABEL, label]);
        let content = json!({ "title": title, self.words.body: body, "labels": labels });
        let answer = self.send(&Method::POST, &self.host.path("/issues", 0), Some(&content))?;
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
        let answer = self.send(&Method::GET, &self.path(number), None)?;
        Issue::deserialize(answer).map_err(|_| PostError::Unreadable("issue"))
    }

    /// Replaces the text of an issue, and closes it if asked to, by one request.
    pub fn edit(&self, number: u64, body: &str, close: bool) -> Result<(), PostError> {
        let (field, value) = self.words.close;
        let content = match close {
            true => json!({ self.words.body: body, field: value }),
            false => json!({ self.words.body: body }),
        };
        let method = self.host.editing_method();
        self.send(method, &self.path(number), Some(&content)).map(drop)
    }

    /// Comments on an issue, unless an own comment has the `mark` already.
    pub fn comment(&self, number: u64, mark: &str, text: &str) -> Result<(), PostError> {
        let comments = self.host.path(self.words.comments, number);
        let is_marked = |entry: &&Value| {
            let text = entry.get("body").and_then(Value::as_str);
            text.is_some_and(|text| text.contains(mark))
        };
        let find = |own: Vec<&Value>| own.iter().any(is_marked).then_some(());
        let list = (&*comments, "per_page=100");
        if self.host.search(list, |path| self.page(path), find)?.is_none() {
            let body = json!({ "body": format!("{text}\n\n{mark}") });
            self.send(&Method::POST, &comments, Some(&body))?;
        }
        Ok(())
    }
}
