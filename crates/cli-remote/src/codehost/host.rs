//! Comments on one pull request, by the routes of its code host.
//!
//! GitHub Actions and GitLab CI name their tokens; Azure Pipelines gives the job's to the command as `SYSTEM_ACCESSTOKEN`.

use std::{
    cell::OnceCell,
    time::{Duration, Instant},
};

use assay_cli_terminal::retry::Transient;
use assay_domain::run::CiProvider;
use serde_json::{Value, json};
use ureq::http::{Method, StatusCode};

use crate::server::{
    address::Address,
    http::{self, Answer, Client, NoAnswer},
};

/// Returns the value of a variable of the job.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// How the comments of one host differ from those of the others.
struct Dialect {
    /// The query of the list of comments, oldest first, and the comments of a page; none if all are one page.
    query: (&'static str, Option<usize>),
    /// The place of the list in the answer.
    list: &'static str,
    /// The places of a comment's author and text, and of the mark of one that is not a person's or is deleted.
    author: &'static str,
    text: &'static str,
    hidden: &'static str,
    /// The path that answers the author of this token's comments, and the place there; none if bots write them.
    user: Option<(&'static str, &'static str)>,
    /// The content of a new comment, and the field of its text in a later request of this method.
    new: fn(&str) -> Value,
    edit: (Method, &'static str),
}

const GITHUB: Dialect = Dialect {
    query: ("per_page=100", Some(100)),
    list: "",
    author: "/user/id",
    text: "/body",
    hidden: "/system",
    user: Some(("/user", "/id")),
    new: |text| json!({ "body": text }),
    edit: (Method::PATCH, "body"),
};

/// The token of an app has no user that it may ask for. Its comments are those of a bot.
const GITHUB_APP: Dialect = Dialect {
    author: "/user/type",
    user: None,
    ..GITHUB
};

const GITLAB: Dialect = Dialect {
    query: ("sort=asc&order_by=created_at&per_page=100", Some(100)),
    author: "/author/id",
    edit: (Method::PUT, "body"),
    ..GITHUB
};

/// Each comment is the first one of a thread, and has the thread's id. A deleted one stays in the list.
const AZURE: Dialect = Dialect {
    query: ("api-version=7.1", None),
    list: "/value",
    author: "/comments/0/author/id",
    text: "/comments/0/content",
    hidden: "/comments/0/isDeleted",
    user: Some((
        "/_apis/connectionData?connectOptions=none&api-version=7.1-preview.1",
        "/authenticatedUser/id",
    )),
    // A thread that is active may keep a pull request from being completed.
    new: |text| {
        let comment = json!({"parentCommentId": 0, "content": text, "commentType": "text"});
        json!({"comments": [comment], "status": "closed"})
    },
    edit: (Method::PATCH, "content"),
};

/// The headers of GitHub.
const HEADERS: &[(&str, &str)] = &[
    ("Accept", "application/vnd.github+json"),
    ("X-GitHub-Api-Version", "2022-11-28"),
];

/// The beginning of the tokens of GitHub's apps and jobs.
const INSTALLATION: &str = "ghs_";

/// A comment that the host has. An id that is smaller is older.
pub(crate) struct ExistingComment {
    /// The host's id of it.
    pub(crate) id: u64,
    /// Its text.
    pub(crate) body: String,
}

/// The comments of one pull request.
pub struct CodeHost {
    requests: Requests,
    dialect: Dialect,
    /// The path of all comments, and what stands before and after the id in the path of one.
    all: String,
    one: (String, &'static str),
    /// The author of the comments that this token may have written, once it was asked for.
    author: OnceCell<Value>,
}

impl CodeHost {
    /// The pull request of a job, whose requests end at `deadline`. None without a token, if the variables name no
    /// repository, or if comments of its host are not supported.
    pub fn of_job(
        provider: Option<CiProvider>,
        variable: Variables<'_>,
        number: i64,
        deadline: Instant,
    ) -> anyhow::Result<Option<Self>> {
        let found = match provider {
            Some(CiProvider::GithubActions) => github(variable, deadline)?.map(|(requests, repository)| {
                let dialect = match requests.token.starts_with(INSTALLATION) {
                    true => GITHUB_APP,
                    false => GITHUB,
                };
                let all = format!("/repos/{repository}/issues/{number}/comments");
                let one = format!("/repos/{repository}/issues/comments");
                (requests, dialect, all, (one, ""))
            }),
            Some(CiProvider::GitlabCi) => gitlab(variable, deadline)?.map(|(requests, project)| {
                let all = format!("/projects/{project}/merge_requests/{number}/notes");
                (requests, GITLAB, all.clone(), (all, ""))
            }),
            Some(CiProvider::AzurePipelines) => azure(variable, deadline)?.map(|(requests, repository)| {
                let all = format!("{repository}/pullRequests/{number}/threads");
                (requests, AZURE, all.clone(), (all, "/comments/1?api-version=7.1"))
            }),
            Some(
                CiProvider::Buildkite
                | CiProvider::Circleci
                | CiProvider::BitbucketPipelines
                | CiProvider::Jenkins
                | CiProvider::Teamcity
                | CiProvider::Other,
            )
            | None => None,
        };
        Ok(found.map(|(requests, dialect, all, one)| Self {
            requests,
            dialect,
            all,
            one,
            author: OnceCell::new(),
        }))
    }

    /// The comments of one page, from 1, that this token may have written, oldest first, and whether no page follows.
    /// Anyone can copy the hidden line into a comment of their own, so only those of the token's author count.
    pub(crate) fn page(&self, page: u32) -> Result<(Vec<ExistingComment>, bool), PostError> {
        let (query, per_page) = self.dialect.query;
        let place = per_page.map_or_else(String::new, |_| format!("&page={page}"));
        let path = format!("{}?{query}{place}", self.all);
        let answer = self.requests.send(Method::GET, &path, None)?;
        let comments = answer.pointer(self.dialect.list).and_then(Value::as_array);
        let comments = comments.ok_or(PostError::Unreadable("list of comments"))?;
        let own = self.own(comments)?.into_iter();
        let existing = own.filter_map(|comment| {
            Some(ExistingComment {
                id: comment.get("id")?.as_u64()?,
                body: comment.pointer(self.dialect.text)?.as_str()?.to_owned(),
            })
        });
        let is_last = per_page.is_none_or(|most| comments.len() < most);
        Ok((existing.collect(), is_last))
    }

    /// Those of the comments or issues that this token may have written.
    pub(crate) fn own<'a>(&self, entries: &'a [Value]) -> Result<Vec<&'a Value>, PostError> {
        let author = self.author()?;
        let is_own = |entry: &&Value| {
            entry.pointer(self.dialect.author) == Some(author)
                && entry.pointer(self.dialect.hidden) != Some(&Value::Bool(true))
        };
        Ok(entries.iter().filter(is_own).collect())
    }

    /// Sends a request to another route of the host.
    pub(crate) fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, PostError> {
        self.requests.send(method, path, body)
    }

    fn author(&self) -> Result<&Value, PostError> {
        if let Some(author) = self.author.get() {
            return Ok(author);
        }
        let author = match self.dialect.user {
            None => Value::from("Bot"),
            Some((path, place)) => {
                let mut answer = self.requests.send(Method::GET, path, None)?;
                let id = answer.pointer_mut(place).map(Value::take);
                id.filter(|id| !id.is_null())
                    .ok_or(PostError::Unreadable("id of the token's user"))?
            }
        };
        Ok(self.author.get_or_init(|| author))
    }

    /// Writes a comment.
    pub(crate) fn create(&self, text: &str) -> Result<(), PostError> {
        // A host without pages has its version in the query.
        let path = match self.dialect.query {
            (_, Some(_)) => self.all.clone(),
            (version, None) => format!("{}?{version}", self.all),
        };
        let content = (self.dialect.new)(text);
        self.requests.send(Method::POST, &path, Some(&content)).map(drop)
    }

    /// Replaces the text of a comment.
    pub(crate) fn edit(&self, id: u64, text: &str) -> Result<(), PostError> {
        let (method, field) = &self.dialect.edit;
        let content = json!({ *field: text });
        self.requests
            .send(method.clone(), &self.path_of(id), Some(&content))
            .map(drop)
    }

    /// Deletes a comment.
    pub(crate) fn delete(&self, id: u64) -> Result<(), PostError> {
        self.requests
            .send(Method::DELETE, &self.path_of(id), None)
            .map(drop)
    }

    fn path_of(&self, id: u64) -> String {
        let (before, after) = &self.one;
        format!("{before}/{id}{after}")
    }
}

/// The host and the repository of a job of GitHub Actions.
pub(crate) fn github(
    variable: Variables<'_>,
    deadline: Instant,
) -> anyhow::Result<Option<(Requests, String)>> {
    let is_name = |part: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !part.is_empty() && part != ".." && part.bytes().all(is_allowed)
    };
    let repository = variable("GITHUB_REPOSITORY").filter(|name| {
        name.split_once('/')
            .is_some_and(|(owner, name)| is_name(owner) && is_name(name))
    });
    let api = variable("GITHUB_API_URL").unwrap_or_else(|| "https://api.github.com".to_owned());
    let token = (variable("GITHUB_TOKEN"), "Authorization", "Bearer ");
    let Some(repository) = repository else {
        return Ok(None);
    };
    let requests = Requests::new(&api, token, HEADERS, deadline)?;
    Ok(requests.map(|requests| (requests, repository)))
}

