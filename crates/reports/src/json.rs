//! JSON as tools leave it behind: text before it, an end that is missing, fields of the wrong type.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::{input::Input, report::ReadError};

/// A parsed file.
#[derive(Debug)]
pub(crate) struct Parsed<T> {
    /// What it holds.
    pub(crate) value: T,
    /// The line where the file was cut off, where it was.
    pub(crate) cut_at: Option<usize>,
}

/// How a format is read from a JSON file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// The format as people call it.
    pub(crate) format: &'static str,
    /// A key of the outermost object by which the report is told from other JSON before it.
    pub(crate) key: &'static str,
    /// The key of the arrays whose elements are worth keeping when the file was cut off: each is either whole or not
    /// there.
    pub(crate) whole: &'static str,
}

/// Parses the report in a file: skips text before it (log lines, a byte-order mark) and behind it, and keeps the whole
/// elements of one that was cut off.
pub(crate) fn parse<T: DeserializeOwned>(input: &Input<'_>, shape: Shape) -> Result<Parsed<T>, ReadError> {
    let Some(start) = start(input.text, shape.key) else {
        let problem = format!("no JSON object with the key `{}` in it", shape.key);
        return Err(input.broken(1, shape.format, problem));
    };
    let text = input.text.get(start..).unwrap_or_default();
    match first_value(text) {
        Ok(value) => Ok(Parsed { value, cut_at: None }),
        Err(error) if error.is_eof() => {
            let cut = 1 + input.text.matches('\n').count();
            let mended = mend(text, shape.whole).and_then(|text| first_value(&text).ok());
            mended
                .map(|value| Parsed {
                    value,
                    cut_at: Some(cut),
                })
                .ok_or_else(|| {
                    input.broken(
                        cut,
                        shape.format,
                        "the file ends before its first test; its writer was stopped",
                    )
                })
        }
        Err(error) => {
            let line = input.text.get(..start).unwrap_or_default().matches('\n').count() + error.line();
            Err(input.broken(line, shape.format, error.to_string()))
        }
    }
}

/// The first JSON value of a text, whatever follows it.
pub(crate) fn first_value<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    T::deserialize(&mut serde_json::Deserializer::from_str(text))
}

/// The byte where the outermost object with the key begins.
fn start(text: &str, key: &str) -> Option<usize> {
    let has_key = |object: &str| {
        keys(object)
            .any(|(depth, found)| depth == 1 && found == key)
            .then_some(())
    };
    find_object(text, has_key).map(|(at, ())| at)
}

/// The first object of a text that `wanted` has an answer for, and where it begins. What lies within an object that
/// was not wanted is passed over: a report never lies within something else.
pub(crate) fn find_object<'a, T>(
    text: &'a str,
    mut wanted: impl FnMut(&'a str) -> Option<T>,
) -> Option<(usize, T)> {
    let mut passed = 0;
    for at in openings(text) {
        if at < passed {
            continue;
        }
        let object = text.get(at..)?;
        if let Some(answer) = wanted(object) {
            return Some((at, answer));
        }
        passed = at + length(object).unwrap_or(1);
    }
    None
}

/// The length of the object that a text begins with; none where it is not closed.
fn length(text: &str) -> Option<usize> {
    let mut walk = Walk::new(text);
    loop {
        if matches!(walk.step()?, Step::Close) && walk.open.is_empty() {
            return Some(walk.at);
        }
    }
}

/// Where a report may begin: a `{` that begins a line, a few at most, since what precedes a report is short; then the
/// first `{` at all.
fn openings(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut start = 0;
    let at_line_start = text.split_inclusive('\n').filter_map(move |line| {
        let at = start
            + (line.len()
                - line
                    .trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
                    .len());
        start += line.len();
        text.get(at..)?.starts_with('{').then_some(at)
    });
    at_line_start
        .take_while(|at| *at < LONGEST_PREFACE)
        .take(20)
        .chain(text.find('{'))
}

/// How many bytes of other text may stand before a report.
const LONGEST_PREFACE: usize = 4 << 20;

