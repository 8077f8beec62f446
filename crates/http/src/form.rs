//! Decodes percent-encoded text strictly: the result must be UTF-8 that can be stored.

use percent_encoding::percent_decode;

/// Decodes a path segment. None if an escape is malformed, or the text is not UTF-8 or contains NUL.
pub fn decode(raw: &str) -> Option<String> {
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

/// The pairs of a query in their order. `+` is a space, as in forms.
pub struct Pairs(Vec<(String, Option<String>)>);

impl Pairs {
    /// Parses a raw query. A value that cannot be decoded becomes none. A pair whose name cannot be decoded is dropped,
    /// since it can only be an unknown parameter.
    pub fn of(raw: &str) -> Self {
        let pairs = raw.split('&').filter(|pair| !pair.is_empty()).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode_form(name)?, decode_form(value)))
        });
        Self(pairs.collect())
    }

    /// The values of every pair of this name.
    pub fn values(&self, name: &str) -> impl Iterator<Item = Option<&str>> {
        self.0
            .iter()
            .filter(move |(theirs, _)| theirs == name)
            .map(|(_, value)| value.as_deref())
    }

    /// The value of a parameter that may occur once.
    pub fn single(&self, name: &str) -> Result<Option<&str>, BadPair> {
        let mut values = self.values(name);
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(BadPair {
                rule: "must be given once",
            }),
            (Some(None), None) => Err(BadPair {
                rule: "must be percent-encoded UTF-8 without NUL",
            }),
            (Some(Some(value)), None) => Ok(Some(value)),
        }
    }

    /// The first value of this name that can be decoded.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.values(name).flatten().next()
    }
}

/// Why a parameter that may occur once has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadPair {
    /// The rule that it breaks, as the end of a sentence that begins with its name.
    pub rule: &'static str,
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
