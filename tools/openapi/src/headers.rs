//! The headers of responses.

use serde_json::Value;

use crate::json::{object, reference};

/// Every header, by its name.
pub(crate) fn components() -> Value {
    let text = |rules: Option<(&'static str, Value)>| -> Value {
        [("type", "string".into())].into_iter().chain(rules).collect()
    };
    let date_time = || text(Some(("format", "date-time".into())));
    [
        ("Cache-Control", "Whether the answer may be cached: `private, no-store`, or `private, no-cache` if it has an `ETag` for revalidation.", true, text(None), "private, no-store"),
        ("ETag", "The strong tag of these bytes. Each content coding has its own.", true, text(None), "\"5f2b1c0d9e8a7b6c5d4e3f2a1b0c9d8e\""),
        ("Vary", "The bytes depend on the accepted content codings.", true, text(None), "Accept-Encoding"),
        ("Service-Key-Expires-At", "The expiry of the key; present on successful answers in the last seven days before it.", false, date_time(), "2026-11-27T18:46:03.120Z"),
        ("X-Request-Id", "The request's id in the server's log: the client's own if it sent a valid one. On 4xx only if the client sent one.", false, text(Some(("pattern", "^[0-9A-Za-z._-]{1,64}$".into()))), "6f1c2a9b3d4e5f60718293a4b5c6d7e8"),
        ("RateLimit-Policy", "The budget of a key: `q` requests in a window of `w` seconds. Absent if the server has no limit.", false, text(None), "\"default\";q=60;w=60"),
        ("RateLimit", "The remaining budget: `r` requests, and `t` seconds until the next window. Absent if the server has no limit.", false, text(None), "\"default\";r=41;t=23"),
        ("Retry-After", "Seconds to wait before the request is repeated.", true, text(None), "1"),
        ("WWW-Authenticate", "The authentication scheme of keys.", true, text(None), "Bearer"),
    ]
    .into_iter()
    .map(|(name, description, required, schema, example)| {
        let header = object([
            ("description", description.into()),
            ("required", required.into()),
            ("schema", schema),
            ("example", example.into()),
        ]);
        (name, header)
    })
    .collect()
}

/// The headers of a successful answer.
pub(crate) fn of_success(tagged: bool) -> Value {
    [
        "Cache-Control",
        "Vary",
        "Service-Key-Expires-At",
        "X-Request-Id",
        "RateLimit-Policy",
        "RateLimit",
    ]
    .into_iter()
    .chain(tagged.then_some("ETag"))
    .map(|name| (name, reference("headers", name)))
    .collect()
}