/// The keys of the first JSON object of a text with their depth (1: its own), as far as the text goes. Values are not
/// looked at, so a cut-off or odd text has keys too.
pub(crate) fn keys(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut walk = Walk::new(text);
    std::iter::from_fn(move || {
        loop {
            match walk.step()? {
                Step::Key(key) => return Some((walk.open.len(), key)),
                Step::Close if walk.open.is_empty() => return None,
                Step::Close | Step::Other => {}
            }
        }
    })
}

/// The text cut behind the last whole element of an array under the key, with everything closed that is open there.
fn mend(text: &str, whole: &str) -> Option<String> {
    let mut walk = Walk::new(text);
    let mut kept: Option<(usize, Vec<u8>)> = None;
    while let Some(step) = walk.step() {
        let in_array = || {
            walk.open
                .last()
                .is_some_and(|frame| frame.close == b']' && frame.key == whole)
        };
        if matches!(step, Step::Close) && in_array() {
            kept = Some((walk.at, walk.open.iter().map(|frame| frame.close).collect()));
        }
    }
    let (end, open) = kept?;
    let mut mended = text.get(..end)?.to_owned();
    mended.extend(open.into_iter().rev().map(char::from));
    Some(mended)
}

/// A walk over the structure of a JSON text.
struct Walk<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Frame<'a>>,
    /// The latest string in the innermost object that a `:` follows.
    key: &'a str,
}

struct Frame<'a> {
    close: u8,
    /// The key whose value this is; empty for an element of an array.
    key: &'a str,
}

enum Step<'a> {
    Key(&'a str),
    Close,
    Other,
}

impl<'a> Walk<'a> {
    const fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            open: Vec::new(),
            key: "",
        }
    }

    fn step(&mut self) -> Option<Step<'a>> {
        let byte = *self.text.as_bytes().get(self.at)?;
        self.at += 1;
        Some(match byte {
            b'{' | b'[' => {
                let close = if byte == b'{' { b'}' } else { b']' };
                self.open.push(Frame {
                    close,
                    key: std::mem::take(&mut self.key),
                });
                Step::Other
            }
            b'}' | b']' => {
                self.open.pop();
                self.key = "";
                Step::Close
            }
            b'"' => {
                let string = self.string()?;
                let rest = self.text.get(self.at..)?.trim_start();
                if rest.starts_with(':') {
                    self.key = string;
                    Step::Key(string)
                } else {
                    Step::Other
                }
            }
            b',' => {
                self.key = "";
                Step::Other
            }
            _ => Step::Other,
        })
    }

    /// The rest of a string, its closing quote consumed; none where the text ends inside it.
    fn string(&mut self) -> Option<&'a str> {
        let begin = self.at;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return self.text.get(begin..self.at - 1);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }
}

/// Text, also where a report has a number or a truth value instead; none for anything else.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_any(Lenient::<String>::new())
}

/// A number, also where a report writes it as text; none for anything else.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    deserializer.deserialize_any(Lenient::<f64>::new())
}

/// A whole number from 1, as lines, columns and indexes are; none for anything else.
pub(crate) fn ordinal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    Ok(number(deserializer)?.and_then(|number| {
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates"
        )]
        let whole = number as u32;
        (whole >= 1).then_some(whole)
    }))
}

/// A list, empty where a report has null or anything else instead.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct List<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(element) = elements.next_element()? {
                list.push(element);
            }
            Ok(list)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<T>, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Vec::new())
        }

        fn visit_str<E>(self, _: &str) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_bool<E>(self, _: bool) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_f64<E>(self, _: f64) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_i64<E>(self, _: i64) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_u64<E>(self, _: u64) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_unit<E>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }
    }
    deserializer.deserialize_any(List(std::marker::PhantomData))
}

/// What a scalar can be read as.
trait Scalar: Sized {
    fn of_text(text: &str) -> Option<Self>;
    fn of_number(number: f64) -> Option<Self>;
    fn of_bool(value: bool) -> Option<Self>;
}

impl Scalar for String {
    fn of_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn of_number(number: f64) -> Option<Self> {
        Some(number.to_string())
    }

    fn of_bool(value: bool) -> Option<Self> {
        Some(value.to_string())
    }
}

