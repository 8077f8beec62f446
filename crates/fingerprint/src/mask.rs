//! Replaces all changing parts of a text with named placeholders.

mod path;
mod word;

use std::sync::LazyLock;

use regex_automata::{Input, meta};

/// The kind of text that a pattern matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Uuid,
    Url,
    Email,
    Time,
    Host,
    Ip6,
    WindowsPath,
    UnixPath,
    Line,
    Address,
    Duration,
    Size,
    Token,
    Number,
    Word,
}

const MONTH: &str = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}";
const CLOCK: &str = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?: ?[AaPp][Mm]\b)?";
const ZONE: &str = r"(?: ?(?:Z\b|(?:UTC|GMT|CES?T|[EP][SD]T)\b(?:[+-]\d{2}:?\d{2}\b)?|[+-]\d{2}:?\d{2}\b))?";
const UNIT: &str = "(?:milliseconds?|millis|msecs?|microseconds?|nanoseconds?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|ms|µs|us|ns|s|m|h|d)";

/// The patterns in their order. At each position the first match counts. `{…}` refers to one of the parts above.
const PATTERNS: [(Kind, &str); 19] = [
    (
        Kind::Uuid,
        r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
    ),
    (
        Kind::Url,
        r#"\b[a-z][a-z+]{1,15}://(?:[^\s"'`<>()\[\]{}|\\,;]|<[a-z]{1,8}>|\[[0-9a-fA-F:]{2,45}\])+"#,
    ),
    (
        Kind::Email,
        r"\b[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,62}){1,8}\b",
    ),
    (Kind::Time, r"\b\d{4}-\d{2}-\d{2}(?:[T ]{CLOCK}{ZONE})?"),
    (
        Kind::Time,
        r"\b(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? )?(?:\d{1,2} {MONTH},? \d{4}\b|{MONTH} \d{1,2}\b(?:,? \d{4}\b)?)(?:(?:,| at)? {CLOCK})?{ZONE}(?: \([A-Z][A-Za-z ]{2,40}\))?",
    ),
    (Kind::Time, r"\b\d{1,4}/\d{1,2}/\d{2,4}\b(?:[ T]{CLOCK})?"),
    (
        Kind::Time,
        r"\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?: ?[AaPp][Mm]\b)?",
    ),
    (Kind::Time, r"\b\d{1,2}:\d{2} ?[AaPp][Mm]\b"),
    (
        Kind::Host,
        r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{1,5})?\b|\blocalhost(?::\d{1,5})?\b|\[(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}\](?::\d{1,5})?",
    ),
    (
        Kind::Ip6,
        r"(?:\b[0-9a-fA-F]{1,4}|:)(?::[0-9a-fA-F]{0,4}){3,7}\b|::1\b",
    ),
    (
        Kind::WindowsPath,
        r#"\b[A-Za-z]:[\\/](?:[^\s"'`<>|:*?(),;]|<[a-z]{1,8}>)+(?::\d{1,7}){0,2}"#,
    ),
    (
        Kind::UnixPath,
        r#"/(?:[^\s"'`<>|:()\[\]{},;]|<[a-z]{1,8}>)+(?::\d{1,7}){0,2}"#,
    ),
    (
        Kind::Line,
        r"\b[A-Za-z_][\w-]{0,100}(?:\.\w{1,20}){0,4}\.[A-Za-z]\w{0,5}(?::\d{1,7}){1,2}\b",
    ),
    (Kind::Address, r"\b0x[0-9a-fA-F]+\b|@[0-9a-f]{4,16}\b"),
    (
        Kind::Duration,
        r"\b\d{1,15}(?:[.,]\d{1,9})? ?{UNIT}(?:(?: and | )?\d{1,15}(?:[.,]\d{1,9})? ?{UNIT}){0,3}\b",
    ),
    (
        Kind::Size,
        r"\b\d{1,15}(?:[.,]\d{1,9})? ?(?:[KMGT]i?B|[kmgt]b|kB|bytes?)\b",
    ),
    (Kind::Token, r"[A-Za-z0-9][A-Za-z0-9_+-]{19,199}={0,2}"),
    (
        Kind::Number,
        r"\b\d{1,3}(?:,\d{3}){1,6}(?:\.\d{1,20})?\b|\b\d{1,40}(?:\.\d{1,40}){1,6}(?:[eE][+-]?\d{1,4})?\b",
    ),
    (Kind::Word, r"[A-Za-z0-9]+"),
];

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, compiled by every test"
)]
static MASKS: LazyLock<meta::Regex> = LazyLock::new(|| {
    let patterns = PATTERNS.map(|(_, pattern)| {
        let whole = pattern
            .replace("{CLOCK}", CLOCK)
            .replace("{ZONE}", ZONE)
            .replace("{MONTH}", MONTH)
            .replace("{UNIT}", UNIT);
        // Digits, words and their boundaries are ASCII here, for smaller and faster automata.
        whole
            .replace(r"\d", "[0-9]")
            .replace(r"\w", "[A-Za-z0-9_]")
            .replace(r"\b", r"(?-u:\b)")
    });
    meta::Regex::new_many(&patterns).expect("constant patterns compile")
});