/// The host and the project of a job of GitLab CI.
pub(crate) fn gitlab(variable: Variables<'_>, deadline: Instant) -> anyhow::Result<Option<(Requests, u64)>> {
    let project = variable("CI_PROJECT_ID").and_then(|id| id.parse().ok());
    let Some((project, api)) = project.zip(variable("CI_API_V4_URL")) else {
        return Ok(None);
    };
    let token = (variable("GITLAB_TOKEN"), "PRIVATE-TOKEN", "");
    Ok(Requests::new(&api, token, &[], deadline)?.map(|requests| (requests, project)))
}

fn azure(variable: Variables<'_>, deadline: Instant) -> anyhow::Result<Option<(Requests, String)>> {
    let is_id =
        |id: &String| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_azure = variable("BUILD_REPOSITORY_PROVIDER").as_deref() == Some("TfsGit");
    let (true, Some(collection), Some(project), Some(repository)) = (
        is_azure,
        variable("SYSTEM_COLLECTIONURI"),
        variable("SYSTEM_TEAMPROJECTID").filter(is_id),
        variable("BUILD_REPOSITORY_ID").filter(is_id),
    ) else {
        return Ok(None);
    };
    let token = (variable("SYSTEM_ACCESSTOKEN"), "Authorization", "Bearer ");
    let path = format!("/{project}/_apis/git/repositories/{repository}");
    Ok(Requests::new(&collection, token, &[], deadline)?.map(|requests| (requests, path)))
}

