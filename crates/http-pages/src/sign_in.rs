//! Signing in with a read key, and out.

use std::{net::IpAddr, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, StatusCode},
    rt::time::timeout,
    web,
};
use assay_access::{
    check::PresentedKey,
    directory::AdmissionShare,
    limit::{Admission, InProcessLimiter, reset_s},
};
use assay_domain::{key::KeyKind, timestamp::Timestamp};
use assay_http::{CountedBy, Pairs, Problem};

use crate::{
    Front, body, cookies, error::FrontError, is_own_address, layout, see_other, set_cookie,
    terminal::must_be_posted,
};

/// Longest body of a form, in bytes.
const FORM_BYTES: usize = 1_024;
/// Time limit for receiving a form.
const FORM_WITHIN: Duration = Duration::from_secs(10);

impl Front {
    /// Shows the sign-in form, or checks the key that it sent.
    pub(crate) async fn login(
        &self,
        request: &HttpRequest,
        payload: web::Payload,
        body_is_read: impl FnOnce(),
    ) -> Result<HttpResponse, FrontError> {
        match *request.method() {
            Method::GET | Method::HEAD => {
                let query = Pairs::of(request.query_string());
                let next = query.first("next").filter(|next| is_own_address(next));
                let form = self.login_page(None, next);
                body(form, StatusCode::OK, request)
            }
            Method::POST => self.sign_in(request, payload, body_is_read).await,
            _ => Err(FrontError::NoSuchMethod),
        }
    }

    async fn sign_in(
        &self,
        request: &HttpRequest,
        payload: web::Payload,
        body_is_read: impl FnOnce(),
    ) -> Result<HttpResponse, FrontError> {
        let now = (self.clock)();
        check_form(request, self.sessions.is_secure())?;
        let form = timeout(FORM_WITHIN, payload.to_bytes_limited(FORM_BYTES))
            .await
            .map_err(|_| FrontError::SlowForm)?
            .map_err(|_| FrontError::LongForm)?
            .map_err(|_| FrontError::BrokenForm)?;
        body_is_read();
        let fields = Pairs::of(std::str::from_utf8(&form).unwrap_or_default());
        let query = Pairs::of(request.query_string());
        let next = query.first("next").filter(|next| is_own_address(next));
        let key = fields.first("key").unwrap_or_default().trim();
        let presented = PresentedKey::of_text(KeyKind::Read, key.as_bytes());
        if let Ok(key) = &presented
            && self.reception.directory().share(key) == AdmissionShare::UNKNOWN_KEYS
        {
            // Keys in use are not counted, because one proxy has the address of everyone behind it.
            count_address(&self.guesses, request, now)?;
        }
        // Counted by key, because one proxy has the address of everyone behind it.
        let counted_by = CountedBy::key(&*self.limiter, &presented, "sign-in");
        match self.reception.identify(presented, counted_by, now).await {
            Ok((key, _)) => {
                let mut response = see_other(next.unwrap_or("/"));
                set_cookie(&mut response, &self.sessions.cookie(key.hash(), None, now)?);
                Ok(response)
            }
            Err(problem @ Problem::Refused(_)) => {
                let (status, _) = problem.status_and_code(KeyKind::Read);
                let sentence = problem.sentence(KeyKind::Read);
                let form = self.login_page(Some(&sentence), next);
                body(form, status, request)
            }
            Err(problem) => Err(problem.into()),
        }
    }

    /// Ends the session of the request.
    pub(crate) async fn logout(&self, request: &HttpRequest) -> Result<HttpResponse, FrontError> {
        must_be_posted(request)?;
        if let Some(session) = self.of_terminal(request) {
            return self.end_terminal(session.ok()).await;
        }
        check_form(request, self.sessions.is_secure())?;
        let now = (self.clock)();
        let session = cookies(request).and_then(|header| self.sessions.of_header(header, now));
        if let Some(session) = &session {
            self.end(session).await?;
        }
        let mut response = match self.end_at_provider(session.as_ref()) {
            Some(address) => body(layout::forward(&address, "Sign out"), StatusCode::OK, request)?,
            None => see_other("/login"),
        };
        set_cookie(&mut response, &self.sessions.expired_cookie());
        Ok(response)
    }
}

