//! The routes with their parameters, and hostile values for them.

use serde_json::Value;

/// Every error code.
pub const CODES: [&str; 16] = [
    "missing_key",
    "invalid_key",
    "wrong_key_type",
    "key_revoked",
    "key_expired",
    "tier_too_low",
    "project_not_found",
    "invalid_period",
    "rate_limited",
    "commit_not_found",
    "test_not_found",
    "ambiguous_test",
    "internal_error",
    "invalid_parameter",
    "run_not_found",
    "error_not_found",
];

/// Path segments in their sent form.
pub const SEGMENTS: [&str; 34] = [
    "%00",
    "a%00b",
    "%FF",
    "a%FFb",
    "%C0%80",
    "%ED%A0%80",
    "%F0%28%8C%BC",
    "%80",
    "%2e%2e",
    "%2E",
    "..%2F..%2Fetc%2Fpasswd",
    "%25",
    "%2",
    "%",
    "%zz",
    "%u0041",
    "'%20OR%201=1--",
    "%22%3B%20drop%20table%20run%3B",
    "%E2%80%AE",
    "%F0%9F%9B%92",
    "%0D%0AX-Injected:%201",
    "%09",
    "%20",
    "null",
    "undefined",
    "-1",
    "0",
    "1e9",
    "99999999999999999999999",
    "%7B%7D",
    "%5B%5D",
    "01920000-0000-7000-8000-00000000000",
    "01920000-0000-7000-8000-00000000000g",
    "01920000-0000-9000-0000-000000000000",
];

/// Query values in their sent form, and whether they can be text.
pub const VALUES: [(&str, bool); 26] = [
    ("%00", false),
    ("7%00", false),
    ("%FF", false),
    ("a%FFb", false),
    ("%C0%80", false),
    ("%ED%A0%80", false),
    ("%F5%80%80%80", false),
    ("", true),
    ("%20", true),
    ("'", true),
    ("'%20OR%20'1'='1", true),
    ("%25", true),
    ("%", true),
    ("%zz", true),
    ("_", true),
    ("\\", true),
    ("%0A", true),
    ("%E2%80%AE", true),
    ("%F0%9F%9B%92", true),
    ("-1", true),
    ("1e3", true),
    ("99999999999999999999999999", true),
    ("18446744073709551616", true),
    ("NaN", true),
    ("[]", true),
    ("true", true),
];

/// A route and its parameters.
pub struct Route {
    /// Its path below the base. Segments in braces are parameters.
    pub path: String,
    /// Query parameters.
    pub parameters: Vec<String>,
}

/// Every route of the description of the API.
pub fn routes() -> Vec<Route> {
    let document: Value = serde_json::from_str(include_str!("../../../docs/openapi.json")).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .map(|(path, item)| {
            let parameters = item["get"]["parameters"].as_array().unwrap().iter();
            let parameters = parameters.map(|reference| {
                document
                    .pointer(&reference["$ref"].as_str().unwrap()[1..])
                    .unwrap()
            });
            Route {
                path: path.clone(),
                parameters: parameters
                    .filter(|parameter| parameter["in"] == "query")
                    .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
                    .collect(),
            }
        })
        .collect()
}

/// Parameters that permit any text, limited at most in length.
pub const FREE: [&str; 7] = [
    "branch", "search", "owner", "filePath", "file", "variant", "error",
];
