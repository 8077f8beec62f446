//! Decodes percent-encoded text strictly: the result must be UTF-8 that can be stored.

use std::str::FromStr;

use assay_domain::vocabulary::UnknownWord;
use percent_encoding::percent_decode;

use crate::Unanswerable;

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
pub struct Pairs {
    pairs: Vec<(String, Option<String>)>,
    is_of_form: bool,
}

impl Pairs {
    /// Parses a raw query. A value that cannot be decoded becomes none. A pair whose name cannot be decoded is dropped,
    /// since it can only be an unknown parameter.
    pub fn of(raw: &str) -> Self {
        let pairs = raw.split('&').filter(|pair| !pair.is_empty()).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode_form(name)?, decode_form(value)))
        });
        Self {
            pairs: pairs.collect(),
            is_of_form: false,
        }
    }

    /// The pairs of a form, which sends empty fields: a parsed parameter without a value counts as absent.
    pub fn of_form(raw: &str) -> Self {
        Self {
            is_of_form: true,
            ..Self::of(raw)
        }
    }

    /// The values of every pair of this name.
    pub fn values(&self, name: &str) -> impl Iterator<Item = Option<&str>> {
        self.pairs
            .iter()
            .filter(move |(theirs, _)| theirs == name)
            .map(|(_, value)| value.as_deref())
    }

    /// The value of a parameter that may occur once.
    ///
    /// # Errors
    /// If it occurs more often, or cannot be decoded.
    pub fn single(&self, name: &'static str) -> Result<Option<&str>, Unanswerable> {
        let mut values = self.values(name);
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(Unanswerable::bad(name, "must be given once")),
            (Some(None), None) => Err(Unanswerable::bad(
                name,
                "must be percent-encoded UTF-8 without NUL",
            )),
            (Some(Some(value)), None) => Ok(Some(value)),
        }
    }

    /// A parameter, parsed by `read`, which returns none for a value that breaks `rule`.
    ///
    /// # Errors
    /// If it breaks the rule, or one of [`Self::single`].
    pub fn parse<T>(
        &self,
        name: &'static str,
        rule: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Unanswerable> {
        let value = self.single(name)?.filter(|value| !self.is_omitted(value));
        value
            .map(|value| read(value).ok_or_else(|| Unanswerable::bad(name, rule)))
            .transpose()
    }

    /// A word from a closed set.
    ///
    /// # Errors
    /// If it is another word, or breaks a rule of [`Self::single`].
    pub fn word<T: FromStr<Err = UnknownWord>>(&self, name: &'static str) -> Result<Option<T>, Unanswerable> {
        let word = self.single(name)?.filter(|word| !self.is_omitted(word));
        let parsed = word.map(str::parse).transpose();
        parsed.map_err(|UnknownWord { allowed }| {
            Unanswerable::bad(name, &format!("must be one of {}", allowed.join(", ")))
        })
    }

    /// A text of at most this many characters.
    ///
    /// # Errors
    /// If it is empty or longer, or breaks a rule of [`Self::single`].
    pub fn text(&self, name: &'static str, most: usize) -> Result<Option<String>, Unanswerable> {
        let rule = format!("must be 1 to {most} characters long");
        self.parse(name, &rule, |text| {
            (1..=most)
                .contains(&text.chars().count())
                .then(|| text.to_owned())
        })
    }

    /// `variant`: the name of a variant, which imports cut to 500 characters.
    ///
    /// # Errors
    /// As of [`Self::text`].
    pub fn variant(&self) -> Result<Option<String>, Unanswerable> {
        self.text("variant", 500)
    }

    /// `true` or `false` (the default).
    ///
    /// # Errors
    /// If it is anything else, or breaks a rule of [`Self::single`].
    pub fn flag(&self, name: &'static str) -> Result<bool, Unanswerable> {
        let flag = self.parse(name, "must be true or false", |word| word.parse().ok())?;
        Ok(flag.unwrap_or_default())
    }

    /// Whether a parameter that can only be this word is given.
    ///
    /// # Errors
    /// If it is anything else, or breaks a rule of [`Self::single`].
    pub fn is_word(&self, name: &'static str, word: &str) -> Result<bool, Unanswerable> {
        let given = self.parse(name, &format!("must be {word}"), |given| {
            (given == word).then_some(())
        })?;
        Ok(given.is_some())
    }

    /// `sha`: 4 to 40 hexadecimal characters, in lower case.
    ///
    /// # Errors
    /// If it is anything else, or breaks a rule of [`Self::single`].
    pub fn sha(&self) -> Result<Option<String>, Unanswerable> {
        self.parse("sha", "must be 4 to 40 hexadecimal characters", |sha| {
            let is_sha = (4..=40).contains(&sha.len()) && sha.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_sha.then(|| sha.to_ascii_lowercase())
        })
    }

    /// `page`: a whole number from 1 (the default). A large number is a page past the end.
    ///
    /// # Errors
    /// If it is no such number, or breaks a rule of [`Self::single`].
    pub fn page(&self) -> Result<u64, Unanswerable> {
        let page = self.parse("page", "must be a whole number from 1", |page| {
            let is_number = !page.is_empty() && page.bytes().all(|byte| byte.is_ascii_digit());
            is_number
                .then(|| page.parse().unwrap_or(u64::MAX))
                .filter(|page| *page >= 1)
        })?;
        Ok(page.unwrap_or(1))
    }

    fn is_omitted(&self, value: &str) -> bool {
        self.is_of_form && value.is_empty()
    }

    /// The first value of this name that can be decoded.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.values(name).flatten().next()
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
