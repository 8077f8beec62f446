//! The operator's file `identity.toml`: providers at which people sign in, and what their claims permit.

use std::path::{Path, PathBuf};

use assay_outbound::{Allowed, FileError, checked_host, read_file, read_secret_file};
use serde::Deserialize;
use toml::Spanned;

/// Most projects of a person. They are in the session.
const MOST_PROJECTS: usize = 50;

/// The file's contents.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdentityFile {
    /// Hosts and addresses of this network at which issuers may be, also those of CI services.
    #[serde(default)]
    pub private_addresses: Vec<String>,
    #[serde(default, rename = "provider")]
    providers: Vec<Spanned<Provider>>,
}

/// A provider at which people sign in.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Its name on the sign-in page.
    pub name: String,
    /// The address that its tokens name as their issuer.
    pub issuer: String,
    /// The id under which the provider knows this installation: the audience of its tokens.
    pub client_id: String,
    /// A file with the secret of the client, if it has one.
    client_secret_file: Option<PathBuf>,
    #[serde(skip)]
    pub(crate) client_secret: Option<String>,
    /// The scopes that are asked for.
    #[serde(default = "openid")]
    pub(crate) scopes: Vec<String>,
    pub(crate) access: Vec<Access>,
}

/// What a claim permits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// The name of the claim.
    pub claim: String,
    /// Its value, or one of its values.
    pub value: String,
    /// The name of the organization that the person may read.
    pub organization: String,
    /// The names of its projects; without them, all.
    pub projects: Option<Vec<String>>,
}

fn openid() -> Vec<String> {
    vec!["openid".to_owned()]
}

impl IdentityFile {
    /// Reads and checks the file, and the secrets that it names.
    ///
    /// # Errors
    /// What is wrong, with the file and the line.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = read_file(path)?;
        let wrong = |start: usize, problem: &str| FileError::at(path, &text, start, problem);
        let mut file: Self = toml::from_str(&text)
            .map_err(|error| wrong(error.span().map_or(0, |span| span.start), error.message()))?;
        let allowed = Allowed::new(file.private_addresses.clone());
        for provider in &mut file.providers {
            let start = provider.span().start;
            let provider = provider.get_mut();
            provider
                .check(&allowed)
                .map_err(|problem| wrong(start, &problem))?;
            if let Some(secret) = &provider.client_secret_file {
                provider.client_secret = Some(read_secret_file(secret)?.trim().to_owned());
            }
        }
        Ok(file)
    }

    /// The providers, in the order of the file.
    pub fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.iter().map(Spanned::get_ref)
    }
}

impl Provider {
    fn check(&self, allowed: &Allowed) -> Result<(), String> {
        let named = |problem: &str| format!("provider {:?}: {problem}", self.name);
        checked_host(&self.issuer, allowed).map_err(|problem| named(&format!("issuer: {problem}")))?;
        let projects = self.access.iter().filter_map(|access| access.projects.as_ref());
        let is_word = |scope: &String| !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic());
        let problem = if self.name.trim().is_empty() || self.name.chars().count() > 60 {
            "name must have 1 to 60 characters"
        } else if self.client_id.is_empty() {
            "client_id is empty"
        } else if !self.scopes.iter().any(|scope| scope == "openid") || !self.scopes.iter().all(is_word) {
            "scopes must be words, and have openid"
        } else if self.access.is_empty() {
            "it has no access; add [[provider.access]] with claim, value and organization"
        } else if self.access.iter().any(|access| {
            access.claim.is_empty() || access.value.is_empty() || access.organization.is_empty()
        }) {
            "access: claim, value and organization must not be empty"
        } else if projects.clone().any(Vec::is_empty) {
            "access: projects is empty; leave it out for all projects"
        } else if projects.map(Vec::len).sum::<usize>() > MOST_PROJECTS {
            "access: there are more than 50 projects; leave them out for all projects"
        } else {
            return Ok(());
        };
        Err(named(problem))
    }
}

#[cfg(test)]
mod tests;
