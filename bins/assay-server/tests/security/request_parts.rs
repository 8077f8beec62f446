//! The parts of generated requests.

/// Methods other than GET.
pub(crate) const METHODS: [&str; 14] = [
    "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "GETS", "PROPFIND", "BREW", "X",
    "M-SEARCH", "LINK",
];
/// Paths that no route has. Some resemble a route.
pub(crate) const STRAY_PATHS: [&str; 22] = [
    "/",
    "/api",
    "/api/v1",
    "/api/v1/",
    "/api/v1/projects/",
    "/api/v1/project",
    "/api/v2/projects",
    "/API/V1/projects",
    "/api/v1/Projects",
    "/api/v1//projects",
    "/api/v1/./projects",
    "/api/v1/../v1/projects",
    "/api/v1/%70rojects",
    "/api%2Fv1/projects",
    "/metrics",
    "/healthz",
    "/docs",
    "/openapi.json",
    "/favicon.ico",
    "/.env",
    "/api/v1/projects;a=b",
    "/api/v1/projects/x/runs/y/z",
];
/// Headers of proxies, browsers and attackers. None may change an answer.
pub(crate) const FIELDS: [(&str, &str); 38] = [
    ("Accept", "application/xml"),
    ("Accept", "\u{7f}"),
    ("Accept-Charset", "utf-7"),
    ("Accept-Encoding", "gzip;q=0, identity;q=0, *;q=0"),
    ("Accept-Encoding", ",,,;q=x"),
    ("Accept-Language", "de"),
    ("Cache-Control", "only-if-cached"),
    ("Content-Type", "application/json"),
    ("Content-Type", "multipart/form-data; boundary=\""),
    ("Cookie", "session=1; key=svc_ro_0"),
    ("DNT", "1"),
    ("Forwarded", "for=127.0.0.1;host=evil"),
    ("From", "a@b"),
    ("If-Match", "*"),
    ("If-Match", "\"x\""),
    ("If-Modified-Since", "Sat, 21 Nov 2026 00:00:00 GMT"),
    ("If-Range", "\"x\""),
    ("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ("Max-Forwards", "0"),
    ("Origin", "null"),
    ("Pragma", "no-cache"),
    ("Priority", "u=9"),
    ("Proxy-Authorization", "Bearer svc_ro_0"),
    ("Range", "bytes=0-0"),
    ("Range", "bytes=9999999999-,-1,0-"),
    ("Referer", "http://a/%00"),
    ("TE", "trailers"),
    ("User-Agent", "() { :;}; echo"),
    ("User-Agent", "${jndi:ldap://a}"),
    ("Via", "1.1 a"),
    ("X-Api-Key", "svc_ro_0"),
    ("X-Forwarded-For", "127.0.0.1"),
    ("X-Forwarded-Prefix", "/../"),
    ("X-Forwarded-Proto", "https"),
    ("X-HTTP-Method-Override", "DELETE"),
    ("X-Original-URL", "/metrics"),
    ("X-Rewrite-URL", "/metrics"),
    ("Sec-Fetch-Mode", "cors"),
];
/// Possible versions of a client.
pub(crate) const VERSIONS: [&str; 6] = ["*", "\"x\"", "W/\"x\"", "x", "\"\"", "\"a\", \"b\""];
/// Ids of requests, valid and invalid.
pub(crate) const REQUEST_IDS: [&str; 6] = ["a", "../x", "a b", "\u{1}", "id-1_2.3", "%0a"];
