//! The token that a CI service gives its job, in the place of an ingest key.

use std::process::Command;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use ureq::http::{Method, header};

use crate::server::{
    address::{Address, identifier},
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

/// Where a job gets its tokens.
pub struct TokenSource {
    service: Service,
    repository: String,
}

enum Service {
    /// A variable of the job, as GitLab sets by `id_tokens`.
    Variable(String),
    /// An address, and the right to ask there.
    GitHub(String, String),
    /// The same.
    Azure(String, String),
    Buildkite,
    CircleCi,
}

impl TokenSource {
    /// The source that these variables of a job describe.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let pair = |url: &str, right: &str| variable(url).zip(variable(right));
        let service = if let Some(token) = variable("ASSAY_ID_TOKEN") {
            Service::Variable(token)
        } else if let Some((url, right)) =
            pair("ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")
        {
            Service::GitHub(url, right)
        } else if let Some((url, right)) = pair("SYSTEM_OIDCREQUESTURI", "SYSTEM_ACCESSTOKEN") {
            Service::Azure(url, right)
        } else if variable("BUILDKITE_AGENT_ACCESS_TOKEN").is_some() {
            Service::Buildkite
        } else {
            variable("CIRCLE_OIDC_TOKEN_V2")?;
            Service::CircleCi
        };
        let repository = REPOSITORIES
            .iter()
            .find_map(|name| variable(name))
            .unwrap_or_default();
        Some(Self { service, repository })
    }

    /// Identifies the jobs whose tokens are for the same project.
    pub(crate) fn identifier(&self) -> String {
        identifier(&format!("tokens\n{}", self.repository))
    }

    /// A token for this installation. Tokens live for minutes, so each request has a new one.
    pub(crate) fn token(&self, audience: &str) -> Result<String, String> {
        let token = match &self.service {
            Service::Variable(token) => token.trim().to_owned(),
            Service::GitHub(url, right) => {
                let audience = utf8_percent_encode(audience, NON_ALPHANUMERIC);
                ask(Method::GET, &format!("{url}&audience={audience}"), right, "value")?
            }
            // The token has an audience of its own.
            Service::Azure(url, right) => ask(
                Method::POST,
                &format!("{url}?api-version=7.1"),
                right,
                "oidcToken",
            )?,
            Service::Buildkite => printed(
                "buildkite-agent",
                &[
                    "oidc",
                    "request-token",
                    "--claim",
                    "pipeline_id",
                    "--audience",
                    audience,
                ],
            )?,
            Service::CircleCi => {
                let claims = json!({ "aud": audience }).to_string();
                printed("circleci", &["run", "oidc", "get", "--claims", &claims])?
            }
        };
        let is_part = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
        match token.len() <= LONGEST_TOKEN && token.contains('.') && token.chars().all(is_part) {
            true => Ok(token),
            false => Err("what it gives is no token".to_owned()),
        }
    }
}

/// What a program of a CI service prints.
fn printed(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program} does not start: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{program} ends with {}", output.status)),
    }
}

/// Asks a CI service for a token, which is in this field of the answer.
fn ask(method: Method, url: &str, right: &str, field: &str) -> Result<String, String> {
    let base = url.split('?').next().unwrap_or_default();
    let address = Address::parse("the CI service", base, false).map_err(|error| error.0)?;
    let client = Client::new(address).map_err(|error| format!("{error:#}"))?;
    let headers = [(header::AUTHORIZATION.as_str(), &*format!("Bearer {right}"))];
    let answer = client.send(method, url, &headers, None, None);
    let answer = answer.map_err(|problem| problem.to_string())?;
    let json = answer.json.as_ref().filter(|_| answer.status.is_success());
    json.and_then(|json| json.get(field)?.as_str())
        .map(str::to_owned)
        .ok_or_else(|| format!("it answers {} without a token", answer.status.as_u16()))
}