/// Most passes over a text. A placeholder may reveal a match that a larger one hid.
const ROUNDS: usize = 4;

/// `text` with placeholders for its changing parts. Idempotent.
pub(crate) fn mask(text: &str) -> String {
    let mut masked = mask_once(text);
    for _ in 1..ROUNDS {
        let next = mask_once(&masked);
        if next == masked {
            break;
        }
        masked = next;
    }
    masked
}

/// One pass of [`mask`].
fn mask_once(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(pattern_match) = MASKS.search(&Input::new(text).range(at..)) {
        out.push_str(text.get(at..pattern_match.start()).unwrap_or_default());
        let kind = PATTERNS
            .get(pattern_match.pattern().as_usize())
            .map_or(Kind::Word, |(kind, _)| *kind);
        let part = text.get(pattern_match.range()).unwrap_or_default();
        at = pattern_match.start() + replace(kind, part, &mut out).max(1);
        if kind == Kind::Token && out.ends_with("<token>") {
            // The text after the matched part belongs to the same token.
            let rest = text.get(at..).unwrap_or_default();
            at += rest
                .bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'+' | b'-' | b'='))
                .count();
        }
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Writes the placeholder of `part` and returns the length that it replaces.
fn replace(kind: Kind, part: &str, out: &mut String) -> usize {
    let placeholder = match kind {
        Kind::Uuid => "<uuid>",
        Kind::Email => "<email>",
        Kind::Time => "<time>",
        Kind::Host => "<host>",
        // Digits with a `d` among them are more probably an id than thousands of years.
        Kind::Duration if word::is_hexadecimal(part) => "<n>",
        Kind::Duration => "<duration>",
        Kind::Size => "<size>",
        Kind::Address if part.starts_with('@') => "@<n>",
        Kind::Address | Kind::Number => return word::number(part, out),
        Kind::Ip6 if part.bytes().any(|b| b.is_ascii_digit()) => "<host>",
        Kind::Token if word::is_hexadecimal(part) => "<n>",
        Kind::Token if word::is_random(part) => "<token>",
        Kind::Url => return path::url(part, out),
        Kind::WindowsPath | Kind::UnixPath => return path::path(part, out),
        Kind::Line => return path::line(part, out),
        Kind::Token | Kind::Ip6 | Kind::Word => return word::first(part, out),
    };
    out.push_str(placeholder);
    part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, masked: &str) {
        assert_eq!(mask(text), masked, "{text}");
        assert_eq!(mask(masked), masked, "masking twice: {text}");
    }

    #[test]
    fn ids() {
        check(
            "order 550e8400-e29b-41d4-a716-446655440000 gone",
            "order <uuid> gone",
        );
        check("session-550e8400-e29b-41d4-a716-446655440000", "session-<uuid>");
        check("user_550E8400-E29B-41D4-A716-446655440000", "user_<uuid>");
        check(
            "commit 59807616e1fa2540724bfbac14d7976d7e4a3860 at 3f2a1bc",
            "commit <n> at <n>",
        );
        check("<Order object at 0x7fb4cdde7950>", "<Order object at <n>>");
        check("org.example.Order@5e9f23b", "org.example.Order@<n>");
        check("key V1StGXR8_Z5jdHi6B-myT", "key <token>");
        check("pod web-7d4b9c6f5-x2x9z", "pod web-<n>-<n>");
        check("job web-8717942d, 14 d old", "job web-<n>, <duration> old");
        check("request 8d529d0d of 4496d65d-25e861b2", "request <n> of <n>-<n>");
        check("tx-8747d7ecde33f6bcd5f12031", "tx-<n>");
        check("tx-529188225eeb460955547489", "tx-<n>");
        check("a_8a55f64a-b33b-4578-a8c3-2f57b980949d", "a_<uuid>");
        check("id SJFv8kIPDmLqWTnCzebaRYhQdGoXUEMw", "id <token>");
        check("id 01MVERMCWHXCFQGWWNJWXJDJB4", "id <token>");
        check("id 9avSHAMDARMnpTEnelyqgdFcGDUoHBmc", "id <token>");
        check("jwt eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "jwt <token>");
        check("id ckl3x9v8b0000qzrmn831i7rn", "id <token>");
    }

    #[test]
    fn words_stay() {
        for text in [
            "toBeGreaterThanOrEqual",
            "shouldReturnTheExpectedValueWhenTheBasketIsEmpty",
            "ExpectationNotMetError internationalization",
            "a::b::c and/or core::ffi",
            "GET /api/orders answers",
            "no route for \"with space\"",
            "Ünï-✓ × ok",
            "facade decade",
            "<element(s) not found>",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn numbers() {
        check("-1 and +2, (-3) or 4-5", "<n> and +<n>, (<n>) or <n>-<n>");
        check(
            "1,250.50 EUR, 12.5 %, v1.2.3, 1e9",
            "<n> EUR, <n> %, v<n>.<n>, <n>",
        );
        check("item3 of A1", "item<n> of A<n>");
        check("thread 17 (1214)", "thread <n> (<n>)");
    }

    #[test]
    fn times() {
        check("at 2026-11-20T18:46:03.120Z", "at <time>");
        check("at 2026-11-20 18:46:03,120 +01:00 sharp", "at <time> sharp");
        check("on 2026-11-20", "on <time>");
        check(
            "Thu Nov 20 2026 18:46:03 GMT+0100 (Central European Standard Time)",
            "<time>",
        );
        check("Fri, 20 Nov 2026 18:46:03 GMT", "<time>");
        check("11/20/2026 6:46 PM", "<time>");
        check("18:46:03.5 then 6:46pm", "<time> then <time>");
        check(
            "after 500ms, 1.5 s, 1m30s, 2 minutes and 3 seconds",
            "after <duration>, <duration>, <duration>, <duration>",
        );
        check("12 KB of 1.5GiB", "<size> of <size>");
    }

    #[test]
    fn paths() {
        check(
            "http://127.0.0.1:4173/orders/17?x=1#top.",
            "http://<host>/orders/<n>?<query>.",
        );
        check("(https://a.example:8443/)", "(https://<host>/)");
        check("connect ECONNREFUSED 127.0.0.1:9", "connect ECONNREFUSED <host>");
        check(
            "localhost:5432 and [::1]:80 and ::1 and fe80::1ff:fe23:4567:890a",
            "<host> and <host> and <host> and <host>",
        );
        check("mail a.b+c@d.example now", "mail <email> now");
        check(
            "/home/runner/work/a/a/tests/x.spec.ts:12:34",
            "<path>/x.spec.ts:<line>",
        );
        check("C:\\Users\\ci\\a\\b.cs:7", "<path>/b.cs:<line>");
        check("file:///home/x/y/z.mjs", "<path>/z.mjs");
        check(
            "open /tmp/pytest-of-root/pytest-0/tmpab12cd failed",
            "open <path> failed",
        );
        check("open /tmp/x9f/report.csv", "open <path>/report.csv");
        check(
            "orders.spec.ts:12:34 and src/lib.rs:20",
            "orders.spec.ts:<line> and src/lib.rs:<line>",
        );
        check("GET /api/orders/17", "GET /api/orders/<n>");
        check("</div> a/b/c.d", "</div> a/b/c.d");
    }

    proptest::proptest! {
        #[test]
        fn masking_what_is_masked_changes_nothing(
            text in r#"(?:[a-f0-9]{1,30}|[A-Za-z0-9_+-]{1,40}|[0-9:.,/@-]{1,12}|http://|/home/a/|C:\\|2026-11-20T18:46:03Z|[ "'`<>(){}\[\]\\/…ü✓-]{1,6}|\PC{0,6}){0,16}"#
        ) {
            let once = mask(&text);
            proptest::prop_assert_eq!(mask(&once), once);
        }
    }
}