/// Counts a request against the network of its client.
pub(crate) fn count_address(
    limiter: &InProcessLimiter,
    request: &HttpRequest,
    now: Timestamp,
) -> Result<(), FrontError> {
    let network = match request.peer_addr().map(|peer| peer.ip().to_canonical()) {
        Some(IpAddr::V4(address)) => u128::from(address.to_bits()),
        // A client has all addresses of its network.
        Some(IpAddr::V6(address)) => address.to_bits() >> 64,
        None => return Ok(()),
    };
    count(limiter, &network.to_be_bytes(), now)
}

/// Counts a request against a budget of sign-ins.
pub(crate) fn count(limiter: &InProcessLimiter, id: &[u8], now: Timestamp) -> Result<(), FrontError> {
    match limiter.count(id, now) {
        Admission::Unlimited | Admission::Admitted(_) => Ok(()),
        Admission::Refused => Err(FrontError::ManyKeys {
            after_s: reset_s(now).unsigned_abs(),
        }),
    }
}

/// Checks that a page of this site sent the form, according to `Sec-Fetch-Site`, or to `Origin` and `Host`. A proxy may
/// have TLS instead of this process. `is_secure` states that browsers send the session over TLS only.
fn check_form(request: &HttpRequest, is_secure: bool) -> Result<(), FrontError> {
    let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let is_own = match (text("sec-fetch-site"), text("origin"), text("host")) {
        (Some(site), _, _) => site == "same-origin",
        // A browser hides the origin of a form that it sends in plain to another machine.
        (None, Some("null"), _) => return Err(FrontError::FormInPlain),
        (None, Some(origin), Some(host)) => match origin.split_once("://") {
            Some(("https", origin)) => origin == host,
            Some(("http", origin)) if origin == host && is_secure => return Err(FrontError::FormInPlain),
            Some(("http", origin)) => origin == host,
            _ => false,
        },
        (None, _, _) => false,
    };
    if is_own {
        Ok(())
    } else {
        Err(FrontError::ForeignForm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_of_another_site_is_refused() {
        use actix_web::test::TestRequest;
        let is_accepted = |headers: &[(&'static str, &'static str)]| {
            let mut request = TestRequest::post();
            for header in headers {
                request = request.insert_header(*header);
            }
            check_form(&request.to_http_request(), false).is_ok()
        };
        assert!(is_accepted(&[("sec-fetch-site", "same-origin")]));
        assert!(is_accepted(&[("origin", "http://a:1"), ("host", "a:1")]));
        for headers in [
            &[][..],
            &[("host", "a:1")],
            &[
                ("sec-fetch-site", "cross-site"),
                ("origin", "http://a:1"),
                ("host", "a:1"),
            ],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "same-site")],
            &[("origin", "http://b:1"), ("host", "a:1")],
            &[("origin", "null"), ("host", "a:1")],
            &[("origin", "ftp://a:1"), ("host", "a:1")],
            &[("origin", "https://b:1"), ("host", "a:1")],
        ] {
            assert!(!is_accepted(headers), "{headers:?}");
        }
        let over_tls = |origin: &'static str| {
            let request = TestRequest::post().insert_header(("host", "a:1"));
            check_form(&request.insert_header(("origin", origin)).to_http_request(), true)
        };
        assert!(over_tls("https://a:1").is_ok());
        assert!(over_tls("http://a:1").is_err());
        let hidden = TestRequest::post()
            .insert_header(("origin", "null"))
            .to_http_request();
        assert!(matches!(check_form(&hidden, false), Err(FrontError::FormInPlain)));
    }
}
