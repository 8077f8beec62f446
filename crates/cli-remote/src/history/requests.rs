//! Requests to the routes of a CI service: pages, limits of the rate, and downloads.

use std::{
    cell::Cell,
    fs::File,
    io::{self, Read as _, Seek as _},
    thread,
    time::{Duration, Instant},
};

use assay_cli_terminal::retry::Backoff;
use assay_domain::timestamp::Timestamp;
use serde_json::Value;
use ureq::{
    Agent,
    http::{HeaderMap, Response, StatusCode, header},
};

use crate::server::{
    address::Address,
    http::{self, Answer, NoAnswer},
};

/// The largest file that is downloaded, in bytes.
const LARGEST_FILE: u64 = 1 << 30;
/// How many redirections a download follows.
const MOST_HOPS: usize = 3;
/// The pause after a refusal by a limit that names no time.
const LIMIT_PAUSE: Duration = Duration::from_secs(60);
/// The longest pause that a host may ask for. Limits of the rate are of an hour or less.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_700);
/// How many pauses one request makes for limits.
const MOST_PAUSES: usize = 10;
/// Times after this many seconds are seconds since 1970, and others are from now.
const EPOCH: i64 = 1_000_000_000;

/// Why the host did not answer as documented.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The host does not answer.
    #[error("{0}; see whether this machine reaches it, or name your own host with --host-url")]
    NoAnswer(NoAnswer),
    /// The token is missing, wrong or too weak.
    #[error("the CI service answered {status}: {reason}; {advice}")]
    Token {
        /// The status.
        status: u16,
        /// The host's reason.
        reason: String,
        /// What to do.
        advice: &'static str,
    },
    /// The host refuses the request.
    #[error("the CI service answered {status}: {reason}")]
    Refused {
        /// The status.
        status: u16,
        /// The host's reason.
        reason: String,
    },
    /// The file is deleted.
    #[error("the CI service has deleted it")]
    Gone,
    /// The file is too large, or cannot be stored here.
    #[error("it cannot be downloaded: {0}")]
    Download(#[from] io::Error),
    /// The answer has another form than the documentation says.
    #[error("the CI service's answer has no {0}; see whether --host-url names its API")]
    Unreadable(&'static str),
    /// A page or a redirection leads to an address that is not followed.
    #[error("the CI service leads to {0}, which is not followed")]
    Astray(String),
}

impl HostError {
    /// Whether only this file or run is concerned.
    pub const fn is_of_one_file(&self) -> bool {
        matches!(
            self,
            Self::Gone | Self::Download(_) | Self::Refused { .. } | Self::Astray(_) | Self::Unreadable(_)
        )
    }
}

/// A pause that the host asks for, or that follows a failure.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// Why.
    pub reason: String,
    /// How long.
    pub pause: Duration,
}

/// A client of one host. Only addresses of the host itself get the token.
pub struct Requests {
    agent: Agent,
    address: Address,
    headers: Vec<(&'static str, String)>,
    /// What to do about a missing or wrong token.
    token_advice: &'static str,
    clock: fn() -> Timestamp,
    /// How long failures of the host are retried.
    retry_for: Duration,
    waiting: Box<dyn Fn(&Waiting)>,
    count: Cell<u64>,
    /// The end of the pause that the last answer asked for.
    not_before: Cell<Option<Instant>>,
}

/// The state of a host's limit in an answer.
struct Limit {
    /// The wait that the host asks for.
    retry_after: Option<Duration>,
    /// The time until the limit ends, if no request is left.
    until_reset: Option<Duration>,
}

impl Requests {
    /// Creates a client. Failures of the host are retried for a time. `waiting` is called before each pause.
    pub fn new(
        address: Address,
        headers: Vec<(&'static str, String)>,
        token_advice: &'static str,
        (clock, retry_for): (fn() -> Timestamp, Duration),
        waiting: Box<dyn Fn(&Waiting)>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            agent: http::agent(&address)?,
            address,
            headers,
            token_advice,
            clock,
            retry_for,
            waiting,
            count: Cell::new(0),
            not_before: Cell::new(None),
        })
    }

    /// The number of requests so far.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// Gets JSON from a path of the host.
    pub(super) fn get(&self, path: &str) -> Result<Value, HostError> {
        self.page(path).map(|(answer, _)| answer)
    }

