//! The token that a CI service gives its job, in the place of an ingest key.

use std::process::Command;

use assay_domain::key;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use ureq::http::{Method, header};

use crate::server::{
    address::{Address, IDENTIFYING_BYTES},
    http::Client,
};

/// Longest token, in bytes.
const LONGEST_TOKEN: usize = 16 << 10;
/// The variables that name a job's repository. Uploads of a spool are sent by jobs of the same one.
const REPOSITORIES: [&str; 5] = [
    "GITHUB_REPOSITORY",
    "CI_PROJECT_PATH",
    "CIRCLE_REPOSITORY_URL",
    "BUILDKITE_PIPELINE_SLUG",
    "BUILD_REPOSITORY_URI",
];

const BUILDKITE: &str = "buildkite-agent";
const CIRCLECI: &str = "circleci";

/// Where a job gets its tokens.
pub struct TokenSource {
    service: Service,
    repository: String,
}

enum Service {
    /// A variable of the job, as GitLab sets by `id_tokens`.
    Variable(String),
    /// GitHub Actions and Azure Pipelines: an address, and the right to ask there.
    Asked {
        url: String,
        right: String,
        is_azure: bool,
    },
    /// Buildkite and CircleCI: a program of the service.
    Program(&'static str),
}

impl TokenSource {
    /// The source that these variables of a job describe.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let asked = |url: &str, right: &str, is_azure| {
            let (url, right) = variable(url).zip(variable(right))?;
            Some(Service::Asked { url, right, is_azure })
        };
        let program = |name: &str, program| variable(name).map(|_| Service::Program(program));
        let service = variable("ASSAY_ID_TOKEN")
            .map(Service::Variable)
            .or_else(|| {
                asked(
                    "ACTIONS_ID_TOKEN_REQUEST_URL",
                    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
                    false,
                )
            })
            .or_else(|| asked("SYSTEM_OIDCREQUESTURI", "SYSTEM_ACCESSTOKEN", true))
            .or_else(|| program("BUILDKITE_AGENT_ACCESS_TOKEN", BUILDKITE))
            .or_else(|| program("CIRCLE_OIDC_TOKEN_V2", CIRCLECI))?;
        let repository = REPOSITORIES
            .iter()
            .find_map(|name| variable(name))
            .unwrap_or_default();
        Some(Self { service, repository })
    }

    /// Identifies the jobs whose tokens are for the same project.
    pub(crate) fn identifier(&self) -> String {
        let hash = key::hash(format!("tokens\n{}", self.repository).as_bytes()).0;
        hash.iter()
            .take(IDENTIFYING_BYTES)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// A token for this installation. Tokens live for minutes, so each request has a new one.
    pub(crate) fn token(&self, audience: &str) -> Result<String, String> {
        let token = match &self.service {
            Service::Variable(token) => token.trim().to_owned(),
            Service::Asked { url, right, is_azure } => ask(url, right, *is_azure, audience)?,
            Service::Program(program) => {
                let claims = json!({ "aud": audience }).to_string();
                let arguments = match *program {
                    BUILDKITE => vec![
                        "oidc",
                        "request-token",
                        "--claim",
                        "pipeline_id",
                        "--audience",
                        audience,
                    ],
                    _ => vec!["run", "oidc", "get", "--claims", &claims],
                };
                let output = Command::new(program).args(arguments).output();
                let output = output.map_err(|error| format!("{program} does not start: {error}"))?;
                if !output.status.success() {
                    return Err(format!("{program} ends with {}", output.status));
                }
                String::from_utf8_lossy(&output.stdout).trim().to_owned()
            }
        };
        let is_part = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
        match token.len() <= LONGEST_TOKEN && token.contains('.') && token.chars().all(is_part) {
            true => Ok(token),
            false => Err("what it gives is no token".to_owned()),
        }
    }
}

/// Asks a CI service for a token. Azure's has an audience of its own.
fn ask(url: &str, right: &str, is_azure: bool, audience: &str) -> Result<String, String> {
    let base = url.split('?').next().unwrap_or_default();
    let address = Address::parse("the CI service", base, false).map_err(|error| error.0)?;
    let client = Client::new(address).map_err(|error| format!("{error:#}"))?;
    let (method, url, field) = if is_azure {
        (Method::POST, format!("{url}?api-version=7.1"), "oidcToken")
    } else {
        let audience = utf8_percent_encode(audience, NON_ALPHANUMERIC);
        (Method::GET, format!("{url}&audience={audience}"), "value")
    };
    let headers = [(header::AUTHORIZATION.as_str(), &*format!("Bearer {right}"))];
    let answer = client.send(method, &url, &headers, None, None);
    let answer = answer.map_err(|problem| problem.to_string())?;
    let token = answer
        .json
        .as_ref()
        .and_then(|json| json.get(field))
        .and_then(Value::as_str);
    let token = token.filter(|_| answer.status.is_success());
    token
        .map(str::to_owned)
        .ok_or_else(|| format!("it answers {} without a token", answer.status.as_u16()))
}
