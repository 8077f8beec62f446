//! Answers that fit the number of bytes that an agent is ready to spend on them.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use crate::text::{shorten, visible};

/// How many bytes an answer has at most, unless the call says so: about 2,500 tokens.
pub(crate) const DEFAULT_BYTES: usize = 8_000;
/// What a call may ask for.
pub(crate) const BYTES: RangeInclusive<i64> = 1_000..=32_000;

/// To how many characters texts are cut, in this order, before entries are left out.
const TEXT_LIMITS: [usize; 4] = [2_000, 800, 320, 160];
/// To how many characters texts are cut where even an answer without entries is too long.
const SHORTEST: usize = 40;

/// An answer before it is fitted: facts that are always shown, and entries of which the last are left out first.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    facts: Map<String, Value>,
    entries: Option<(&'static str, Vec<Value>)>,
    next: Option<Value>,
}

impl Draft {
    /// Adds a fact. Its text is made visible; a null is left out.
    pub(crate) fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = cleaned(value.into());
        if !value.is_null() {
            self.facts.insert(name.to_owned(), value);
        }
        self
    }

    /// Sets the entries, the most important first.
    pub(crate) fn entries(mut self, name: &'static str, entries: Vec<Value>) -> Self {
        self.entries = Some((name, entries.into_iter().map(cleaned).collect()));
        self
    }

    /// Sets the call that reads on: of the same tool where it names none.
    pub(crate) fn next(mut self, call: Option<Value>) -> Self {
        self.next = call;
        self
    }

    /// The answer as compact JSON of at most `limit` bytes. `larger` is the call to make where entries or parts of texts
    /// had to be left out.
    pub(crate) fn fit(self, limit: usize, larger: Value) -> Value {
        let (name, entries) = self.entries.unwrap_or(("entries", Vec::new()));
        let answer = |texts: usize, shown: usize| {
            let mut answer = Map::new();
            let mut cut = 0;
            for (key, value) in &self.facts {
                answer.insert(key.clone(), within(value.clone(), texts, &mut cut));
            }
            if !entries.is_empty() {
                let shown = entries.iter().take(shown);
                let shown = shown.map(|entry| within(entry.clone(), texts, &mut cut));
                answer.insert(name.to_owned(), shown.collect());
            }
            let omitted = entries.len().saturating_sub(shown);
            if omitted > 0 {
                answer.insert("omitted".to_owned(), omitted.into());
            }
            if cut > 0 {
                answer.insert("textsCut".to_owned(), cut.into());
            }
            let next = if omitted > 0 {
                Some(&larger)
            } else {
                self.next.as_ref()
            };
            if let Some(next) = next {
                answer.insert("next".to_owned(), next.clone());
            }
            Value::Object(answer)
        };
        let fits = |answer: &Value| length(answer) <= limit;
        let whole = TEXT_LIMITS.iter().map(|texts| answer(*texts, entries.len()));
        if let Some(whole) = whole.into_iter().find(fits) {
            return whole;
        }
        for texts in [160, SHORTEST] {
            // More entries never make an answer shorter, so the most that fit can be searched by halves.
            let (mut fitting, mut too_many) = (None, entries.len());
            let mut low = 0;
            while low < too_many {
                let middle = low.midpoint(too_many);
                let tried = answer(texts, middle);
                if fits(&tried) {
                    fitting = Some(tried);
                    low = middle + 1;
                } else {
                    too_many = middle;
                }
            }
            if let Some(fitting) = fitting {
                return fitting;
            }
        }
        json!({"omitted": entries.len().max(1), "next": larger})
    }
}

/// The bytes of a value as compact JSON.
pub(crate) fn length(value: &Value) -> usize {
    value.to_string().len()
}

/// Makes all texts of a value visible and leaves out what is null.
fn cleaned(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(&text)),
        Value::Array(values) => values.into_iter().map(cleaned).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            fields.map(|(name, value)| (name, cleaned(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Cuts all texts of a value to a number of characters and counts those that were longer.
fn within(value: Value, limit: usize, cut: &mut usize) -> Value {
    match value {
        Value::String(text) => match shorten(&text, limit) {
            Some(short) => {
                *cut += 1;
                Value::String(short)
            }
            None => Value::String(text),
        },
        Value::Array(values) => values
            .into_iter()
            .map(|value| within(value, limit, cut))
            .collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, within(value, limit, cut)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn draft(entries: usize, text: usize) -> Draft {
        let entry = |index: usize| json!({"test": format!("test {index}"), "message": "m".repeat(text)});
        Draft::default()
            .fact("project", "shop")
            .fact("nothing", Value::Null)
            .entries("tests", (0..entries).map(entry).collect())
    }

    #[test]
    fn an_answer_that_fits_is_shown_whole() {
        let answer = draft(2, 10).fit(1_000, json!("larger"));
        assert_eq!(answer["tests"].as_array().map(Vec::len), Some(2));
        assert_eq!(
            (answer.get("omitted"), answer.get("next"), answer.get("nothing")),
            (None, None, None)
        );
    }

    #[test]
    fn texts_are_cut_before_entries_are_left_out() {
        let answer = draft(4, 1_900).fit(4_000, json!("larger"));
        assert_eq!(answer["tests"].as_array().map(Vec::len), Some(4));
        assert_eq!(answer["textsCut"], 4);
        let answer = draft(400, 1_900).fit(4_000, json!("larger"));
        let shown = answer["tests"].as_array().map_or(0, Vec::len);
        assert!((5..400).contains(&shown));
        assert_eq!(answer["omitted"], 400 - shown);
        assert_eq!(answer["next"], "larger");
    }

    proptest! {
        #[test]
        fn no_answer_is_longer_than_its_budget(
            entries in 0usize..60, text in 0usize..5_000, facts in 0usize..5_000, limit in 1_000usize..32_000,
        ) {
            let draft = draft(entries, text).fact("long", "\u{1}\"".repeat(facts));
            let answer = draft.fit(limit, json!({"tool": "t"}));
            prop_assert!(length(&answer) <= limit);
        }
    }
}
