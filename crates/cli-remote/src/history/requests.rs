//! Requests to the routes of a CI service: pages, limits of the rate, and downloads.

use std::{
    cell::Cell,
    collections::BTreeSet,
    fs::File,
    io::{self, Read as _, Seek as _},
    thread,
    time::Duration,
};

use assay_cli_terminal::{
    progress::{Progress, Work},
    retry::{Backoff, Transient, until_expired},
};
use assay_domain::timestamp::Timestamp;
use serde_json::Value;
use ureq::{
    Body,
    http::{HeaderMap, Response, StatusCode, header},
};

use super::{
    Service,
    service::{list, text},
};
use crate::server::http::{self, Answer, Client, NoAnswer};

/// The largest file that is downloaded, in bytes.
const LARGEST_FILE: u64 = 1 << 30;
/// How many redirections a request follows.
const MOST_HOPS: usize = 3;
/// The pause after a refusal by a limit that names no time, in seconds.
const LIMIT_PAUSE: u64 = 60;
/// The longest pause that a service may ask for, in seconds. Limits of the rate are of an hour or less.
const LONGEST_PAUSE: u64 = 3_700;
/// How many pauses one request makes for limits.
const MOST_PAUSES: usize = 10;
/// Times after this many seconds are seconds since 1970, and others are from now.
const EPOCH: u64 = 1_000_000_000;

/// Why the service did not answer as documented.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// It does not answer.
    #[error("{0}; see whether this machine reaches it, or name your own host with --host-url")]
    NoAnswer(#[from] NoAnswer),
    /// It refuses the request with this status, for a reason, and names the pause before the next one.
    #[error("the CI service answered {0}: {1}")]
    Refused(StatusCode, String, Option<Duration>),
    /// A file does not arrive whole.
    #[error("it cannot be downloaded: {0}")]
    Download(#[from] io::Error),
    /// An answer cannot be used.
    #[error("{0}")]
    Unusable(String),
}

impl HostError {
    /// Whether there is no such resource, or no longer.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused(status, ..) if matches!(status.as_u16(), 404 | 410))
    }

    /// Whether only this file or run is concerned.
    pub fn is_of_one_file(&self) -> bool {
        match self {
            Self::NoAnswer(_) => false,
            Self::Refused(status, ..) => !matches!(status.as_u16(), 401 | 403 | 404),
            Self::Download(_) | Self::Unusable(_) => true,
        }
    }
}

impl Transient for HostError {
    fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer(problem) => problem.is_transient(),
            Self::Refused(status, ..) => http::is_transient(*status),
            Self::Download(problem) => problem.kind() != io::ErrorKind::StorageFull,
            Self::Unusable(_) => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(.., pause) => *pause,
            Self::NoAnswer(_) | Self::Download(_) | Self::Unusable(_) => None,
        }
    }
}

/// A project of a CI service, and how it is reached. Only addresses of the service itself get the token.
pub struct Project {
    /// The service.
    pub service: &'static Service,
    /// Its name.
    pub name: String,
    /// Its path.
    pub base: String,
    /// The only workflow that is read.
    pub workflow: Option<String>,
    /// The client of the service.
    pub client: Client,
    /// The value of the header with the token.
    pub authorization: Option<String>,
    /// Takes the reasons of pauses.
    pub progress: &'static dyn Progress,
    /// The clock.
    pub clock: fn() -> Timestamp,
    /// How long failures are retried.
    pub retry_for: Duration,
    /// The number of requests so far.
    pub requests: Cell<u64>,
}

impl Project {
    /// Gets JSON from a path of the service; null if the service has no such resource.
    pub(super) fn get(&self, path: &str) -> Result<Value, HostError> {
        match self.page(path) {
            Err(error) if error.is_gone() => Ok(Value::Null),
            answer => answer.map(|(answer, _)| answer),
        }
    }

    /// Takes the entries of a list until `each` returns false. The header `Link` or a token leads to the next page.
    pub(super) fn each(
        &self,
        path: &str,
        pointer: &str,
        mut each: impl FnMut(&Value) -> bool,
    ) -> Result<(), HostError> {
        let mut next = Some(path.to_owned());
        let mut read = BTreeSet::new();
        while let Some(page) = next {
            let (answer, link) = self.page(&page)?;
            if !list(&answer, pointer).all(&mut each) {
                break;
            }
            let token = text(&answer, "/next_page_token");
            next = link.or_else(|| Some(format!("{path}?page-token={}", token?)));
            if !read.insert(page) {
                let endless = "the CI service's list does not end: it names a page again";
                return Err(unusable(endless));
            }
        }
        Ok(())
    }

    /// All entries of a list.
    pub(super) fn all(&self, path: &str, pointer: &str) -> Result<Vec<Value>, HostError> {
        let mut all = Vec::new();
        self.each(path, pointer, |entry| {
            all.push(entry.clone());
            true
        })?;
        Ok(all)
    }

