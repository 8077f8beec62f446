//! Signing in from a terminal by the device authorization grant of a provider (RFC 8628), and out. The answers are JSON.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header},
};
use assay_access::{
    check::{ReadGrant, Refusal},
    session::Session,
};
use assay_domain::{identity::TerminalSignIn, key};
use assay_http::{Pairs, Problem, authorization};
use serde::Serialize;
use serde_json::json;

use crate::{
    Front,
    error::FrontError,
    sign_in::{count, count_address},
};

impl Front {
    /// Begins a sign-in at the provider that the query names, or at the only one.
    pub(crate) async fn begin_terminal(&self, request: &HttpRequest) -> Result<HttpResponse, FrontError> {
        must_be_posted(request)?;
        let now = (self.clock)();
        let providers = self.providers.clone().ok_or(FrontError::NoProvider)?;
        count_address(&self.returns, request, now)?;
        let query = Pairs::of(request.query_string());
        let names = providers.providers();
        let place = match (query.first("provider"), names.as_slice()) {
            (Some(wanted), names) => names.iter().position(|name| *name == wanted),
            (None, [_]) => Some(0),
            (None, _) => None,
        };
        let place = place.ok_or_else(|| FrontError::OtherProvider(names.join(", ")))?;
        let asking = move || providers.begin_terminal(place, now);
        let begun = self.asks.run(place, asking).await.map_err(Problem::from)??;
        let device_code = self.sessions.device(place, &begun.device_code)?;
        Ok(answer(&TerminalSignIn { device_code, ..begun }))
    }

    /// The session of a terminal whose person has signed in at the provider.
    pub(crate) async fn redeem_terminal(&self, request: &HttpRequest) -> Result<HttpResponse, FrontError> {
        must_be_posted(request)?;
        let now = (self.clock)();
        let providers = self.providers.clone().ok_or(FrontError::NoProvider)?;
        let begun = authorization(request.headers()).and_then(|text| self.sessions.device_of_bearer(&text));
        let (place, code) = begun.ok_or(FrontError::NoSignInBegun)?;
        count(&self.guesses, &key::hash(code.as_bytes()).0, now)?;
        let redeeming = move || providers.redeem_terminal(place, &code, now);
        let person = self.asks.run(place, redeeming).await.map_err(Problem::from)??;
        let (key, access) = self.access_of(place, person).await?;
        let (token, seconds) = self.sessions.terminal(key, access, now)?;
        Ok(answer(
            &json!({ "access_token": token, "token_type": "Bearer", "expires_in": seconds }),
        ))
    }

    /// The terminal's session in a request. A proxy may add another `Authorization` to the requests of browsers.
    pub(crate) fn of_terminal(&self, request: &HttpRequest) -> Option<Result<Session, Refusal>> {
        let header = authorization(request.headers())?;
        self.sessions.of_bearer(&header, (self.clock)())
    }

    /// Ends the session of a terminal, unless it has ended.
    pub(crate) async fn end_terminal(&self, session: Option<Session>) -> Result<HttpResponse, FrontError> {
        if let Some(session) = &session {
            self.end(session).await?;
        }
        Ok(HttpResponse::NoContent().finish())
    }

    /// Ends a session, so that no copy of it opens anything.
    pub(crate) async fn end(&self, session: &Session) -> Result<(), FrontError> {
        let now = (self.clock)();
        let (front, id, expires_at) = (self.clone(), session.id, session.expires_at());
        let ending = move |grant: ReadGrant| -> Result<(), Problem> {
            let key = (!grant.is_person).then_some(grant.id);
            let keys = front.reception.directory().store();
            Ok(keys.end_session(id, key, expires_at, now)?)
        };
        let ended = self.reception.receive(Ok(session.presented()), None, now, ending);
        match ended.await {
            // A revoked key has no sessions.
            Ok(_) | Err(Problem::Refused(_)) => Ok(()),
            Err(problem) => Err(problem.into()),
        }
    }
}

/// An answer with a secret.
fn answer(content: &impl Serialize) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .json(content)
}

pub(crate) fn must_be_posted(request: &HttpRequest) -> Result<(), FrontError> {
    match *request.method() {
        Method::POST => Ok(()),
        _ => Err(FrontError::NoSuchMethod),
    }
}
