//! Notes on a merge request of GitLab. The token of a job cannot write notes, so the job needs a token of its own.

use std::time::Instant;

use serde_json::{Value, json};

use crate::codehost::{
    github::existing,
    host::{CodeHost, ExistingComment, Method, PostError, Requests, Token},
};

/// A merge request of GitLab.
pub struct GitLab {
    requests: Requests,
    project: u64,
    number: i64,
}

impl GitLab {
    /// Every request ends at this moment.
    pub(crate) fn until(self, deadline: Instant) -> Self {
        Self {
            requests: self.requests.until(deadline),
            ..self
        }
    }

    /// The merge request of a job of GitLab CI. None without a token, or if the variables name no project.
    pub fn of_job(variable: &dyn Fn(&str) -> Option<String>, number: i64) -> anyhow::Result<Option<Self>> {
        let token = variable("GITLAB_TOKEN").and_then(|token| Token::new(&token));
        let project = variable("CI_PROJECT_ID").and_then(|id| id.parse().ok());
        let (Some(token), Some(project), Some(api)) = (token, project, variable("CI_API_V4_URL")) else {
            return Ok(None);
        };
        Ok(Some(Self {
            requests: Requests::new(&api, token, ("PRIVATE-TOKEN", ""), &[])?,
            project,
            number,
        }))
    }

    pub(crate) const fn requests(&self) -> &Requests {
        &self.requests
    }

    pub(crate) const fn project(&self) -> u64 {
        self.project
    }

    /// Those of the notes or issues that the token's user wrote.
    pub(crate) fn own<'a>(&self, entries: &'a [Value]) -> Result<Vec<&'a Value>, PostError> {
        let user = self.requests.own_user("/user", "/id")?;
        let own = entries
            .iter()
            .filter(|entry| entry.pointer("/author/id") == Some(user));
        Ok(own.collect())
    }

    fn notes(&self) -> String {
        format!("/projects/{}/merge_requests/{}/notes", self.project, self.number)
    }
}

impl CodeHost for GitLab {
    const PER_PAGE: usize = 100;

    fn page(&self, page: u32) -> Result<(Vec<ExistingComment>, usize), PostError> {
        let path = format!(
            "{}?sort=asc&order_by=created_at&per_page={}&page={page}",
            self.notes(),
            Self::PER_PAGE
        );
        let answer = self.requests.send(Method::Get, &path, None)?;
        let all = answer.as_array().ok_or(PostError::Unreadable("list of notes"))?;
        let own = self.own(all)?.into_iter();
        let written = own.filter(|note| note.get("system") != Some(&Value::Bool(true)));
        Ok((written.filter_map(existing).collect(), all.len()))
    }

    fn create(&self, body: &str) -> Result<u64, PostError> {
        let answer = self
            .requests
            .send(Method::Post, &self.notes(), Some(&json!({"body": body})))?;
        answer
            .get("id")
            .and_then(Value::as_u64)
            .ok_or(PostError::Unreadable("id of the note"))
    }

    fn edit(&self, id: u64, body: &str) -> Result<(), PostError> {
        let path = format!("{}/{id}", self.notes());
        self.requests
            .send(Method::Put, &path, Some(&json!({"body": body})))
            .map(drop)
    }

    fn delete(&self, id: u64) -> Result<(), PostError> {
        self.requests
            .send(Method::Delete, &format!("{}/{id}", self.notes()), None)
            .map(drop)
    }
}
