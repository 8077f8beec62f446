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

/// Most pages that are read of a list.
const MOST_PAGES: u32 = 20;

/// How the comments of one host differ from those of the others.
struct Dialect {
    /// The paths of all comments and of one below the repository, with `{number}` and `{id}`.
    all: &'static str,
    one: &'static str,
    /// The query of the list of comments, oldest first.
    query: &'static str,
    /// The entries of a page of a list; none if all are one page.
    per_page: Option<usize>,
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
    all: "/issues/{number}/comments",
    one: "/issues/comments/{id}",
    query: "per_page=100",
    per_page: Some(100),
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
    all: "/merge_requests/{number}/notes",
    one: "/merge_requests/{number}/notes/{id}",
    query: "sort=asc&order_by=created_at&per_page=100",
    author: "/author/id",
    edit: (Method::PUT, "body"),
    ..GITHUB
};

/// Each comment is the first one of a thread, and has the thread's id. A deleted one stays in the list.
const AZURE: Dialect = Dialect {
    all: "/pullRequests/{number}/threads",
    one: "/pullRequests/{number}/threads/{id}/comments/1?api-version=7.1",
    query: "api-version=7.1",
    per_page: None,
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
    /// The path of the repository, and the number of the pull request.
    repository: String,
    number: i64,
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
                (requests, dialect, format!("/repos/{repository}"))
            }),
            Some(CiProvider::GitlabCi) => gitlab(variable, deadline)?
                .map(|(requests, project)| (requests, GITLAB, format!("/projects/{project}"))),
            Some(CiProvider::AzurePipelines) => {
                azure(variable, deadline)?.map(|(requests, repository)| (requests, AZURE, repository))
            }
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
        Ok(found.map(|(requests, dialect, repository)| Self {
            requests,
            dialect,
            repository,
            number,
            author: OnceCell::new(),
        }))
    }

    /// The first result of `find`, which gets the comments that this token may have written, oldest first, a page at a time.
    pub(crate) fn find_comment<T>(
        &self,
        mut find: impl FnMut(Vec<ExistingComment>) -> Option<T>,
    ) -> Result<Option<T>, PostError> {
        let existing = |comment: &Value| {
            Some(ExistingComment {
                id: comment.get("id")?.as_u64()?,
                body: comment.pointer(self.dialect.text)?.as_str()?.to_owned(),
            })
        };
        let list = (&*self.path(self.dialect.all, 0), self.dialect.query);
        let get = |path: &str| self.requests.answer(Method::GET, path, None);
        self.search(list, get, |own| {
            find(own.into_iter().filter_map(existing).collect())
        })
    }

    /// The first result of `find`, which gets the entries of a list that this token may have written, a page at a time. Anyone
    /// can copy the hidden line into a text of their own, so only those of the token's author count.
    pub(crate) fn search<T>(
        &self,
        (path, query): (&str, &str),
        get: impl Fn(&str) -> Result<Answer, PostError>,
        mut find: impl FnMut(Vec<&Value>) -> Option<T>,
    ) -> Result<Option<T>, PostError> {
        let per_page = self.dialect.per_page;
        for page in 1..=MOST_PAGES {
            let place = per_page.map_or_else(String::new, |_| format!("&page={page}"));
            let answer = get(&format!("{path}?{query}{place}"))?;
            let list = answer
                .json
                .as_ref()
                .and_then(|json| json.pointer(self.dialect.list));
            let entries = list.and_then(Value::as_array);
            let entries = entries.ok_or(PostError::Unreadable("list"))?;
            let author = self.author()?;
            let is_own = |entry: &&Value| {
                entry.pointer(self.dialect.author) == Some(author)
                    && entry.pointer(self.dialect.hidden) != Some(&Value::Bool(true))
            };
            let found = find(entries.iter().filter(is_own).collect());
            // A host may make shorter pages.
            let is_last = |most| entries.len() < most && !answer.has_next;
            if found.is_some() || per_page.is_none_or(is_last) {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The path of a route below the repository.
    pub(crate) fn path(&self, pattern: &str, id: u64) -> String {
        let path = pattern.replace("{number}", &self.number.to_string());
        format!("{}{}", self.repository, path.replace("{id}", &id.to_string()))
    }

    /// The requests to other routes of the host.
    pub(crate) const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The method that changes a comment or an issue.
    pub(crate) const fn editing_method(&self) -> &Method {
        &self.dialect.edit.0
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
        let path = self.path(self.dialect.all, 0);
        // A host without pages has its version in the query.
        let path = match self.dialect.per_page {
            Some(_) => path,
            None => format!("{path}?{}", self.dialect.query),
        };
        self.write(Method::POST, &path, Some((self.dialect.new)(text)))
    }

    /// Replaces the text of a comment.
    pub(crate) fn edit(&self, id: u64, text: &str) -> Result<(), PostError> {
        let (method, field) = &self.dialect.edit;
        let content = json!({ *field: text });
        self.write(method.clone(), &self.path(self.dialect.one, id), Some(content))
    }

    /// Deletes a comment.
    pub(crate) fn delete(&self, id: u64) -> Result<(), PostError> {
        self.write(Method::DELETE, &self.path(self.dialect.one, id), None)
    }

    fn write(&self, method: Method, path: &str, content: Option<Value>) -> Result<(), PostError> {
        self.requests.send(method, path, content.as_ref()).map(drop)
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
    pub(crate) deadline: Instant,
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
        let answer = self.answer(method, path, body)?;
        Ok(answer.json.unwrap_or_default())
    }

    /// The same, with the answer's headers.
    pub(crate) fn answer(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, PostError> {
        let (name, scheme) = self.authorization;
        let authorization = format!("{scheme}{}", self.token);
        let headers = [self.headers, &[(name, &authorization)]].concat();
        let url = format!("{}{path}", self.client.address.base());
        let answer = self
            .client
            .send(method, &url, &headers, body, Some(http::until(self.deadline)))?;
        if answer.status.is_success() {
            return Ok(answer);
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
    if answer.is_of_limit() {
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