    /// Gets JSON, or `None` if the host has no such resource.
    pub(super) fn find(&self, path: &str) -> Result<Option<Value>, HostError> {
        match self.get(path) {
            Err(HostError::Gone) => Ok(None),
            Err(HostError::Token { status: 404, .. }) => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Gets all pages of a list, which the header `Link` joins.
    pub(super) fn pages(
        &self,
        path: &str,
        mut each: impl FnMut(&Value) -> Result<(), HostError>,
    ) -> Result<(), HostError> {
        let mut next = Some(path.to_owned());
        while let Some(path) = next {
            let (answer, following) = self.page(&path)?;
            each(&answer)?;
            next = following;
        }
        Ok(())
    }

    /// Gets JSON, and the path of the next page.
    pub(super) fn page(&self, path: &str) -> Result<(Value, Option<String>), HostError> {
        let url = format!("{}{path}", self.address.base());
        let answer = self.patiently(|| self.call(&url))?;
        let next = next_page(answer.headers());
        let next = next.map(|url| match self.own_path(&url) {
            Some(path) => Ok(path.to_owned()),
            None => Err(HostError::Astray(url)),
        });
        let answer = Answer::read(&self.address, Ok(answer)).map_err(HostError::NoAnswer)?;
        let json = answer.json.ok_or(HostError::Unreadable("JSON"))?;
        Ok((json, next.transpose()?))
    }

    /// Downloads a file, from a path of the host or another address. Its bytes go to `file`, which is then read from its start.
    pub fn download(&self, url: &str, file: &mut File) -> Result<u64, HostError> {
        let own = url
            .starts_with('/')
            .then(|| format!("{}{url}", self.address.base()));
        let url = own.as_deref().unwrap_or(url);
        let mut answer = self.patiently(|| self.call(url))?;
        for _ in 0..MOST_HOPS {
            let Some(target) = location(&answer)? else { break };
            answer = self.patiently(|| self.call_storage(&target))?;
        }
        if answer.status().is_redirection() {
            return Err(HostError::Astray("yet another address".to_owned()));
        }
        let mut body = answer.body_mut().as_reader().take(LARGEST_FILE + 1);
        let bytes = io::copy(&mut body, file)?;
        if bytes > LARGEST_FILE {
            return Err(io::Error::other(format!("it exceeds {} MiB", LARGEST_FILE >> 20)).into());
        }
        file.rewind()?;
        Ok(bytes)
    }

    /// The path of an address of this host.
    fn own_path<'a>(&self, url: &'a str) -> Option<&'a str> {
        url.strip_prefix(self.address.base())
            .filter(|path| path.starts_with('/'))
    }

    /// Calls an address, with the token if it is the host's.
    fn call(&self, url: &str) -> Result<Response<ureq::Body>, ureq::Error> {
        if self.own_path(url).is_none() {
            return self.agent.get(url).call();
        }
        let headers = self.headers.iter();
        headers
            .fold(self.agent.get(url), |request, (name, value)| {
                request.header(*name, value)
            })
            .call()
    }

    /// Calls the storage that a download redirects to, without the token.
    fn call_storage(&self, url: &str) -> Result<Response<ureq::Body>, ureq::Error> {
        let is_encrypted = url.starts_with("https://");
        if is_encrypted == self.address.is_encrypted {
            return self.agent.get(url).call();
        }
        // The service itself may be reached without encryption, as Jenkins within a network.
        let storage = Address::parse("the storage", "https://storage.invalid", false);
        let agent = match storage
            .ok()
            .filter(|_| is_encrypted)
            .map(|address| http::agent(&address))
        {
            Some(Ok(agent)) => agent,
            Some(Err(_)) | None => {
                return Err(ureq::Error::BadUri("a storage without encryption".to_owned()));
            }
        };
        agent.get(url).call()
    }

