//! The routes with their parameters, and hostile values for them.

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
    /// Segments below `/projects`. Those in braces are parameters.
    pub segments: &'static [&'static str],
    /// Query parameters.
    pub parameters: &'static [&'static str],
}

pub const ROUTES: [Route; 16] = [
    Route {
        segments: &[],
        parameters: &[],
    },
    Route {
        segments: &["{project}", "runs"],
        parameters: &[
            "days",
            "branch",
            "sha",
            "pullRequest",
            "status",
            "perPage",
            "cursor",
            "direction",
        ],
    },
    Route {
        segments: &["{project}", "runs", "{run}"],
        parameters: &[],
    },
    Route {
        segments: &["{project}", "runs", "{run}", "failures"],
        parameters: &["mode", "page", "limit"],
    },
    Route {
        segments: &["{project}", "runs", "{run}", "changes"],
        parameters: &[],
    },
    Route {
        segments: &["{project}", "runs", "{run}", "tests", "{test}"],
        parameters: &["filePath"],
    },
    Route {
        segments: &["{project}", "commits", "{commit}"],
        parameters: &["page", "limit"],
    },
    Route {
        segments: &["{project}", "errors"],
        parameters: &["days", "branch", "category", "search", "sort", "page", "perPage"],
    },
    Route {
        segments: &["{project}", "errors", "{fingerprint}"],
        parameters: &["days"],
    },
    Route {
        segments: &["{project}", "tests", "{test}"],
        parameters: &["filePath", "days"],
    },
    Route {
        segments: &["{project}", "tests", "{test}", "status"],
        parameters: &["filePath"],
    },
    Route {
        segments: &["{project}", "flaky"],
        parameters: &["status", "sort", "search", "owner", "page", "perPage", "explain"],
    },
    Route {
        segments: &["{project}", "settings"],
        parameters: &[],
    },
    Route {
        segments: &["{project}", "branches"],
        parameters: &[],
    },
    Route {
        segments: &["{project}", "durations"],
        parameters: &[],
    },
    Route {
        segments: &["{project}", "uploads"],
        parameters: &["limit"],
    },
];

/// Parameters that permit any text, limited at most in length.
pub const FREE: [&str; 4] = ["branch", "search", "owner", "filePath"];
