//! Reads the environment. Only the definitions of flags name further variables.

use std::{ffi::OsString, path::PathBuf};

use assay_cli_terminal::misuse::Misuse;

/// The variable with the ingest key.
pub(crate) const INGEST_KEY: &str = "ASSAY_INGEST_KEY";
/// The variable with the read key.
pub(crate) const READ_KEY: &str = "ASSAY_READ_KEY";

/// The ingest key. It has no flag because other users can read the command line of a process.
pub(crate) fn ingest_key() -> Option<String> {
    variable(INGEST_KEY)
}

/// The read key. It has no flag either.
pub(crate) fn read_key() -> Option<String> {
    variable(READ_KEY).filter(|key| !key.trim().is_empty())
}

/// The one address of the installation, under which reports, the read API and the tools are.
pub(crate) fn installation() -> Option<String> {
    variable("ASSAY_URL").filter(|url| !url.trim().is_empty())
}

/// The file with the sessions of `assay login`.
pub(crate) fn logins() -> Result<PathBuf, Misuse> {
    let set = |name| {
        raw_variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let state = set("XDG_STATE_HOME")
        .or_else(|| Some(set("HOME")?.join(".local/state")))
        .or_else(|| set("LOCALAPPDATA"));
    let state = state
        .ok_or_else(|| Misuse("there is no folder for sessions; set XDG_STATE_HOME or HOME".to_owned()))?;
    Ok(state.join("assay/sessions.json"))
}

/// A variable's value; one that is not UTF-8 counts as unset.
pub(crate) fn variable(name: &str) -> Option<String> {
    raw_variable(name)?.into_string().ok()
}

/// A variable's value.
#[expect(
    clippy::disallowed_methods,
    reason = "a program reads the environment, here only"
)]
fn raw_variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The variables with which CI services give their own tokens to a job, besides those that `--report-to` uses.
const TOKENS_OF_CI: [&str; 13] = [
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ACTIONS_RUNTIME_TOKEN",
    "BITBUCKET_STEP_OIDC_TOKEN",
    "BUILDKITE_AGENT_ACCESS_TOKEN",
    "CI_DEPLOY_PASSWORD",
    "CI_JOB_JWT",
    "CI_JOB_JWT_V2",
    "CI_JOB_TOKEN",
    "CI_REGISTRY_PASSWORD",
    "CIRCLE_OIDC_TOKEN",
    "CIRCLE_OIDC_TOKEN_V2",
    "GH_TOKEN",
];

/// The variables that are set and are Assay's, such as its keys, or hold a token of the job.
#[expect(
    clippy::disallowed_methods,
    reason = "a program reads the environment, here only"
)]
pub(crate) fn secrets() -> Vec<OsString> {
    let is_secret = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("ASSAY_")
            || assay_cli_remote::codehost::TOKENS.contains(&&*name)
            || TOKENS_OF_CI.contains(&&*name)
    };
    std::env::vars_os()
        .map(|(name, _)| name)
        .filter(is_secret)
        .collect()
}
