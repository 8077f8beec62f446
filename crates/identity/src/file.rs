//! The operator's file `identity.toml`: providers at which people sign in, and what their claims permit.

use std::{
    fs::File,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use assay_outbound::{Allowed, checked_host};
use serde::Deserialize;
use toml::Spanned;

/// Largest file, in bytes.
const LARGEST_FILE: u64 = 256 << 10;
/// Most providers.
const MOST_PROVIDERS: usize = 20;
/// Most projects of a person. They are in the session.
const MOST_PROJECTS: usize = 50;

/// Why the file is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file cannot be read.
    #[error("{0} cannot be read: {1}")]
    Unreadable(PathBuf, std::io::Error),
    /// Other users of the machine can read a secret.
    #[error("{0} has a secret, and other users can read it; run `chmod 600 {0}`")]
    Exposed(PathBuf),
    /// Something in the file is wrong.
    #[error("{0}:{1}: {2}")]
    Invalid(PathBuf, usize, String),
}

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
        let text = read(path)?;
        let line = |start: usize| {
            text.get(..start)
                .map_or(1, |before| before.matches('\n').count() + 1)
        };
        let mut file: Self = toml::from_str(&text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            FileError::Invalid(path.to_owned(), line(start), error.message().to_owned())
        })?;
        let allowed = Allowed::new(file.private_addresses.clone());
        if file.providers.len() > MOST_PROVIDERS {
            let problem = format!("there are more than {MOST_PROVIDERS} providers");
            return Err(FileError::Invalid(path.to_owned(), 1, problem));
        }
        for provider in &mut file.providers {
            let start = provider.span().start;
            let provider = provider.get_mut();
            provider
                .check(&allowed)
                .map_err(|problem| FileError::Invalid(path.to_owned(), line(start), problem))?;
            if let Some(secret) = &provider.client_secret_file {
                let text = read(secret)?;
                let mode = std::fs::metadata(secret).map(|data| data.permissions().mode());
                if mode.is_ok_and(|mode| mode & 0o077 != 0) {
                    return Err(FileError::Exposed(secret.clone()));
                }
                provider.client_secret = Some(text.trim().to_owned());
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

fn read(path: &Path) -> Result<String, FileError> {
    let mut text = String::new();
    let file = File::open(path).and_then(|file| file.take(LARGEST_FILE + 1).read_to_string(&mut text));
    let length = file.map_err(|error| FileError::Unreadable(path.to_owned(), error))?;
    match u64::try_from(length).is_ok_and(|length| length <= LARGEST_FILE) {
        true => Ok(text),
        false => Err(FileError::Invalid(
            path.to_owned(),
            1,
            "it is larger than 256 KiB".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests;
