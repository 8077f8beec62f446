//! Signing in with a read key, and out.

use std::{sync::Arc, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, StatusCode},
    rt::time::timeout,
    web,
};
use assay_access::{
    check::PresentedKey,
    limit::{Admission, RateLimiter as _},
};

use crate::{Front, body, error::FrontError, is_own_address, layout, pairs, see_other, set_cookie, value};

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
                let query = pairs(request.query_string());
                let next = value(&query, "next").filter(|next| is_own_address(next));
                body(layout::login(None, next), StatusCode::OK, request)
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
        if !is_own_form(request) {
            return Err(FrontError::ForeignForm);
        }
        let form = timeout(FORM_WITHIN, payload.to_bytes_limited(FORM_BYTES))
            .await
            .map_err(|_| FrontError::SlowForm)?
            .map_err(|_| FrontError::LongForm)?
            .map_err(|_| FrontError::BrokenForm)?;
        body_is_read();
        let peer = request.peer_addr().map(|peer| peer.ip().to_string());
        let budget_id = format!("login {}", peer.unwrap_or_default());
        if let Admission::Refused = self.limiter.admit(budget_id.as_bytes(), now).await {
            return Err(FrontError::TooManySignIns);
        }
        let fields = pairs(std::str::from_utf8(&form).unwrap_or_default());
        let query = pairs(request.query_string());
        let next = value(&query, "next").filter(|next| is_own_address(next));
        let key = match PresentedKey::of_text(value(&fields, "key").unwrap_or_default().trim().as_bytes()) {
            Ok(key) => {
                let directory = Arc::clone(&self.directory);
                let granted = self
                    .admission
                    .run(self.directory.share(&key), move || directory.check(&key, now))
                    .await?;
                granted.map(|_| key).map_err(FrontError::from)
            }
            Err(refusal) => Err(refusal.into()),
        };
        match key {
            Ok(key) => {
                let mut response = see_other(next.unwrap_or("/"));
                set_cookie(&mut response, &self.sessions.cookie(key.hash(), now)?);
                Ok(response)
            }
            Err(error @ FrontError::Refused(_)) => {
                let (status, _) = error.status_and_code();
                body(layout::login(Some(&error.sentence()), next), status, request)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn logout(&self, request: &HttpRequest) -> Result<HttpResponse, FrontError> {
        if *request.method() != Method::POST {
            return Err(FrontError::NoSuchMethod);
        }
        if !is_own_form(request) {
            return Err(FrontError::ForeignForm);
        }
        let mut response = see_other("/login");
        set_cookie(&mut response, &self.sessions.expired_cookie());
        Ok(response)
    }
}

/// Whether a page of this site sent the form, according to `Sec-Fetch-Site`, or to `Origin` and `Host`.
fn is_own_form(request: &HttpRequest) -> bool {
    let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    match (text("sec-fetch-site"), text("origin"), text("host")) {
        (Some(site), _, _) => site == "same-origin",
        (None, Some(origin), Some(host)) => {
            origin.split_once("://").is_some_and(|(_, origin)| origin == host)
        }
        (None, _, _) => false,
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
            is_own_form(&request.to_http_request())
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
        ] {
            assert!(!is_accepted(headers), "{headers:?}");
        }
    }
}
