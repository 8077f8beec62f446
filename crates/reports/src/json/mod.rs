//! JSON as tools write it in practice: preceded by other text, cut off, with fields of the wrong type.

mod lenient;
mod surrogate;
mod walk;

use std::{borrow::Cow, iter};

use memchr::memchr_iter;
use serde::{Deserialize, de::DeserializeOwned};

use self::walk::{close_at_last_element, length};
pub(crate) use self::{
    lenient::{
        Flag, Lenient, List, Number, Object, OfAnyJson, OneOrMany, Positive, RareList, Text, TextOrLines,
        Texts,
    },
    walk::keys,
};
use crate::{
    input::Input,
    report::{Format, ReadError, Report},
};

/// A parsed file.
#[derive(Debug)]
pub(crate) struct JsonReport<T> {
    /// The parsed value.
    pub(crate) value: T,
    /// The line where the file was cut off, if it was.
    pub(crate) cut_at: Option<usize>,
    /// The byte of the input where another report begins, if one follows.
    pub(crate) another_at: Option<usize>,
}

/// The properties of a JSON format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// The format's name in messages.
    pub(crate) format: &'static str,
    /// A key of the outermost object that distinguishes the report from other JSON before it.
    key: &'static str,
    /// The key of the arrays whose complete elements are read if the file was cut off. Empty if such a file is an
    /// error.
    array_key: &'static str,
}

impl Shape {
    /// A format with this name whose list of results has the key that distinguishes it.
    pub(crate) const fn of_list(format: &'static str, key: &'static str) -> Self {
        Self {
            format,
            key,
            array_key: key,
        }
    }

    /// The same with its results in lists of another key.
    pub(crate) const fn with_lists(self, array_key: &'static str) -> Self {
        Self { array_key, ..self }
    }
}

/// Parses the report in a file. Skips text before it (log lines, a byte-order mark) and after it. Returns the
/// complete elements of a report that was cut off.
pub(crate) fn parse<T: DeserializeOwned>(
    input: &Input<'_>,
    shape: Shape,
) -> Result<JsonReport<T>, ReadError> {
    parse_report(input, shape, |_, at| at)
}

/// A JSON format with one object for a run.
pub(crate) trait Document: DeserializeOwned {
    /// The format of its reports.
    const FORMAT: Format;
    /// Its properties.
    const SHAPE: Shape;

