//! Comments on a pull request of GitHub, by the routes of issue comments.

use std::time::Instant;

use serde_json::{Value, json};

use crate::codehost::host::{CodeHost, ExistingComment, Method, PostError, Requests, Token};

const HEADERS: &[(&str, &str)] = &[
    ("Accept", "application/vnd.github+json"),
    ("X-GitHub-Api-Version", "2022-11-28"),
];
/// The beginning of the tokens of apps and of jobs. Their comments are those of a bot.
const INSTALLATION: &str = "ghs_";

/// A pull request of GitHub.
pub struct GitHub {
    requests: Requests,
    repository: String,
    number: i64,
}

impl GitHub {
    /// Every request ends at this moment.
    pub(crate) fn until(self, deadline: Instant) -> Self {
        Self {
            requests: self.requests.until(deadline),
            ..self
        }
    }

    /// The pull request of a job of GitHub Actions. None without a token, or if the variables name no repository.
    pub fn of_job(variable: &dyn Fn(&str) -> Option<String>, number: i64) -> anyhow::Result<Option<Self>> {
        let token = variable("GITHUB_TOKEN").and_then(|token| Token::new(&token));
        let (Some(token), Some(repository)) = (token, variable("GITHUB_REPOSITORY")) else {
            return Ok(None);
        };
        let is_name = |part: &str| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !part.is_empty() && part != ".." && part.bytes().all(is_allowed)
        };
        let is_repository = repository
            .split_once('/')
            .is_some_and(|(owner, name)| is_name(owner) && is_name(name));
        if !is_repository {
            return Ok(None);
        }
        let api = variable("GITHUB_API_URL").unwrap_or_else(|| "https://api.github.com".to_owned());
        Ok(Some(Self {
            requests: Requests::new(&api, token, ("Authorization", "Bearer "), HEADERS)?,
            repository,
            number,
        }))
    }

    pub(crate) const fn requests(&self) -> &Requests {
        &self.requests
    }

    pub(crate) fn repository(&self) -> &str {
        &self.repository
    }

    /// The newest check run of each job that a commit has by the name of this program.
    pub(crate) fn check_runs(&self, revision: &str) -> Result<Vec<Value>, PostError> {
        let path = format!(
            "/repos/{}/commits/{revision}/check-runs?check_name=Assay&filter=latest&per_page=100",
            self.repository
        );
        let mut answer = self.requests.send(Method::Get, &path, None)?;
        match answer.get_mut("check_runs").map(Value::take) {
            Some(Value::Array(runs)) => Ok(runs),
            Some(_) | None => Err(PostError::Unreadable("list of check runs")),
        }
    }

    pub(crate) fn create_check_run(&self, content: &Value) -> Result<(), PostError> {
        let path = format!("/repos/{}/check-runs", self.repository);
        self.requests.send(Method::Post, &path, Some(content)).map(drop)
    }

    pub(crate) fn edit_check_run(&self, id: u64, content: &Value) -> Result<(), PostError> {
        let path = format!("/repos/{}/check-runs/{id}", self.repository);
        self.requests.send(Method::Patch, &path, Some(content)).map(drop)
    }

    /// Those of the comments or issues that the token may have written.
    pub(crate) fn own<'a>(&self, comments: &'a [Value]) -> Result<Vec<&'a Value>, PostError> {
        // The token of an app has no user that it may ask for.
        let (path, expected) = match self.requests.token().starts_with(INSTALLATION) {
            true => ("/user/type", &Value::from("Bot")),
            false => ("/user/id", self.requests.own_user("/user", "/id")?),
        };
        let own = comments
            .iter()
            .filter(|comment| comment.pointer(path) == Some(expected));
        Ok(own.collect())
    }
}

impl CodeHost for GitHub {
    const PER_PAGE: usize = 100;

    fn page(&self, page: u32) -> Result<(Vec<ExistingComment>, usize), PostError> {
        let path = format!(
            "/repos/{}/issues/{}/comments?per_page={}&page={page}",
            self.repository,
            self.number,
            Self::PER_PAGE
        );
        let answer = self.requests.send(Method::Get, &path, None)?;
        let all = answer
            .as_array()
            .ok_or(PostError::Unreadable("list of comments"))?;
        let own = self.own(all)?;
        Ok((own.into_iter().filter_map(existing).collect(), all.len()))
    }

    fn create(&self, body: &str) -> Result<u64, PostError> {
        let path = format!("/repos/{}/issues/{}/comments", self.repository, self.number);
        let answer = self
            .requests
            .send(Method::Post, &path, Some(&json!({"body": body})))?;
        answer
            .get("id")
            .and_then(Value::as_u64)
            .ok_or(PostError::Unreadable("id of the comment"))
    }

    fn edit(&self, id: u64, body: &str) -> Result<(), PostError> {
        let path = format!("/repos/{}/issues/comments/{id}", self.repository);
        self.requests
            .send(Method::Patch, &path, Some(&json!({"body": body})))
            .map(drop)
    }

    fn delete(&self, id: u64) -> Result<(), PostError> {
        let path = format!("/repos/{}/issues/comments/{id}", self.repository);
        self.requests.send(Method::Delete, &path, None).map(drop)
    }
}

/// A comment of a list.
pub(crate) fn existing(comment: &Value) -> Option<ExistingComment> {
    Some(ExistingComment {
        id: comment.get("id")?.as_u64()?,
        body: comment.get("body")?.as_str()?.to_owned(),
    })
}