    /// Repeats a request while the host limits the rate or fails.
    fn patiently(
        &self,
        call: impl Fn() -> Result<Response<ureq::Body>, ureq::Error>,
    ) -> Result<Response<ureq::Body>, HostError> {
        let mut backoff = Backoff::new(self.retry_for);
        for pauses in 0.. {
            if let Some(until) = self.not_before.take() {
                self.pause(
                    "the CI service's limit of requests is reached",
                    http::until(until),
                );
            }
            self.count.set(self.count.get() + 1);
            let answer = match call() {
                Ok(answer) if answer.status().is_success() || answer.status().is_redirection() => {
                    let limit = Limit::of(answer.headers(), (self.clock)());
                    self.not_before
                        .set(limit.until_reset.map(|reset| Instant::now() + reset));
                    return Ok(answer);
                }
                answer => answer,
            };
            let limit = answer
                .as_ref()
                .ok()
                .map(|answer| Limit::of(answer.headers(), (self.clock)()));
            let problem = match Answer::read(&self.address, answer) {
                Ok(answer) => answer,
                Err(problem) => match backoff.pause(None).filter(|_| problem.is_transient()) {
                    Some(pause) => {
                        self.pause(&problem.to_string(), pause);
                        continue;
                    }
                    None => return Err(HostError::NoAnswer(problem)),
                },
            };
            let error = self.refusal(&problem);
            let asked = limit.and_then(|limit| limit.retry_after.or(limit.until_reset));
            let is_limit = problem.status == StatusCode::TOO_MANY_REQUESTS
                || problem.status == StatusCode::FORBIDDEN
                    && (asked.is_some() || error.to_string().to_ascii_lowercase().contains("rate limit"));
            let pause = match is_limit {
                true => Some(asked.unwrap_or(LIMIT_PAUSE)).filter(|_| pauses < MOST_PAUSES),
                false => backoff
                    .pause(asked)
                    .filter(|_| http::is_transient(problem.status)),
            };
            match pause {
                Some(pause) => self.pause(&error.to_string(), pause.min(LONGEST_PAUSE)),
                None => return Err(error),
            }
        }
        Err(HostError::Unreadable("end of its limits"))
    }

    fn pause(&self, reason: &str, pause: Duration) {
        if !pause.is_zero() {
            let reason = reason.to_owned();
            (self.waiting)(&Waiting { reason, pause });
            thread::sleep(pause);
        }
    }

    fn refusal(&self, answer: &Answer) -> HostError {
        let status = answer.status.as_u16();
        let reason = ["message", "error"].iter().find_map(|name| answer.text(name));
        let reason = reason.unwrap_or_else(|| answer.beginning());
        match status {
            410 => HostError::Gone,
            401 | 403 | 404 => HostError::Token {
                status,
                reason,
                advice: self.token_advice,
            },
            _ => HostError::Refused { status, reason },
        }
    }
}

impl Limit {
    fn of(headers: &HeaderMap, now: Timestamp) -> Self {
        let number = |names: &[&str]| {
            let header = names.iter().find_map(|name| headers.get(*name))?;
            header.to_str().ok()?.trim().parse::<i64>().ok()
        };
        let seconds = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let is_used_up = number(&["x-ratelimit-remaining", "ratelimit-remaining"]) == Some(0);
        let reset = number(&["x-ratelimit-reset", "ratelimit-reset"]).filter(|_| is_used_up);
        let until = |reset: i64| match reset {
            EPOCH.. => seconds(reset - now.unix_ms() / 1_000),
            _ => seconds(reset),
        };
        Self {
            retry_after: number(&["retry-after"]).map(seconds),
            until_reset: reset.map(|reset| until(reset).min(LONGEST_PAUSE)),
        }
    }
}

/// The target of a redirection. Only addresses of the web are followed.
fn location(answer: &Response<ureq::Body>) -> Result<Option<String>, HostError> {
    if !answer.status().is_redirection() {
        return Ok(None);
    }
    let target = answer.headers().get(header::LOCATION);
    let target = target.and_then(|target| target.to_str().ok()).unwrap_or_default();
    match target.starts_with("https://") || target.starts_with("http://") {
        true => Ok(Some(target.to_owned())),
        false => Err(HostError::Astray("an address without a host".to_owned())),
    }
}

/// The address of the next page, from the header `Link`.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let links = headers.get(header::LINK)?.to_str().ok()?;
    let next = links.split(',').find(|link| link.contains("rel=\"next\""))?;
    let (_, url) = next.split_once('<')?;
    Some(url.split_once('>')?.0.to_owned())
}
