//! The read API of a server, for a program with a read key.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use assay_cli_terminal::{
    misuse::Misuse,
    progress::Progress,
    retry::{self, Backoff, Transient},
};
use assay_domain::{
    id::{ProjectId, RunId},
    verdict::VerdictEntry,
};
use assay_reports::shown_name;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use ureq::http::{Method, StatusCode, header};

use crate::server::{
    address::Address,
    http::{self, Client, NoAnswer},
};

#[derive(Debug, Deserialize)]
struct Projects {
    projects: Vec<NamedProject>,
}

#[derive(Debug, Deserialize)]
struct NamedProject {
    id: ProjectId,
    name: String,
}

/// The project of this id or name; without one the key's only project.
fn select_project(answer: &Value, wanted: Option<&str>) -> anyhow::Result<ProjectId> {
    let Projects { projects } =
        Projects::deserialize(answer).context("the server's answer lists no projects")?;
    match (wanted, projects.as_slice()) {
        (Some(wanted), projects) => {
            let id = wanted.parse().ok();
            let project = projects
                .iter()
                .find(|project| Some(project.id) == id || project.name == wanted);
            let project = project.ok_or_else(|| {
                anyhow!(
                    "the read key's organization has no project {:?}",
                    shown_name(wanted)
                )
            })?;
            Ok(project.id)
        }
        (None, [only]) => Ok(only.id),
        (None, []) => Err(anyhow!(
            "the read key's organization has no project; create one with `assay-admin project create`"
        )),
        (None, [_, _, ..]) => Err(Misuse(
            "the read key's organization has several projects; select one with --project".to_owned(),
        )
        .into()),
    }
}

/// The path of a test and what follows it, such as `/fix` or `?days=90`.
pub fn path_of_test(project: ProjectId, test: &str, file: Option<&str>, rest: &str) -> String {
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let separator = if rest.contains('?') { '&' } else { '?' };
    let file = file.map_or_else(String::new, |file| {
        format!("{separator}filePath={}", encoded(file))
    });
    format!("projects/{project}/tests/{}{rest}{file}", encoded(test))
}

/// A client of the read API.
pub struct ReadApi<'a> {
    client: Client,
    authorization: String,
    backoff: Backoff,
    progress: &'a dyn Progress,
}