impl Scalar for f64 {
    fn of_text(text: &str) -> Option<Self> {
        text.trim()
            .parse()
            .ok()
            .filter(|number: &Self| number.is_finite())
    }

    fn of_number(number: f64) -> Option<Self> {
        Some(number)
    }

    fn of_bool(_: bool) -> Option<Self> {
        None
    }
}

struct Lenient<T>(std::marker::PhantomData<T>);

impl<T> Lenient<T> {
    const fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<'de, T: Scalar> Visitor<'de> for Lenient<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a number")
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<T>, E> {
        Ok(T::of_text(text))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Option<T>, E> {
        Ok(T::of_bool(value))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Option<T>, E> {
        Ok(T::of_number(number))
    }

    #[expect(
        clippy::as_conversions,
        reason = "a float is near enough to any count, time or duration"
    )]
    fn visit_i64<E>(self, number: i64) -> Result<Option<T>, E> {
        Ok(T::of_number(number as f64))
    }

    #[expect(
        clippy::as_conversions,
        reason = "a float is near enough to any count, time or duration"
    )]
    fn visit_u64<E>(self, number: u64) -> Result<Option<T>, E> {
        Ok(T::of_number(number as f64))
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Option<T>, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct File {
        #[serde(deserialize_with = "list")]
        tests: Vec<Entry>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Entry {
        #[serde(deserialize_with = "text")]
        name: Option<String>,
        #[serde(deserialize_with = "number")]
        took: Option<f64>,
    }

    fn parsed(text: &str) -> Result<(Vec<String>, Option<usize>), String> {
        let input = Input {
            name: "r.json",
            text,
            root: None,
            known_files: None,
            modified: None,
        };
        let shape = Shape {
            format: "sample",
            key: "tests",
            whole: "tests",
        };
        parse::<File>(&input, shape)
            .map(|parsed| {
                let names = parsed
                    .value
                    .tests
                    .into_iter()
                    .filter_map(|entry| entry.name)
                    .collect();
                (names, parsed.cut_at)
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn text_around_the_report_is_skipped() {
        let text = "\u{feff}> npm test\n{\"level\":\"info\"}\n  {not json\n{\n \"tests\": [{\"name\":\"a\"}]}\nDone {ok}";
        assert_eq!(parsed(text), Ok((vec!["a".into()], None)));
        assert_eq!(
            parsed("Report: {\"tests\":[{\"name\":1}]}"),
            Ok((vec!["1".into()], None))
        );
    }

    #[test]
    fn a_cut_off_report_keeps_its_whole_elements() {
        let text = "{\"tests\": [\n{\"name\":\"a\", \"took\": {\"x\": 1}},\n{\"name\":\"b \\\" }\", \"took\": [1]},\n{\"name\":\"c\", \"to";
        assert_eq!(
            parsed(text),
            Ok((vec!["a".into(), "b \\\" }".replace('\\', "")], Some(4)))
        );
        let message = parsed("{\"tests\": [{\"na").unwrap_err();
        assert_eq!(
            message,
            "r.json:1: not a readable sample report: the file ends before its first test; its writer was stopped"
        );
    }

    #[test]
    fn broken_json_is_named_with_its_line() {
        let message = parsed("log\n{\"tests\": [\n{\"name\" \"a\"}]}").unwrap_err();
        assert!(
            message.starts_with("r.json:3: not a readable sample report: expected `:`"),
            "{message}"
        );
        assert!(
            parsed("[1, 2]")
                .unwrap_err()
                .contains("no JSON object with the key `tests`")
        );
    }

    #[test]
    fn fields_of_another_type_are_as_good_as_absent() {
        let odd = r#"{"tests": [{"name": {"a": [1]}, "took": "12.5"}, {"name": null, "took": []}, {"name": true}]}"#;
        let file: File = first_value(odd).unwrap();
        assert_eq!(
            file.tests.iter().map(|entry| entry.took).collect::<Vec<_>>(),
            [Some(12.5), None, None]
        );
        assert_eq!(
            first_value::<File>(r#"{"tests": {"a": 1}}"#).unwrap(),
            File::default()
        );
    }
}