    /// Adds what was parsed to an empty report.
    fn add_to(self, input: &Input<'_>, report: &mut Report);
}

/// Reads the report in a file. The second value is the byte where another report begins.
pub(crate) fn read<D: Document>(input: &Input<'_>) -> Result<(Report, Option<usize>), ReadError> {
    let parsed = parse::<D>(input, D::SHAPE)?;
    let mut report = Report::empty(D::FORMAT);
    parsed.value.add_to(input, &mut report);
    report.mark_cut_off(input.name, parsed.cut_at);
    Ok((report, parsed.another_at))
}

/// Parses a report that is a list of objects with the key, or one such object. Otherwise like [`parse`].
pub(crate) fn parse_list<T>(input: &Input<'_>, shape: Shape) -> Result<JsonReport<Vec<T>>, ReadError>
where
    T: for<'de> Deserialize<'de>,
{
    let parsed = parse_report::<Lenient<OneOrMany<T>>>(input, shape, list_around)?;
    Ok(JsonReport {
        value: parsed.value.0.0,
        cut_at: parsed.cut_at,
        another_at: parsed.another_at,
    })
}

/// The byte of the `[` directly before the object at byte `at`. Returns `at` if the object is not the first of a list.
fn list_around(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default().trim_end();
    before.strip_suffix('[').map_or(at, str::len)
}

/// Parses the report around the first object with the key. `beginning` maps the object's first byte to the report's.
fn parse_report<T: DeserializeOwned>(
    input: &Input<'_>,
    shape: Shape,
    beginning: fn(&str, usize) -> usize,
) -> Result<JsonReport<T>, ReadError> {
    let Some(start) = find_start(input.text, shape.key).map(|at| beginning(input.text, at)) else {
        let problem = format!("no JSON object with the key `{}` in it", shape.key);
        return Err(input.broken(1, shape.format, problem));
    };
    let mut text = Cow::Borrowed(input.text.get(start..).unwrap_or_default());
    let mut value = first_value_and_length(&text);
    if value.as_ref().is_err_and(|error| !error.is_eof())
        && let Some(replaced) = surrogate::replaced(&text)
    {
        value = first_value_and_length(&replaced);
        text = Cow::Owned(replaced);
    }
    match value {
        Ok((value, length)) => Ok(JsonReport {
            value,
            cut_at: None,
            another_at: next_report(&text, length, shape.key).map(|at| start + beginning(&text, at)),
        }),
        Err(error) if error.is_eof() => {
            let cut = 1 + input.text.matches('\n').count();
            let closed =
                close_at_last_element(&text, shape.array_key).and_then(|text| first_value(&text).ok());
            closed
                .map(|value| JsonReport {
                    value,
                    cut_at: Some(input.lines_before + cut),
                    another_at: None,
                })
                .ok_or_else(|| {
                    let problem = if shape.array_key.is_empty() {
                        "the file ends here within its result, expected the rest of the JSON object; its writer was stopped"
                    } else {
                        "the file ends here before its first whole test, expected more JSON; its writer was stopped"
                    };
                    input.broken(cut, shape.format, problem)
                })
        }
        Err(error) => {
            let line = input.text.get(..start).unwrap_or_default().matches('\n').count() + error.line();
            Err(input.broken(line, shape.format, error.to_string()))
        }
    }
}

/// The first JSON value of a text; text after it is ignored.
pub(crate) fn first_value<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, serde_json::Error> {
    T::deserialize(&mut serde_json::Deserializer::from_str(text))
}

/// The first JSON value of a text and its length in bytes.
fn first_value_and_length<T: DeserializeOwned>(text: &str) -> Result<(T, usize), serde_json::Error> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    match values.next() {
        Some(value) => Ok((value?, values.byte_offset())),
        // Produces the error of an empty text.
        None => first_value(text).map(|value| (value, text.len())),
    }
}

/// The byte where another report begins after the first report, which has `length` bytes.
fn next_report(text: &str, length: usize, key: &str) -> Option<usize> {
    let behind = text.get(length..).filter(|rest| !rest.trim().is_empty())?;
    Some(length + find_start(behind, key)?)
}

/// Whether a text ends within its first object.
pub(crate) fn is_cut_off(object: &str) -> bool {
    object.starts_with('{') && length(object).is_none()
}

/// The byte where the outermost object with the key begins.
fn find_start(text: &str, key: &str) -> Option<usize> {
    let has_key = |object: &str| {
        keys(object)
            .any(|(depth, name)| depth == 1 && name == key)
            .then_some(())
    };
    find_object(text, has_key).map(|(at, ())| at)
}

/// The first object of a text for which `accept` has a value, and the byte where it begins. The contents of other
/// objects are skipped, since a report is never nested in something else.
pub(crate) fn find_object<'a, T>(
    text: &'a str,
    mut accept: impl FnMut(&'a str) -> Option<T>,
) -> Option<(usize, T)> {
    let mut skipped_to = 0;
    for at in openings(text) {
        if at < skipped_to {
            continue;
        }
        let object = text.get(at..)?;
        if let Some(answer) = accept(object) {
            return Some((at, answer));
        }
        skipped_to = at + length(object).unwrap_or(1);
    }
    None
}

/// Bytes where a report may begin: the first few lines that begin with `{` or `[{`, then the first `{` of all. Only a short
/// text precedes a report.
fn openings(text: &str) -> impl Iterator<Item = usize> + '_ {
    let line_starts = memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
    let at_line_start = iter::once(0).chain(line_starts).filter_map(|start| {
        let is_blank = |c: char| c != '\n' && (c.is_whitespace() || c == '\u{feff}');
        let line = text.get(start..)?.trim_start_matches(is_blank);
        let line = line.strip_prefix('[').map_or(line, str::trim_start);
        line.starts_with('{').then_some(text.len() - line.len())
    });
    at_line_start
        .take_while(|at| *at < LONGEST_PREFACE)
        .take(20)
        .chain(text.find('{'))
}

/// The number of bytes of other text that may precede a report.
const LONGEST_PREFACE: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct File {
        tests: List<Entry>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Entry {
        name: Text,
        took: Number,
    }

    const SHAPE: Shape = Shape::of_list("sample", "tests");

    fn parsed(text: &str) -> Result<(Vec<String>, Option<usize>), String> {
        let input = Input::alone("r.json", text);
        parse::<File>(&input, SHAPE)
            .map(|parsed| {
                let names = parsed
                    .value
                    .tests
                    .0
                    .into_iter()
                    .filter_map(|entry| entry.name.0)
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
            "r.json:1: not a readable sample report: the file ends here before its first whole test, expected more JSON; its writer was stopped"
        );
    }

    #[test]
    fn another_report_behind_the_first_is_noticed() {
        let another = |text: &str| {
            let input = Input::alone("r.json", text);
            parse::<File>(&input, SHAPE).unwrap().another_at
        };
        assert_eq!(
            another("log\n{\"tests\":\n[]}\nDone {ok}\n {\"a\":{\"tests\":[]}}"),
            None
        );
        assert_eq!(another("log\n{\"tests\":\n[]}\nDone\n{\"tests\":[]}"), Some(23));
        assert_eq!(another("{\"tests\":[]}{\"tests\":[]}"), Some(12));
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
    fn fields_of_another_type_count_as_absent() {
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
