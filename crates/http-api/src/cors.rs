//! Cross-origin requests: controls which web pages may read the API from a browser.

use std::str::FromStr;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        Method, Uri,
        header::{self, HeaderMap, HeaderValue},
    },
};

/// Request headers that a page may send in addition to the safelisted ones.
const REQUEST_HEADERS: &str = "Authorization, If-None-Match, X-Request-Id";
/// Response headers that a page may read in addition to the safelisted ones.
const RESPONSE_HEADERS: &str =
    "ETag, RateLimit, RateLimit-Policy, Retry-After, Service-Key-Expires-At, X-Request-Id";
/// How long a browser may cache the answer to a preflight request, in seconds. Browsers use two hours at most.
const MAX_AGE: &str = "7200";

/// The origins whose pages may read the API. There are none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins(Vec<HeaderValue>);

/// An invalid list of origins.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an origin as browsers send it; expected SCHEME://HOST or SCHEME://HOST:PORT in lower case, \
     without a path and without the scheme's own port, such as https://dashboard.example.org"
)]
pub struct BadOrigin(String);

impl FromStr for Origins {
    type Err = BadOrigin;

    /// Parses origins that are separated by commas. An empty list has no origin.
    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        let origins = text.split(',').map(str::trim).filter(|origin| !origin.is_empty());
        origins
            .map(|origin| parse(origin).ok_or_else(|| BadOrigin(origin.to_owned())))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// The origin, if it is written exactly as a browser writes it. Origins are compared byte for byte.
fn parse(text: &str) -> Option<HeaderValue> {
    let uri: Uri = text.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let is_default_port = matches!(
        (scheme, authority.port_u16()),
        ("http", Some(80)) | ("https", Some(443))
    );
    let is_plain = !authority.host().is_empty() && !authority.as_str().contains(['@', '*']);
    let is_canonical = text == format!("{scheme}://{authority}") && text == text.to_ascii_lowercase();
    (is_plain && is_canonical && !is_default_port)
        .then(|| HeaderValue::from_str(text).ok())
        .flatten()
}

impl Origins {
    /// The answer to a preflight request of a listed origin; none for other requests. Preflight requests have no key.
    pub(crate) fn preflight(&self, request: &HttpRequest) -> Option<HttpResponse> {
        let is_preflight = request.method() == Method::OPTIONS
            && request
                .headers()
                .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        (is_preflight && self.allowed(request).is_some()).then(|| {
            HttpResponse::NoContent()
                .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD"))
                .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS))
                .insert_header((header::ACCESS_CONTROL_MAX_AGE, MAX_AGE))
                .finish()
        })
    }

    /// Allows a page of a listed origin to read the response. If any origin is listed, every response varies by origin.
    pub(crate) fn mark(&self, request: &HttpRequest, response: &mut HeaderMap) {
        if self.0.is_empty() {
            return;
        }
        response.append(header::VARY, HeaderValue::from_static("Origin"));
        if let Some(origin) = self.allowed(request) {
            response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            response.insert(
                header::ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::from_static(RESPONSE_HEADERS),
            );
        }
    }

    fn allowed(&self, request: &HttpRequest) -> Option<&HeaderValue> {
        let sent = request.headers().get(header::ORIGIN)?;
        self.0.iter().find(|origin| *origin == sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_as_browsers_write_them() {
        let origins: Origins = " https://a.example, http://localhost:3000,,http://[::1]:8080 "
            .parse()
            .unwrap();
        assert_eq!(
            origins.0,
            ["https://a.example", "http://localhost:3000", "http://[::1]:8080"]
        );
        for none in ["", " ", ","] {
            assert_eq!(none.parse(), Ok(Origins::default()));
        }
        for bad in [
            "*",
            "null",
            "a.example",
            "https://",
            "https://a.example/",
            "https://a.example/path",
            "https://A.example",
            "HTTPS://a.example",
            "https://a.example:443",
            "http://a.example:80",
            "https://user@a.example",
            "https://*.example",
            "https://a.example?b",
            "https://a.example b",
        ] {
            assert_eq!(bad.parse::<Origins>(), Err(BadOrigin(bad.to_owned())), "{bad}");
        }
    }
}
