//! Requests to the routes of a CI service: pages, limits of the rate, and downloads.

use std::{
    cell::Cell,
    collections::BTreeSet,
    fs::File,
    io::{self, Read as _, Seek as _},
    thread,
    time::{Duration, Instant},
};

use assay_cli_terminal::{
    progress::{Progress, Work},
    retry::{Backoff, Transient, until_expired},
};
use assay_domain::timestamp::Timestamp;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::{
    Agent, Body,
    http::{HeaderMap, Response, StatusCode, header},
};

use super::{
    Service,
    service::{list, text},
};
use crate::server::{
    address::Address,
    http::{self, Answer, NoAnswer},
};

/// The largest file that is downloaded, in bytes.
const LARGEST_FILE: u64 = 1 << 30;
/// How many redirections a request follows.
const MOST_HOPS: usize = 3;
/// The pause after a refusal by a limit that names no time.
const LIMIT_PAUSE: Duration = Duration::from_secs(60);
/// The longest pause that a service may ask for. Limits of the rate are of an hour or less.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_700);
/// How many pauses one request makes for limits.
const MOST_PAUSES: usize = 10;
/// Times after this many seconds are seconds since 1970, and others are from now.
const EPOCH: i64 = 1_000_000_000;

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

/// How failures and limits of a service are waited for.
#[derive(Clone, Copy)]
pub struct Retries {
    /// Takes the reasons of pauses.
    pub progress: &'static dyn Progress,
    /// The clock.
    pub clock: fn() -> Timestamp,
    /// How long failures are retried.
    pub within: Duration,
}

/// A project of a CI service, and the client of it. Only addresses of the service itself get the token.
pub struct Project {
    pub(super) service: &'static Service,
    pub(super) name: String,
    /// Its path.
    pub(super) base: String,
    /// The only workflow that is read.
    pub(super) workflow: Option<String>,
    agent: Agent,
    address: Address,
    /// The header with the token.
    token: Option<(&'static str, String)>,
    retries: Retries,
    count: Cell<u64>,
    /// The end of the pause that the last answer asked for.
    not_before: Cell<Option<Instant>>,
}

impl Project {
    /// The project of this name at the address of a service. With Basic authentication, the token is `USER:TOKEN`.
    pub fn new(
        service: &'static Service,
        name: &str,
        workflow: Option<String>,
        address: Address,
        token: Option<String>,
        retries: Retries,
    ) -> anyhow::Result<Self> {
        let (header, word) = service.header;
        let token = token.map(|token| match word {
            "Basic " => (header, format!("{word}{}", STANDARD.encode(token))),
            _ => (header, format!("{word}{token}")),
        });
        Ok(Self {
            service,
            name: name.to_owned(),
            base: (service.base)(name),
            workflow,
            agent: http::agent(&address)?,
            address,
            token,
            retries,
            count: Cell::new(0),
            not_before: Cell::new(None),
        })
    }

    /// The number of requests so far.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// Gets JSON from a path of the service.
    pub(super) fn get(&self, path: &str) -> Result<Value, HostError> {
        self.page(path).map(|(answer, _)| answer)
    }

    /// Gets JSON, or null if the service has no such resource.
    pub(super) fn find(&self, path: &str) -> Result<Value, HostError> {
        match self.get(path) {
            Err(error) if error.is_gone() => Ok(Value::Null),
            answer => answer,
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
                return Err(unusable(
                    "the CI service's list does not end: it names a page again",
                ));
            }
        }
        Ok(())
    }

    /// All entries of a list.
    pub(super) fn all<T: DeserializeOwned>(&self, path: &str, pointer: &str) -> Result<Vec<T>, HostError> {
        let mut all = Vec::new();
        self.each(path, pointer, |entry| {
            all.push(T::deserialize(entry));
            true
        })?;
        let all: Result<_, serde_json::Error> = all.into_iter().collect();
        all.map_err(|error| unusable(&format!("the list {path} is not as documented: {error}")))
    }

    /// Gets JSON, and the path of the next page.
    fn page(&self, path: &str) -> Result<(Value, Option<String>), HostError> {
        let url = format!("{}{path}", self.address.base());
        self.until_expired(|| {
            let answer = self.follow(&url, |target| self.own_path(target).is_some())?;
            let next = next_page(answer.headers()).map(|url| match self.own_path(&url) {
                Some(path) => Ok(path.to_owned()),
                None => Err(unusable(&format!(
                    "the next page is at {url}, which is not followed"
                ))),
            });
            let json = Answer::read(&self.address, Ok(answer))?.json;
            let no_json = "the CI service's answer is no JSON; see whether --host-url names its API";
            Ok((json.ok_or_else(|| unusable(no_json))?, next.transpose()?))
        })
    }

    /// Downloads a file, from a path of the service or another address. Returns it, to be read from its start, and its
    /// size. None if it is deleted.
    pub fn download(&self, url: &str) -> Result<Option<(File, u64)>, HostError> {
        let is_path = url.starts_with('/');
        let url = format!("{}{url}", if is_path { self.address.base() } else { "" });
        self.until_expired(|| {
            let mut answer = match self.follow(&url, |_| true) {
                Err(error) if error.is_gone() => return Ok(None),
                answer => answer?,
            };
            let mut file = tempfile::tempfile()?;
            let mut body = answer.body_mut().as_reader().take(LARGEST_FILE + 1);
            let bytes = io::copy(&mut body, &mut file)?;
            if bytes > LARGEST_FILE {
                return Err(unusable(&format!("it exceeds {} MiB", LARGEST_FILE >> 20)));
            }
            file.rewind()?;
            Ok(Some((file, bytes)))
        })
    }