    /// Gets JSON from a path or an address of the service, and the address of the next page.
    fn page(&self, url: &str) -> Result<(Value, Option<String>), HostError> {
        self.request(url, false, |answer| {
            let next = next_page(answer.headers());
            let json = Answer::read(&self.client.address, Ok(answer))?.json;
            let no_json = "the CI service's answer is no JSON; see whether --host-url names its API";
            Ok((json.ok_or_else(|| unusable(no_json))?, next))
        })
    }

    /// Downloads a file, from a path of the service or another address. Returns it, to be read from its start, and its
    /// size. None if it is deleted.
    pub fn download(&self, url: &str) -> Result<Option<(File, u64)>, HostError> {
        let file = self.request(url, true, |mut answer| {
            let mut file = tempfile::tempfile()?;
            let mut body = answer.body_mut().as_reader().take(LARGEST_FILE + 1);
            let bytes = io::copy(&mut body, &mut file)?;
            if bytes > LARGEST_FILE {
                return Err(unusable(&format!("it exceeds {} MiB", LARGEST_FILE >> 20)));
            }
            file.rewind()?;
            Ok((file, bytes))
        });
        match file {
            Err(error) if error.is_gone() => Ok(None),
            file => file.map(Some),
        }
    }

    /// Requests a path or an address, and where it is redirected to, until the answer is read or the time is over.
    fn request<T>(
        &self,
        url: &str,
        may_leave: bool,
        mut read: impl FnMut(Response<Body>) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        let url = match url.starts_with('/') {
            true => format!("{}{url}", self.client.address.base()),
            false => url.to_owned(),
        };
        let mut backoff = Backoff::new(self.retry_for);
        until_expired(self.progress, &mut backoff, "the CI service", || {
            let mut target = url.clone();
            for _ in 0..=MOST_HOPS {
                if !may_leave && !self.is_own(&target) {
                    let place = target.split('?').next().unwrap_or_default();
                    return Err(unusable(&format!(
                        "the CI service moved it to {place}, which is not followed; name it as it is now"
                    )));
                }
                let answer = self.send(&target)?;
                if !answer.status().is_redirection() {
                    return read(answer);
                }
                let place = answer.headers().get(header::LOCATION);
                let place = place.and_then(|place| place.to_str().ok());
                target = place.unwrap_or_default().to_owned();
            }
            Err(unusable("it is redirected too often"))
        })
    }

    /// Whether an address is one of this service.
    fn is_own(&self, url: &str) -> bool {
        let path = url.strip_prefix(self.client.address.base());
        path.is_some_and(|path| path.starts_with('/'))
    }

    /// Requests an address, with the token if it is the service's, and again once limits of the rate allow it. An encrypted
    /// service has an encrypted storage.
    fn send(&self, url: &str) -> Result<Response<Body>, HostError> {
        let address = &self.client.address;
        let is_plain = url.starts_with("http://") && !address.is_encrypted;
        if !(is_plain || url.starts_with("https://")) {
            return Err(unusable("it is at an address that is not followed"));
        }
        let mut pauses = 0..MOST_PAUSES;
        loop {
            self.requests.set(self.requests.get() + 1);
            let mut request = self.client.agent.get(url);
            if let Some(token) = self.authorization.as_ref().filter(|_| self.is_own(url)) {
                request = request.header(self.service.header.0, token);
            }
            let answer = match request.call() {
                Ok(answer) if answer.status().is_success() || answer.status().is_redirection() => {
                    return Ok(answer);
                }
                answer => Answer::read(address, answer)?,
            };
            if answer.is_of_limit() && pauses.next().is_some() {
                self.wait(&answer);
                continue;
            }
            let reason = ["message", "error"].iter().find_map(|name| answer.text(name));
            let mut reason = reason.unwrap_or_else(|| answer.beginning());
            if matches!(answer.status.as_u16(), 401 | 403 | 404) {
                let (form, token) = (self.service.form, self.service.tokens.join(" or "));
                reason += &format!("; see whether {form} is right and {token} {}", self.service.scope);
            }
            return Err(HostError::Refused(answer.status, reason, answer.retry_after));
        }
    }

    /// Waits until the limit that refused a request ends.
    fn wait(&self, refusal: &Answer) {
        let now = u64::try_from((self.clock)().unix_ms() / 1_000).unwrap_or(0);
        let ends = refusal.limit_ends.map(|ends| match ends {
            EPOCH.. => ends.saturating_sub(now),
            _ => ends,
        });
        let asked = || refusal.retry_after.map(|pause| pause.as_secs());
        let seconds = ends.or_else(asked).unwrap_or(LIMIT_PAUSE).clamp(1, LONGEST_PAUSE);
        self.progress.note(&format!(
            "waiting {seconds} s: the CI service's limit of requests is reached"
        ));
        let _waiting = self.progress.begin(Work::Wait);
        thread::sleep(Duration::from_secs(seconds));
    }
}

fn unusable(reason: &str) -> HostError {
    HostError::Unusable(reason.to_owned())
}

/// The address of the next page, from the header `Link`.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let links = headers.get(header::LINK)?.to_str().ok()?;
    let next = links.split(',').find(|link| link.contains("rel=\"next\""))?;
    let (_, url) = next.split_once('<')?;
    Some(url.split_once('>')?.0.to_owned())
}