/// The reason why a comment was not posted.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// The host does not answer.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The token may not write here, as that of a fork's pull request.
    #[error("the token may not write here ({status}: {reason})")]
    Forbidden {
        /// The status.
        status: u16,
        /// The host's reason.
        reason: String,
    },
    /// The host limits the rate.
    #[error("the code host limits the rate ({status}: {reason})")]
    RateLimited {
        /// The status.
        status: u16,
        /// The host's reason.
        reason: String,
        /// The wait that the host asks for.
        retry_after: Option<Duration>,
    },
    /// The host refuses the request, or fails.
    #[error("the code host answered {status}: {reason}")]
    Refused {
        /// The status.
        status: u16,
        /// The host's reason.
        reason: String,
    },
    /// The host's answer has another form than its documentation says.
    #[error("the code host's answer has no {0}")]
    Unreadable(&'static str),
}

impl Transient for PostError {
    fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer(problem) => problem.is_transient(),
            Self::RateLimited { .. } => true,
            Self::Refused { status, .. } => StatusCode::from_u16(*status).is_ok_and(http::is_transient),
            Self::Forbidden { .. } | Self::Unreadable(_) => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        if let Self::RateLimited { retry_after, .. } = self {
            *retry_after
        } else {
            None
        }
    }
}

/// Requests to the routes of a code host. The token is in no message.
pub(crate) struct Requests {
    client: Client,
    token: String,
    /// The header of the token, and what stands before it there.
    authorization: (&'static str, &'static str),
    headers: &'static [(&'static str, &'static str)],
    /// When every request ends, also one to a silent host.
    deadline: Instant,
}

impl Requests {
    /// None without a token that is a valid header value.
    fn new(
        api: &str,
        (token, header, scheme): (Option<String>, &'static str, &'static str),
        headers: &'static [(&'static str, &'static str)],
        deadline: Instant,
    ) -> anyhow::Result<Option<Self>> {
        let token = token.unwrap_or_default().trim().to_owned();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(None);
        }
        Ok(Some(Self {
            client: Client::new(Address::parse("the code host", api, false)?)?,
            token,
            authorization: (header, scheme),
            headers,
            deadline,
        }))
    }

    /// Sends a request and returns the JSON of a successful answer; null if it has no body.
    pub(crate) fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, PostError> {
        let (name, scheme) = self.authorization;
        let authorization = format!("{scheme}{}", self.token);
        let headers = [self.headers, &[(name, &authorization)]].concat();
        let url = format!("{}{path}", self.client.address.base());
        let answer = self
            .client
            .send(method, &url, &headers, body, Some(http::until(self.deadline)))?;
        if answer.status.is_success() {
            return Ok(answer.json.unwrap_or_default());
        }
        Err(refusal(&answer))
    }
}

fn refusal(answer: &Answer) -> PostError {
    let status = answer.status.as_u16();
    // GitHub lists what is wrong with a content beside a general message.
    let has_errors = answer
        .json
        .as_ref()
        .is_some_and(|json| json.get("errors").is_some());
    let message = answer.text("message").filter(|_| !has_errors);
    let reason = message.unwrap_or_else(|| answer.beginning());
    // GitHub answers 403 with `Retry-After` or this text if a secondary limit is exceeded.
    let is_limit = status == 429
        || (status == 403
            && (answer.retry_after.is_some() || reason.to_ascii_lowercase().contains("rate limit")));
    if is_limit {
        return PostError::RateLimited {
            status,
            reason,
            retry_after: answer.retry_after,
        };
    }
    match status {
        // A token without the right gets 404 where it may not know that the pull request exists.
        401 | 403 | 404 => PostError::Forbidden { status, reason },
        _ => PostError::Refused { status, reason },
    }
}