    fn until_expired<T>(&self, attempt: impl FnMut() -> Result<T, HostError>) -> Result<T, HostError> {
        let mut backoff = Backoff::new(self.retries.within);
        until_expired(self.retries.progress, &mut backoff, "the CI service", attempt)
    }

    /// Requests an address, and where it is redirected to if that may be followed.
    fn follow(&self, url: &str, may_be: impl Fn(&str) -> bool) -> Result<Response<Body>, HostError> {
        let mut answer = self.send(url)?;
        for _ in 0..MOST_HOPS {
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            let target = answer.headers().get(header::LOCATION);
            let target = target.and_then(|target| target.to_str().ok()).unwrap_or_default();
            if !may_be(target) {
                let place = target.split('?').next().unwrap_or_default();
                let moved = format!(
                    "the CI service moved it to {place}, which is not followed; name it as it is now"
                );
                return Err(unusable(&moved));
            }
            answer = self.send(target)?;
        }
        Err(unusable("it is redirected too often"))
    }

    /// The path of an address of this service.
    fn own_path<'a>(&self, url: &'a str) -> Option<&'a str> {
        url.strip_prefix(self.address.base())
            .filter(|path| path.starts_with('/'))
    }

    /// Calls an address, with the token if it is the service's.
    fn call(&self, url: &str) -> Result<Response<Body>, ureq::Error> {
        match self.token.as_ref().filter(|_| self.own_path(url).is_some()) {
            Some((name, token)) => self.agent.get(url).header(*name, token).call(),
            None => self.agent.get(url).call(),
        }
    }

    /// Requests an address, once limits of the rate allow it. An encrypted service has an encrypted storage.
    fn send(&self, url: &str) -> Result<Response<Body>, HostError> {
        let is_plain = url.starts_with("http://") && !self.address.is_encrypted;
        if !(is_plain || url.starts_with("https://")) {
            return Err(unusable("it is at an address that is not followed"));
        }
        let mut pauses = 0..MOST_PAUSES;
        loop {
            self.wait();
            self.count.set(self.count.get() + 1);
            let answer = self.call(url);
            let headers = answer.as_ref().ok().map(Response::headers);
            let asked = headers.and_then(|headers| limit(headers, (self.retries.clock)()));
            let answer = match answer {
                Ok(answer) if answer.status().is_success() || answer.status().is_redirection() => {
                    self.not_before.set(asked.map(|pause| Instant::now() + pause));
                    return Ok(answer);
                }
                answer => Answer::read(&self.address, answer)?,
            };
            let reason = ["message", "error"].iter().find_map(|name| answer.text(name));
            let mut reason = reason.unwrap_or_else(|| answer.beginning());
            let is_limit = match answer.status.as_u16() {
                403 => asked.is_some() || reason.to_ascii_lowercase().contains("rate limit"),
                status => status == 429,
            };
            if is_limit && pauses.next().is_some() {
                let pause = asked.unwrap_or(LIMIT_PAUSE);
                self.not_before.set(Some(Instant::now() + pause));
                continue;
            }
            if matches!(answer.status.as_u16(), 401 | 403 | 404) {
                let (form, token) = (self.service.form, self.service.tokens.join(" or "));
                reason += &format!("; see whether {form} is right and {token} {}", self.service.scope);
            }
            return Err(HostError::Refused(answer.status, reason, asked));
        }
    }

    /// Waits for the end of the pause that the last answer asked for.
    fn wait(&self) {
        let pause = self.not_before.take().map(http::until).unwrap_or_default();
        if !pause.is_zero() {
            let (progress, seconds) = (self.retries.progress, pause.as_secs().max(1));
            progress.note(&format!(
                "waiting {seconds} s: the CI service's limit of requests is reached"
            ));
            let _waiting = progress.begin(Work::Wait);
            thread::sleep(pause);
        }
    }
}

fn unusable(reason: &str) -> HostError {
    HostError::Unusable(reason.to_owned())
}

/// The pause that an answer asks for: until a limit ends of which no request is left, or after a refusal.
fn limit(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    let of_limit = |name: &str| number(&format!("x-{name}")).or_else(|| number(name));
    let is_used_up = of_limit("ratelimit-remaining") == Some(0);
    let reset = of_limit("ratelimit-reset").filter(|_| is_used_up);
    let until_reset = reset.map(|reset| match reset {
        EPOCH.. => reset - now.unix_ms() / 1_000,
        _ => reset,
    });
    let seconds = number("retry-after").or(until_reset)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).min(LONGEST_PAUSE))
}

/// The address of the next page, from the header `Link`.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let links = headers.get(header::LINK)?.to_str().ok()?;
    let next = links.split(',').find(|link| link.contains("rel=\"next\""))?;
    let (_, url) = next.split_once('<')?;
    Some(url.split_once('>')?.0.to_owned())
}
