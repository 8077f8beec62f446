//! The failures of a stored run, from the read API.

use std::{fmt, time::Duration};

use anyhow::{Context as _, anyhow};
use assay_domain::id::{ProjectId, RunId};
use assay_reports::shown_name;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use ureq::{Agent, http::header};

use super::judged::JudgedRun;
use crate::{
    cli::Global,
    commands::upload::UploadFlags,
    environment,
    http::{self, Answer, NoAnswer},
    misuse::Misuse,
    upload::{
        address::Address,
        retry::{self, Backoff, Transient},
    },
};

/// Heading of the help.
const STORED: &str = "A stored run";
/// Most failures in an answer of the route.
const MOST_LISTED: u32 = 200;

/// Which stored run to judge, and where it is.
#[derive(Debug, Args)]
pub(crate) struct StoredRunFlags {
    /// Judge a stored run with all its shards: the runId that `assay upload --json` prints; needs ASSAY_READ_KEY
    #[arg(long, value_name = "ID", help_heading = STORED, conflicts_with_all = ["paths", "history"])]
    pub(crate) run: Option<RunId>,
    /// The address of the server's read API
    #[arg(long, value_name = "https://HOST/api/v1", env = "ASSAY_API_URL", hide_env_values = true, help_heading = STORED)]
    api_url: Option<String>,
}

impl StoredRunFlags {
    /// Asks the server for the failures of a run. An address or a key that is missing is wrong usage.
    pub(crate) fn fetch(
        &self,
        global: &Global,
        run: RunId,
        flags: &UploadFlags,
    ) -> anyhow::Result<JudgedRun> {
        let missing = |what: &str, value: &str| Misuse(format!("{what} is not set; set it to {value}"));
        let url = self.api_url.as_deref().filter(|url| !url.trim().is_empty());
        let url = url.ok_or_else(|| {
            missing(
                "ASSAY_API_URL",
                "the address of the read API, such as https://assay.example.org/api/v1",
            )
        })?;
        let key = environment::read_key().filter(|key| !key.trim().is_empty());
        let key = key.ok_or_else(|| missing("ASSAY_READ_KEY", "a read key (`assay key create`)"))?;
        let address = Address::parse("the read API", url, flags.insecure_http)?;
        let api = ReadApi {
            agent: http::agent(&address)?,
            address,
            authorization: format!("Bearer {}", key.trim()),
        };
        let mut backoff = Backoff::new(flags.retry_for);
        let mut get = |path: &str| {
            retry::until_expired(global, &mut backoff, "no answer yet", || api.get(path))
                .map_err(anyhow::Error::new)
        };
        let project = select_project(&get("projects")?, flags.project.as_deref())?;
        let answer = get(&format!(
            "projects/{project}/runs/{run}/failures?limit={MOST_LISTED}"
        ))?;
        JudgedRun::of_stored_run(&answer)
    }
}

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
            "the read key's organization has no project; create one with `assay project create`"
        )),
        (None, [_, _, ..]) => Err(Misuse(
            "the read key's organization has several projects; select one with --project".to_owned(),
        )
        .into()),
    }
}

/// A client of the read API.
struct ReadApi {
    agent: Agent,
    address: Address,
    authorization: String,
}

impl ReadApi {
    fn get(&self, path: &str) -> Result<Value, ApiReadError> {
        let base = self.address.base().trim_end_matches("/api/v1");
        let answer = self
            .agent
            .get(format!("{base}/api/v1/{path}"))
            .header(header::AUTHORIZATION, &self.authorization)
            .call();
        let answer = Answer::read(&self.address, answer).map_err(ApiReadError::NoAnswer)?;
        if answer.status.is_success()
            && let Some(json) = answer.json
        {
            return Ok(json);
        }
        let status = answer.status.as_u16();
        let reason = match (answer.text("error"), answer.text("code")) {
            (Some(error), Some(code)) => format!("{error} ({status} {code})"),
            _ => format!(
                "{} answered {status}, which is not an answer of the read API; check ASSAY_API_URL",
                self.address
            ),
        };
        Err(ApiReadError::Refused {
            is_transient: http::is_transient(answer.status),
            reason,
            retry_after: answer.retry_after,
        })
    }
}

/// The reason why the read API returned no failures to judge.
#[derive(Debug)]
enum ApiReadError {
    /// The server did not answer.
    NoAnswer(NoAnswer),
    /// The server answered with an error.
    Refused {
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

impl fmt::Display for ApiReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(problem) => problem.fmt(f),
            Self::Refused { reason, .. } => f.write_str(reason),
        }
    }
}

impl std::error::Error for ApiReadError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
