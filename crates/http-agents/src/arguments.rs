//! The arguments of a tool call.

use std::{fmt::Display, ops::RangeInclusive};

use assay_domain::{
    id::RunId,
    test::{FileSelector, TestSelector},
};
use serde_json::{Map, Value, json};

use crate::{
    budget::{BYTES, DEFAULT_BYTES, length},
    error::ToolError,
    text::shorten,
};

/// Longest text that an argument may have, in characters: that of a test's name.
const TEXT: usize = 20_000;
/// Longest argument that the `next` call repeats, in bytes of JSON.
const REPEATED: usize = 2_100;

/// Selects a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunSelector {
    /// By the id of the run or of one of its shards.
    Id(RunId),
    /// By its number in the project.
    Number(i32),
}

/// The arguments of one call, all of them in the tool's schema.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Rejects arguments that are not in `properties`, the properties of the tool's schema.
    pub(crate) fn new(
        arguments: Map<String, Value>,
        properties: &Map<String, Value>,
    ) -> Result<Self, ToolError> {
        for name in arguments.keys() {
            if !properties.contains_key(name) {
                let nearest = properties
                    .keys()
                    .max_by(|left, right| {
                        strsim::jaro_winkler(left, name).total_cmp(&strsim::jaro_winkler(right, name))
                    })
                    .map(String::as_str);
                let quoted: String = name.chars().take(80).collect();
                return Err(ToolError::new(format!("There is no argument {quoted:?}."))
                    .with_candidates(nearest.map(str::to_owned).into_iter().collect()));
            }
        }
        Ok(Self(arguments))
    }

    /// Whether the argument is present.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }

    /// A text of at most [`TEXT`] characters; none if the argument is absent or empty.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, ToolError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) if text.chars().count() <= TEXT => Ok(Some(text.clone())),
            Some(_) => Err(ToolError::new(format!(
                "`{name}` must be a text of at most {TEXT} characters."
            ))),
        }
    }

    /// A text that an agent pastes as it is, cut in the middle to `longest` characters, and whether it was cut. None if
    /// the argument is absent or empty.
    pub(crate) fn pasted(&self, name: &str, longest: usize) -> Result<(Option<String>, bool), ToolError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok((None, false)),
            Some(Value::String(text)) if text.is_empty() => Ok((None, false)),
            Some(Value::String(text)) => Ok(match shorten(text, longest) {
                Some(short) => (Some(short), true),
                None => (Some(text.clone()), false),
            }),
            Some(_) => Err(ToolError::new(format!("`{name}` must be a text."))),
        }
    }

    /// A list of at most `longest` objects whose fields are all in `properties`; none if the argument is absent.
    pub(crate) fn list(
        &self,
        name: &str,
        longest: usize,
        properties: &Value,
    ) -> Result<Option<Vec<Self>>, ToolError> {
        let value = self.0.get(name).filter(|value| !value.is_null());
        let (Some(value), Value::Object(properties)) = (value, properties) else {
            return Ok(None);
        };
        let wrong = || ToolError::new(format!("`{name}` must be a list of at most {longest} objects."));
        let entries = value.as_array().ok_or_else(wrong)?;
        if entries.len() > longest {
            return Err(wrong());
        }
        let entries = entries.iter().map(|entry| {
            let fields = entry.as_object().ok_or_else(wrong)?;
            Self::new(fields.clone(), properties)
        });
        entries.collect::<Result<_, _>>().map(Some)
    }

    /// The test that `test` and `file` name. An empty `file` selects the test without a file.
    pub(crate) fn test(&self) -> Result<TestSelector, ToolError> {
        let name = self.required("test")?;
        let file = match self.0.get("file") {
            Some(Value::String(file)) if file.is_empty() => FileSelector::Exactly(None),
            _ => self
                .text("file")?
                .map_or(FileSelector::Any, |file| FileSelector::Exactly(Some(file))),
        };
        Ok(TestSelector { name, file })
    }

    /// A required text.
    pub(crate) fn required(&self, name: &str) -> Result<String, ToolError> {
        self.text(name)?
            .ok_or_else(|| ToolError::new(format!("`{name}` is missing.")))
    }

    /// A whole number within a range; none if the argument is absent.
    pub(crate) fn number(&self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, ToolError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_i64().filter(|number| range.contains(number)) {
                Some(number) => Ok(Some(number)),
                None => Err(ToolError::new(format!(
                    "`{name}` must be a whole number from {} to {}.",
                    range.start(),
                    range.end()
                ))),
            },
        }
    }

    /// True or false; none if the argument is absent.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, ToolError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(ToolError::new(format!("`{name}` must be true or false."))),
        }
    }

    /// A run as agents name it: its id, or its number as `12`, `run 12` or `#12`. None if the argument is absent or
    /// neither.
    pub(crate) fn run(&self) -> Option<RunSelector> {
        match self.0.get("run")? {
            Value::Number(number) => {
                let number = number.as_i64().and_then(|number| i32::try_from(number).ok())?;
                Some(RunSelector::Number(number))
            }
            Value::String(text) => {
                let text = text.trim();
                if let Ok(id) = text.parse() {
                    return Some(RunSelector::Id(id));
                }
                let number = text.trim_start_matches(|c: char| !c.is_ascii_digit());
                let words = text.strip_suffix(number)?.trim().to_ascii_lowercase();
                let number = number.parse().ok()?;
                ["", "run", "#", "run #"]
                    .contains(&words.as_str())
                    .then_some(RunSelector::Number(number))
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// One of these words; none if the argument is absent.
    pub(crate) fn word<T: Copy + Display>(&self, name: &str, words: &[T]) -> Result<Option<T>, ToolError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let names: Vec<String> = words.iter().map(T::to_string).collect();
        let word = words.iter().zip(&names).find(|(_, name)| **name == text);
        match word {
            Some((word, _)) => Ok(Some(*word)),
            None => Err(ToolError::new(format!(
                "`{name}` must be one of {}.",
                names.join(", ")
            ))),
        }
    }

    /// The largest answer in bytes.
    pub(crate) fn max_bytes(&self) -> Result<usize, ToolError> {
        let bytes = self.number("maxBytes", BYTES)?;
        Ok(bytes
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(DEFAULT_BYTES))
    }

    /// The number of entries to skip.
    pub(crate) fn skip(&self) -> Result<usize, ToolError> {
        let skip = self.number("skip", 0..=1_000_000)?;
        Ok(skip.and_then(|skip| usize::try_from(skip).ok()).unwrap_or(0))
    }

    /// A call of another tool for the same project.
    pub(crate) fn other_call(&self, tool: &str, arguments: &[(&str, Value)]) -> Value {
        let project = self.0.get("project").cloned().unwrap_or_default();
        Self::default().call(tool, &[arguments, &[("project", project)]].concat())
    }

    /// The call of `tool` for the next page, from its first entry.
    pub(crate) fn next_page(&self, tool: &str, page: i64) -> Value {
        self.call(tool, &[("page", json!(page + 1)), ("skip", Value::Null)])
    }

    /// A call of `tool` with these arguments, some of them replaced. A null removes an argument. A long argument, such
    /// as the failures of a local run, is not repeated.
    pub(crate) fn call(&self, tool: &str, replaced: &[(&str, Value)]) -> Value {
        let mut arguments = self.0.clone();
        for (name, value) in replaced {
            arguments.insert((*name).to_owned(), value.clone());
        }
        arguments.retain(|_, value| !value.is_null());
        for value in arguments.values_mut() {
            if length(value) > REPEATED {
                *value = json!("as before");
            }
        }
        json!({"tool": tool, "arguments": arguments})
    }
}
