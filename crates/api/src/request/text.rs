//! Decodes percent-encoded text strictly: the result must be UTF-8 that can be stored.

use percent_encoding::percent_decode;

use crate::routes::BASE;

/// Decodes a path segment. None if an escape is malformed, or the text is not UTF-8 or contains NUL.
pub(crate) fn decode(raw: &str) -> Option<String> {
    let is_escape = |at: usize| {
        let digits = raw.as_bytes().get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let escapes_are_whole = raw
        .bytes()
        .enumerate()
        .all(|(at, byte)| byte != b'%' || is_escape(at));
    if !escapes_are_whole {
        return None;
    }
    let text = percent_decode(raw.as_bytes()).decode_utf8().ok()?;
    (!text.contains('\0')).then(|| text.into_owned())
}

/// The parameters of a path, with their names in the route.
pub(crate) struct PathParameters(Vec<(&'static str, Option<String>)>);

impl PathParameters {
    /// Parses a raw path that matches `pattern` below [`BASE`]. A value that cannot be decoded becomes none.
    pub(crate) fn of(raw: &str, pattern: &'static str) -> Self {
        let names = BASE.split('/').chain(pattern.split('/').skip(1));
        let parameters = names.zip(raw.split('/')).filter_map(|(name, value)| {
            let name = name.strip_prefix('{')?.strip_suffix('}')?;
            Some((name, decode(value)))
        });
        Self(parameters.collect())
    }

    /// The value of the parameter of this name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(theirs, _)| *theirs == name)?;
        value.as_deref()
    }
}

/// The pairs of a query in their order. `+` is a space, as in forms.
pub(crate) struct Pairs(Vec<(String, Option<String>)>);

impl Pairs {
    /// Parses a raw query. A value that cannot be decoded becomes none. A pair whose name cannot be decoded is dropped,
    /// since it can only be an unknown parameter.
    pub(crate) fn of(raw: &str) -> Self {
        let pairs = raw.split('&').filter(|pair| !pair.is_empty()).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode_form(name)?, decode_form(value)))
        });
        Self(pairs.collect())
    }

    /// The values of every pair of this name.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = Option<&str>> {
        self.0
            .iter()
            .filter(move |(theirs, _)| theirs == name)
            .map(|(_, value)| value.as_deref())
    }
}

fn decode_form(raw: &str) -> Option<String> {
    decode(&raw.replace('+', " "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_whole_escapes_of_utf8_without_nul_are_text() {
        assert_eq!(decode("a%2Fb+c%20%C3%A9"), Some("a/b+c é".to_owned()));
        assert_eq!(decode(""), Some(String::new()));
        for bad in [
            "%", "a%", "%4", "%zz", "%4g", "%FF", "%C3", "%00", "a%00b", "%C0%80", "%%41",
        ] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_path_has_the_parameters_of_its_route() {
        let parameters = |raw| PathParameters::of(raw, "/projects/{projectId}/tests/{testName}/status");
        let path = parameters("/%61pi/v1/projects/a%2Fb/%74ests/c+%25/status");
        assert_eq!(path.value("projectId"), Some("a/b"));
        assert_eq!(path.value("testName"), Some("c+%"));
        assert_eq!(path.value("tests"), None);
        let not_text = parameters("/api/v1/projects/%FF/tests/%00/status");
        assert_eq!(not_text.value("projectId"), None);
        assert_eq!(not_text.value("testName"), None);
    }

    #[test]
    fn a_query_is_read_as_a_form() {
        let pairs = Pairs::of("a=1&&b=x+y%2B%26&a=%FF&c&%FF=1&=2&d=e=f");
        let values = |name| pairs.values(name).collect::<Vec<_>>();
        assert_eq!(values("a"), [Some("1"), None]);
        assert_eq!(values("b"), [Some("x y+&")]);
        assert_eq!(values("c"), [Some("")]);
        assert_eq!(values("d"), [Some("e=f")]);
        assert!(values("e").is_empty());
    }

    proptest! {
        #[test]
        fn encoded_text_reads_back(text in "[^\0]{0,40}") {
            let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(decode(&encoded), Some(text));
        }

        #[test]
        fn any_query_is_parsed_without_a_panic(raw in any::<String>()) {
            Pairs::of(&raw);
        }
    }
}
