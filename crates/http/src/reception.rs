//! The reception of every listener: from a presented key to work that runs with the key's grant.
//!
//! Each request takes the same steps in the same order:
//!
//! 1. It counts against its budget. Beyond the limit it is refused before anything else is done.
//! 2. A malformed key is refused without a look-up.
//! 3. A key that this process does not know is looked up, in the share of all unknown keys.
//! 4. On a thread of the key's share, the key is checked at the time of the request, and its use is recorded.
//! 5. The work runs on that thread, with the grant.
//!
//! A listener has its own budgets and its own work, and nothing else of this.

use std::{borrow::Cow, sync::Arc};

use assay_access::{
    check::{AccessKey, CheckError, Grant, IngestGrant, PresentedKey, Refusal},
    directory::{AdmissionShare, Directory},
    limit::{Admission, Budget, RateLimiter, reset_s},
    session::Sessions,
    token::{PresentedToken, Tokens},
    usage::KeyUsage,
};
use assay_domain::{
    identity::TokenError,
    ingest::StoredIngestKey,
    key::{KeyHash, StoredKey},
    timestamp::Timestamp,
};

use crate::{
    admission::{AdmissionControl, Rejected, TimeLimits},
    problem::Problem,
};

/// The reception of the listeners for read keys.
pub type ReadReception = Reception<StoredKey>;
/// The reception of the listener for ingest keys.
pub type IngestReception = Reception<StoredIngestKey>;

/// Checks keys of one kind and runs the work of their requests. Clones share everything.
#[derive(Clone)]
pub struct Reception<K: AccessKey>(Arc<Shared<K>>);

struct Shared<K: AccessKey> {
    /// The sessions of terminals, in the place of read keys.
    sessions: Option<Sessions>,
    directory: Directory<K>,
    usage: KeyUsage,
    threads: AdmissionControl<AdmissionShare>,
}

/// The budget that a request counts against.
pub struct CountedBy<'a> {
    /// The limiter.
    pub limiter: &'a dyn RateLimiter,
    /// The budget's id.
    pub id: Cow<'a, [u8]>,
}

impl<'a> CountedBy<'a> {
    /// The budget of a presented key for `requests` of one sort. A malformed key has none, because it costs nothing.
    pub fn key(
        limiter: &'a dyn RateLimiter,
        presented: &Result<PresentedKey, Refusal>,
        requests: &str,
    ) -> Option<Self> {
        let id = presented.as_ref().ok()?.budget_id(requests).into();
        Some(Self { limiter, id })
    }
}

impl<K: AccessKey> Reception<K> {
    /// Creates a reception that looks keys up in `store` and runs work on this many threads.
    pub fn new(store: Arc<K::Store>, threads: usize, sessions: Option<Sessions>) -> Self {
        Self(Arc::new(Shared {
            sessions,
            directory: Directory::new(store),
            usage: KeyUsage::default(),
            threads: AdmissionControl::new(threads, TimeLimits::READ),
        }))
    }

    /// The key, or the session of a terminal, in the value of an `Authorization` header. Nothing is looked up.
    pub fn presented(&self, header: Option<&[u8]>, now: Timestamp) -> Result<PresentedKey, Refusal> {
        let session = || self.0.sessions.as_ref()?.of_bearer(header?, now);
        match session() {
            Some(session) => Ok(session?.presented()),
            None => PresentedKey::of_header(K::KIND, header),
        }
    }

    /// The keys and projects.
    pub fn directory(&self) -> &Directory<K> {
        &self.0.directory
    }

    /// Runs the work of a request. Returns its result and what is left of the budget, if there is a limit.
    pub async fn receive<T, E>(
        &self,
        presented: Result<PresentedKey, Refusal>,
        counted_by: Option<CountedBy<'_>>,
        now: Timestamp,
        work: impl FnOnce(Grant<K>) -> Result<T, E> + Send + 'static,
    ) -> Result<(T, Option<Budget>), E>
    where
        T: Send + 'static,
        E: From<Problem> + Send + 'static,
    {
        let budget = count(counted_by, now).await?;
        let key = presented.map_err(Problem::from)?;
        if self.0.directory.share(&key) == AdmissionShare::UNKNOWN_KEYS {
            self.check(AdmissionShare::UNKNOWN_KEYS, key.clone(), now).await?;
        }
        let reception = Arc::clone(&self.0);
        let share = AdmissionShare::of(&key);
        let work = move || work(reception.grant(&key, now)?);
        let answer = self.0.threads.run(share, work).await.map_err(Problem::from)??;
        Ok((answer, budget))
    }

    /// The key and the grant of a request whose work does not run here.
    pub async fn identify(
        &self,
        presented: Result<PresentedKey, Refusal>,
        counted_by: Option<CountedBy<'_>>,
        now: Timestamp,
    ) -> Result<(PresentedKey, Grant<K>), Problem> {
        count(counted_by, now).await?;
        let key = presented?;
        let share = self.0.directory.share(&key);
        let grant = self.check(share, key.clone(), now).await?;
        Ok((key, grant))
    }

    /// Runs further work for a key that this reception has checked.
    pub async fn run<T: Send + 'static>(
        &self,
        key: &PresentedKey,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Rejected> {
        self.0.threads.run(AdmissionShare::of(key), work).await
    }

    async fn check(
        &self,
        share: AdmissionShare,
        key: PresentedKey,
        now: Timestamp,
    ) -> Result<Grant<K>, Problem> {
        let reception = Arc::clone(&self.0);
        let checking = move || reception.grant(&key, now);
        self.0.threads.run(share, checking).await?
    }
}

impl IngestReception {
    /// The grant of a token in the place of a key. The issuer's keys are fetched on a thread of `fetches`, of which an issuer
    /// holds at most half.
    pub async fn identify_token(
        &self,
        tokens: &Tokens,
        fetches: &AdmissionControl<KeyHash>,
        token: PresentedToken,
        now: Timestamp,
    ) -> Result<IngestGrant, Problem> {
        let check = async || {
            let (tokens, token) = (tokens.clone(), token.clone());
            let share = tokens.share(&token);
            let checking = move || tokens.check(&token, now);
            self.0.threads.run(share, checking).await.map_err(Problem::from)
        };
        let checked = check().await?;
        if !matches!(checked, Err(CheckError::Token(TokenError::KeysNeeded))) {
            return Ok(checked?);
        }
        let (fetching, of_issuer) = (tokens.clone(), token.clone());
        let fetch = move || fetching.fetch_keys(&of_issuer, now);
        fetches
            .run(token.issuer_hash(), fetch)
            .await
            .map_err(|_| Problem::IssuerSilent)?;
        Ok(check().await??)
    }
}

impl<K: AccessKey> Shared<K> {
    /// Checks a key and records its use. Blocks.
    fn grant(&self, key: &PresentedKey, now: Timestamp) -> Result<Grant<K>, Problem> {
        let grant = self.directory.check(key, now)?;
        self.usage.record::<K>(self.directory.store(), &grant, now);
        Ok(grant)
    }
}

/// Counts a request against its budget, and returns what is left.
pub async fn count(counted_by: Option<CountedBy<'_>>, now: Timestamp) -> Result<Option<Budget>, Problem> {
    let Some(CountedBy { limiter, id }) = counted_by else {
        return Ok(None);
    };
    match limiter.admit(&id, now).await {
        Admission::Unlimited => Ok(None),
        Admission::Admitted(budget) => Ok(Some(budget)),
        Admission::Refused => Err(Problem::RateLimited {
            after_s: reset_s(now).unsigned_abs(),
        }),
    }
}

#[cfg(test)]
mod tests;
