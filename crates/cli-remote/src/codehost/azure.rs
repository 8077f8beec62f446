//! A thread on a pull request of Azure Repos. The job gives its token to the command as `SYSTEM_ACCESSTOKEN`.

use std::time::Instant;

use serde_json::{Value, json};

use crate::codehost::host::{CodeHost, ExistingComment, Method, PostError, Requests, Token};

const VERSION: &str = "api-version=7.1";

/// A pull request of Azure Repos. Each comment is the first one of a thread, and has the thread's id.
pub struct AzureRepos {
    requests: Requests,
    threads: String,
}

impl AzureRepos {
    /// Every request ends at this moment.
    pub(crate) fn until(self, deadline: Instant) -> Self {
        Self {
            requests: self.requests.until(deadline),
            ..self
        }
    }

    /// The pull request of a job of Azure Pipelines. None without a token, or if the repository is not one of Azure Repos.
    pub fn of_job(variable: &dyn Fn(&str) -> Option<String>, number: i64) -> anyhow::Result<Option<Self>> {
        let is_id =
            |id: &String| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let token = variable("SYSTEM_ACCESSTOKEN").and_then(|token| Token::new(&token));
        let is_azure = variable("BUILD_REPOSITORY_PROVIDER").as_deref() == Some("TfsGit");
        let (Some(token), true, Some(collection), Some(project), Some(repository)) = (
            token,
            is_azure,
            variable("SYSTEM_COLLECTIONURI"),
            variable("SYSTEM_TEAMPROJECTID").filter(is_id),
            variable("BUILD_REPOSITORY_ID").filter(is_id),
        ) else {
            return Ok(None);
        };
        Ok(Some(Self {
            requests: Requests::new(&collection, token, ("Authorization", "Bearer "), &[])?,
            threads: format!("/{project}/_apis/git/repositories/{repository}/pullRequests/{number}/threads"),
        }))
    }

    /// The route of the first comment of a thread.
    fn comment(&self, thread: u64) -> String {
        format!("{}/{thread}/comments/1?{VERSION}", self.threads)
    }
}

impl CodeHost for AzureRepos {
    /// The service lists all threads at once.
    const PER_PAGE: usize = usize::MAX;

    fn page(&self, _page: u32) -> Result<(Vec<ExistingComment>, usize), PostError> {
        let path = format!("{}?{VERSION}", self.threads);
        let answer = self.requests.send(Method::Get, &path, None)?;
        let all = answer
            .get("value")
            .and_then(Value::as_array)
            .ok_or(PostError::Unreadable("list of threads"))?;
        let connection = "/_apis/connectionData?connectOptions=none&api-version=7.1-preview.1";
        let user = self.requests.own_user(connection, "/authenticatedUser/id")?;
        let own = all
            .iter()
            .filter(|thread| thread.pointer("/comments/0/author/id") == Some(user));
        Ok((own.filter_map(existing).collect(), all.len()))
    }

    fn create(&self, body: &str) -> Result<u64, PostError> {
        // A thread that is active may keep a pull request from being completed.
        let thread = json!({
            "comments": [{"parentCommentId": 0, "content": body, "commentType": "text"}],
            "status": "closed",
        });
        let path = format!("{}?{VERSION}", self.threads);
        let answer = self.requests.send(Method::Post, &path, Some(&thread))?;
        answer
            .get("id")
            .and_then(Value::as_u64)
            .ok_or(PostError::Unreadable("id of the thread"))
    }

    fn edit(&self, id: u64, body: &str) -> Result<(), PostError> {
        let comment = json!({"content": body});
        self.requests
            .send(Method::Patch, &self.comment(id), Some(&comment))
            .map(drop)
    }

    fn delete(&self, id: u64) -> Result<(), PostError> {
        self.requests
            .send(Method::Delete, &self.comment(id), None)
            .map(drop)
    }
}

/// The first comment of a thread. A deleted one stays in the list without its text.
fn existing(thread: &Value) -> Option<ExistingComment> {
    let comment = thread.get("comments")?.get(0)?;
    let is_deleted = comment.get("isDeleted") == Some(&Value::Bool(true));
    let body = comment.get("content").and_then(Value::as_str);
    Some(ExistingComment {
        id: thread.get("id")?.as_u64()?,
        body: body.filter(|_| !is_deleted)?.to_owned(),
    })
}
