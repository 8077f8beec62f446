//! Signing in to an installation from a terminal, by the device authorization grant (RFC 8628), and out. The session is
//! in a file that only its user can read, under the address of the installation that it is for.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, bail};
use assay_cli_terminal::misuse::Misuse;
use assay_domain::{identity::TerminalSignIn, timestamp::Timestamp};
use assay_reports::shown_path;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use ureq::http::{Method, StatusCode, header};

use crate::server::http::{Answer, Client, NoAnswer, is_transient};

/// Seconds between two questions, unless the provider names others, and what `slow_down` adds.
const INTERVAL_S: u32 = 5;
/// Time limit of a request.
const WITHIN: Duration = Duration::from_secs(30);

/// A session of this user at an installation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    token: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// The answer to a finished sign-in.
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: u32,
}

impl Login {
    /// The text in the place of a read key.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn token(self, installation: &str, now: Timestamp) -> Result<String, Misuse> {
        match self.expires_at > now {
            true => Ok(self.token),
            false => Err(Misuse(format!(
                "the session at {installation} has ended; sign in again with `assay login`, or set ASSAY_READ_KEY"
            ))),
        }
    }
}

/// The sessions of this user.
pub struct Logins {
    path: PathBuf,
    of: BTreeMap<String, Login>,
}

impl Logins {
    /// Reads the file, if there is one.
    pub fn open(path: PathBuf) -> anyhow::Result<Self> {
        let of = match File::open(&path) {
            Ok(file) => serde_json::from_reader(file)
                .map_err(|_| anyhow!("{} has no sessions; remove it", shown_path(&path)))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error).with_context(|| shown_path(&path)),
        };
        Ok(Self { path, of })
    }

    /// The session at an installation.
    pub fn find(&self, installation: &str) -> Option<Login> {
        self.of.get(installation).cloned()
    }

    /// Replaces the session at an installation, or removes it. Sessions that have ended are removed, too.
    pub fn set(&mut self, installation: &str, login: Option<Login>, now: Timestamp) -> anyhow::Result<()> {
        self.of.remove(installation);
        self.of
            .extend(login.map(|login| (installation.to_owned(), login)));
        self.of.retain(|_, login| login.expires_at > now);
        self.write().with_context(|| shown_path(&self.path))
    }

    fn write(&self) -> anyhow::Result<()> {
        let folder = self.path.parent().context("it has no folder")?;
        fs::create_dir_all(folder)?;
        // Only its owner can read such a file.
        let file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer(&file, &self.of)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

impl Client {
    /// Begins a sign-in at this provider, or at the only one.
    pub fn begin_login(&self, provider: Option<&str>) -> anyhow::Result<TerminalSignIn> {
        let query = provider.map_or_else(String::new, |name| {
            format!("?provider={}", utf8_percent_encode(name, NON_ALPHANUMERIC))
        });
        let answer = self.post_to(&format!("/login/device{query}"), None)?;
        answer.read_as()
    }

    /// Waits until the person has signed in at the provider. Their times are those of RFC 8628.
    pub fn finish_login(&self, begun: &TerminalSignIn, now: Timestamp) -> anyhow::Result<Login> {
        let started = Instant::now();
        let ends = Duration::from_secs(begun.expires_in.into());
        let mut interval = Duration::from_secs(begun.interval.unwrap_or(INTERVAL_S).max(1).into());
        let mut failed = None;
        while started.elapsed() < ends {
            sleep(interval);
            let answer = match self.post_to("/login/device/token", Some(&begun.device_code)) {
                Ok(answer) => answer,
                Err(problem) if problem.is_transient() => {
                    interval = interval.saturating_mul(2).min(ends);
                    continue;
                }
                Err(problem) => return Err(problem.into()),
            };
            match answer.text("code").as_deref() {
                Some("authorization_pending") => {}
                Some("slow_down") => interval += Duration::from_secs(INTERVAL_S.into()),
                Some("access_denied") => bail!("the sign-in was refused at the provider"),
                // A code is good once, also if the server refused what the provider gave for it.
                Some("expired_token") => break,
                Some("provider_failed") => failed = Some(answer.refused()),
                _ if is_transient(answer.status) => {
                    interval = interval.max(answer.retry_after.unwrap_or_default());
                }
                _ => {
                    let answer: TokenAnswer = answer.read_as()?;
                    let lasts = started.elapsed() + Duration::from_secs(answer.expires_in.into());
                    return Ok(Login {
                        token: answer.access_token,
                        expires_at: now.plus_ms(i64::try_from(lasts.as_millis())?),
                    });
                }
            }
        }
        Err(failed.unwrap_or_else(|| anyhow!("the code has expired; begin again with `assay login`")))
    }

    /// Ends a session at the installation.
    pub fn end_login(&self, login: &Login) -> anyhow::Result<()> {
        let answer = self.post_to("/logout", Some(&login.token))?;
        match answer.status {
            StatusCode::NO_CONTENT => Ok(()),
            _ => Err(answer.refused()),
        }
    }

    fn post_to(&self, path: &str, token: Option<&str>) -> Result<Answer, NoAnswer> {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let header = bearer
            .as_ref()
            .map(|value| (header::AUTHORIZATION.as_str(), value.as_str()));
        let url = format!("{}{path}", self.address.base());
        self.send(Method::POST, &url, header.as_slice(), None, Some(WITHIN))
    }
}

impl Answer {
    fn read_as<T: for<'de> Deserialize<'de>>(&self) -> anyhow::Result<T> {
        let json = self.json.as_ref().filter(|_| self.status.is_success());
        json.and_then(|json| T::deserialize(json).ok())
            .ok_or_else(|| self.refused())
    }

    fn refused(&self) -> anyhow::Error {
        let reason = self.text("error").unwrap_or_else(|| {
            "this is no address of Assay's pages; set ASSAY_URL to that of the installation".to_owned()
        });
        anyhow!("{reason} ({})", self.status.as_u16())
    }
}