impl<'a> ReadApi<'a> {
    /// Creates a client. It retries a request for this long. Fails if connections must be encrypted and this system
    /// trusts no authority.
    pub fn new(
        address: Address,
        key: &str,
        retry_for: Duration,
        progress: &'a dyn Progress,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            client: Client::new(address)?,
            authorization: format!("Bearer {}", key.trim()),
            backoff: Backoff::new(retry_for),
            progress,
        })
    }

    /// The project of this id or name; without one the key's only project.
    pub fn project(&mut self, wanted: Option<&str>) -> anyhow::Result<ProjectId> {
        select_project(&self.get("projects")?, wanted)
    }

    /// The project of this id or name; without one that of the run.
    pub fn project_of_run(&mut self, wanted: Option<&str>, run: RunId) -> anyhow::Result<ProjectId> {
        let answer = self.get("projects")?;
        let selected = select_project(&answer, wanted);
        if wanted.is_some() || selected.is_ok() {
            return selected;
        }
        let Projects { projects } =
            Projects::deserialize(&answer).context("the server's answer lists no projects")?;
        for project in projects {
            if self
                .find(&format!("projects/{}/runs/{run}", project.id))?
                .is_some()
            {
                return Ok(project.id);
            }
        }
        selected
    }

    /// The entries of the project's flaky list on all pages, and the answer with the last of them. `filter` narrows the list,
    /// such as `&status=flaky`.
    pub fn flaky_list(
        &mut self,
        project: ProjectId,
        filter: &str,
    ) -> anyhow::Result<(Vec<VerdictEntry>, Value)> {
        let (mut entries, mut page) = (Vec::new(), 1);
        loop {
            let answer = self.get(&format!(
                "projects/{project}/flaky?perPage=50&page={page}{filter}"
            ))?;
            let no_list = "the server's answer is not a flaky list";
            let listed = answer.get("tests").context(no_list)?;
            entries.extend(Vec::<VerdictEntry>::deserialize(listed).context(no_list)?);
            let pages = answer.pointer("/page/pageCount").and_then(Value::as_u64);
            if page >= pages.context(no_list)? {
                return Ok((entries, answer));
            }
            page += 1;
        }
    }

    /// The answer of a route, retried while the server is unreachable or busy.
    pub fn get(&mut self, path: &str) -> anyhow::Result<Value> {
        self.answer(path).map_err(anyhow::Error::new)
    }

    /// The same; none if the server does not know what the path names.
    pub fn find(&mut self, path: &str) -> anyhow::Result<Option<Value>> {
        match self.answer(path) {
            Err(ApiReadError::Refused { status: 404, .. }) => Ok(None),
            answer => Ok(Some(answer?)),
        }
    }

    fn answer(&mut self, path: &str) -> Result<Value, ApiReadError> {
        let mut backoff = std::mem::replace(&mut self.backoff, Backoff::new(Duration::ZERO));
        let answer = retry::until_expired(self.progress, &mut backoff, "no answer yet", || {
            self.get_once(path)
        });
        self.backoff = backoff;
        answer
    }

    fn get_once(&self, path: &str) -> Result<Value, ApiReadError> {
        let address = &self.client.address;
        let url = format!("{}/api/v1/{path}", address.base().trim_end_matches("/api/v1"));
        let headers = [(header::AUTHORIZATION.as_str(), self.authorization.as_str())];
        let answer = self.client.send(Method::GET, &url, &headers, None, None)?;
        if answer.status.is_success()
            && let Some(json) = answer.json
        {
            return Ok(json);
        }
        let status = answer.status.as_u16();
        let reason = match (answer.text("error"), answer.text("code")) {
            (Some(error), Some(code)) => format!("{error} ({status} {code})"),
            _ if answer.status == StatusCode::TOO_MANY_REQUESTS => {
                let again = match answer.retry_after {
                    Some(wait) => format!("in {} s", wait.as_secs()),
                    None => "in the next minute".to_owned(),
                };
                format!(
                    "{address} answered {status}: this key made its requests of the minute; try again {again}"
                )
            }
            _ => format!(
                "{address} answered {status}, which is not an answer of the read API; check ASSAY_API_URL"
            ),
        };
        Err(ApiReadError::Refused {
            status,
            is_transient: http::is_transient(answer.status),
            reason,
            retry_after: answer.retry_after,
        })
    }
}

/// The reason why the read API has not answered.
#[derive(Debug, thiserror::Error)]
enum ApiReadError {
    /// The server did not answer.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The server answered with an error.
    #[error("{reason}")]
    Refused {
        status: u16,
        is_transient: bool,
        reason: String,
        retry_after: Option<Duration>,
    },
}

impl Transient for ApiReadError {
    fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer(problem) => problem.is_transient(),
            Self::Refused { is_transient, .. } => *is_transient,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NoAnswer(_) => None,
            Self::Refused { retry_after, .. } => *retry_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_in_a_path_are_encoded() {
        let id = "019aa3f4-5b1c-7def-8a3b-2f4e5d6c7b8a";
        let path = path_of_test(id.parse().unwrap(), "cart > pays/1", Some("a b"), "?days=90");
        let expected = format!("projects/{id}/tests/cart%20%3E%20pays%2F1?days=90&filePath=a%20b");
        assert_eq!(path, expected);
    }

    #[test]
    fn a_project_is_named_or_the_only_one() {
        let ids = [
            "019aa3f4-5b1c-7def-8a3b-2f4e5d6c7b8a",
            "019aa3f4-5b1c-7def-8a3b-2f4e5d6c7b8b",
        ];
        let [one, other] = ids.map(|id| json!({"id": id, "name": format!("p{}", &id[35..])}));
        let only = json!({"projects": [one]});
        let both = json!({"projects": [one, other]});
        assert_eq!(select_project(&only, None).unwrap().to_string(), ids[0]);
        assert_eq!(select_project(&both, Some("pb")).unwrap().to_string(), ids[1]);
        assert_eq!(select_project(&both, Some(ids[0])).unwrap().to_string(), ids[0]);
        assert!(select_project(&both, None).unwrap_err().is::<Misuse>());
        assert!(select_project(&both, Some("px")).is_err());
        assert!(select_project(&json!({"projects": []}), None).is_err());
    }
}
