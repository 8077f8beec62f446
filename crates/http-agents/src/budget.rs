//! Fits answers into the number of bytes that the call allows.

use std::{iter::once, ops::RangeInclusive};

use serde_json::{Map, Value, json};

use crate::text::{shorten, visible};

/// Largest answer in bytes unless the call sets it: about 2,500 tokens.
pub(crate) const DEFAULT_BYTES: usize = 8_000;
/// The range of a call's limit.
pub(crate) const BYTES: RangeInclusive<i64> = 1_000..=32_000;

/// The limit that a call sets for its answer, in bytes, or the default if `maxBytes` is absent or invalid. Limits the
/// errors of the call, whose arguments may be invalid.
pub(crate) fn requested_bytes(arguments: &Map<String, Value>) -> usize {
    let bytes = arguments.get("maxBytes").and_then(Value::as_i64);
    let bytes = bytes.filter(|bytes| BYTES.contains(bytes));
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(DEFAULT_BYTES)
}

/// Steps of cutting texts, in this order, before inner lists are cut.
const CUTS: [Cuts; 7] = [
    Cuts::texts(32_000),
    Cuts::texts(8_000),
    Cuts::texts(4_000),
    Cuts::texts(2_000),
    Cuts::texts(800),
    Cuts::texts(320),
    SHORT,
];
const SHORT: Cuts = Cuts::texts(160);
/// The last step before entries are omitted.
const ITEMS: Cuts = Cuts { items: 3, ..SHORT };
/// The steps once entries are omitted. The last one also omits the less important fields of an entry.
const LAST_CUTS: [Cuts; 3] = [
    ITEMS,
    Cuts {
        texts: 40,
        items: 3,
        ..ITEMS
    },
    Cuts {
        texts: 40,
        items: 1,
        fields: 5,
    },
];

/// The size of the shortest possible entry, in bytes. It bounds the number of entries to try.
const ENTRY_BYTES: usize = 20;

/// The longest texts and lists after a cut.
#[derive(Debug, Clone, Copy)]
struct Cuts {
    /// Characters of a text.
    texts: usize,
    /// Items of a list that is not the list of entries.
    items: usize,
    /// Fields of an entry, in their order.
    fields: usize,
}

impl Cuts {
    const fn texts(texts: usize) -> Self {
        Self {
            texts,
            items: usize::MAX,
            fields: usize::MAX,
        }
    }
}

/// The number of parts that were cut.
#[derive(Debug, Clone, Copy, Default)]
struct CutCounts {
    texts: usize,
    items: usize,
}

/// The limits of one answer, and the call that it answers.
pub(crate) struct Budget<'a> {
    /// The largest size of the answer, as compact JSON.
    pub(crate) bytes: usize,
    /// The number of entries that earlier calls returned.
    pub(crate) skip: usize,
    /// The same call with this argument replaced, for `next`.
    pub(crate) repeat_with: &'a dyn Fn(&str, Value) -> Value,
}

/// An answer that fits, with its text, which is compact JSON.
pub(crate) struct FittedAnswer {
    pub(crate) answer: Value,
    pub(crate) text: String,
}

impl From<Value> for FittedAnswer {
    fn from(answer: Value) -> Self {
        Self {
            text: answer.to_string(),
            answer,
        }
    }
}

/// An answer before it is fitted: facts that are always present, and entries. The last entries are omitted first.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    facts: Map<String, Value>,
    whole: Option<(&'static str, Value)>,
    entries: Option<(&'static str, Vec<Value>)>,
    next: Option<Value>,
}

impl Draft {
    /// Adds a fact without invisible characters. A null is omitted.
    pub(crate) fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = cleaned(value.into());
        if !value.is_null() {
            self.facts.insert(name.to_owned(), value);
        }
        self
    }

    /// Adds a text that is returned as a whole, or not at all if it does not fit.
    pub(crate) fn whole(mut self, name: &'static str, text: Option<String>) -> Self {
        self.whole = text.map(|text| (name, cleaned(text.into())));
        self
    }

    /// Sets the entries, the most important first.
    pub(crate) fn entries(mut self, name: &'static str, entries: Vec<Value>) -> Self {
        self.entries = Some((name, entries.into_iter().map(cleaned).collect()));
        self
    }

    /// Sets the next call for an answer that is complete.
    pub(crate) fn next(mut self, call: Option<Value>) -> Self {
        self.next = call;
        self
    }

    /// The answer within the budget.
    pub(crate) fn fit(self, budget: &Budget<'_>) -> FittedAnswer {
        if self.whole.is_some()
            && let Some(answer) = self.fitted(budget, self.whole.as_ref())
        {
            return answer;
        }
        let all = self.entries.as_ref().map_or(0, |(_, entries)| entries.len());
        let omitted = all.saturating_sub(budget.skip).max(1);
        let wider =
            json!({"omitted": omitted, "next": (budget.repeat_with)("maxBytes", (*BYTES.end()).into())});
        let wider = FittedAnswer::from(wider);
        self.fitted(budget, None)
            .unwrap_or_else(|| match wider.text.len() <= budget.bytes {
                true => wider,
                false => json!({"omitted": omitted}).into(),
            })
    }

    fn fitted(&self, budget: &Budget<'_>, whole: Option<&(&'static str, Value)>) -> Option<FittedAnswer> {
        let fits = |answer: &FittedAnswer| answer.text.len() <= budget.bytes;
        let entries = self.entries.iter().flat_map(|(_, entries)| entries);
        let longest = self.facts.values().chain(entries).map(longest_text).max();
        // A limit above the longest text cuts nothing, so all such limits have the same answer.
        let cuts_texts = |cuts: &Cuts| longest.is_some_and(|longest| cuts.texts < longest);
        let mut all = once(Cuts::texts(usize::MAX))
            .chain(CUTS.into_iter().filter(cuts_texts))
            .chain(once(ITEMS))
            .map(|cuts| self.answer(budget, cuts, whole, usize::MAX).into());
        if let Some(answer) = all.find(fits) {
            return Some(answer);
        }
        let mut without_entries = None;
        let remaining = self.entries.as_ref().map_or(0, |(_, entries)| entries.len());
        let has_entries = remaining > budget.skip;
        let with_entries = LAST_CUTS.iter().find_map(|cuts| {
            // More entries never make an answer shorter, so a binary search finds the largest number that fits.
            let (mut fitting, mut most, mut low) = (None, 0, 0);
            let mut too_many = self.entries.as_ref().map_or(0, |(_, entries)| entries.len()) + 1;
            while low < too_many {
                let middle = low.midpoint(too_many);
                let answer = self.answer(budget, *cuts, whole, middle).into();
                if fits(&answer) {
                    fitting = Some(answer);
                    most = middle;
                    low = middle + 1;
                } else {
                    too_many = middle;
                }
            }
            // An answer without an entry is useless, so shorter entries are tried first.
            if has_entries && most == 0 {
                without_entries = fitting.or_else(|| without_entries.take());
                return None;
            }
            fitting
        });
        with_entries.or(without_entries)
    }

    /// The answer with at most `max_entries` entries.
    fn answer(
        &self,
        budget: &Budget<'_>,
        cuts: Cuts,
        whole: Option<&(&'static str, Value)>,
        max_entries: usize,
    ) -> Value {
        let (mut answer, mut cut_counts) = (Map::new(), CutCounts::default());
        for (name, value) in &self.facts {
            answer.insert(name.clone(), cut(value, cuts, &mut cut_counts));
        }
        if let Some((name, text)) = whole {
            answer.insert((*name).to_owned(), text.clone());
        } else if self.whole.is_some() {
            cut_counts.texts += 1;
        }
        let mut omitted = 0;
        let mut included = 0;
        if let Some((name, entries)) = &self.entries {
            let remaining = entries.get(budget.skip..).unwrap_or_default();
            included = remaining.len().min(max_entries).min(budget.bytes / ENTRY_BYTES);
            omitted = remaining.len() - included;
            if !entries.is_empty() {
                let entries = remaining.iter().take(included);
                let entries = entries.map(|entry| cut_entry(entry, cuts, &mut cut_counts));
                answer.insert((*name).to_owned(), entries.collect());
            }
        }
        for (name, count) in [
            ("omitted", omitted),
            ("itemsCut", cut_counts.items),
            ("textsCut", cut_counts.texts),
        ] {
            if count > 0 {
                answer.insert(name.to_owned(), count.into());
            }
        }
        let is_cut = cut_counts.texts > 0 || cut_counts.items > 0;
        let max_bytes = usize::try_from(*BYTES.end()).unwrap_or(usize::MAX);
        let next = if omitted > 0 && included > 0 {
            Some((budget.repeat_with)("skip", (budget.skip + included).into()))
        } else if budget.bytes < max_bytes && (omitted > 0 || (is_cut && self.next.is_none())) {
            Some((budget.repeat_with)("maxBytes", max_bytes.into()))
        } else {
            self.next.clone()
        };
        if let Some(next) = next.filter(|next| length(next) <= budget.bytes / 2) {
            answer.insert("next".to_owned(), next);
        }
        Value::Object(answer)
    }
}

/// Cuts an entry: the texts and lists of its first fields. Counts the fields that it omits as items.
fn cut_entry(entry: &Value, cuts: Cuts, cut_counts: &mut CutCounts) -> Value {
    let Some(fields) = entry.as_object().filter(|fields| fields.len() > cuts.fields) else {
        return cut(entry, cuts, cut_counts);
    };
    cut_counts.items += fields.len() - cuts.fields;
    let kept = fields.iter().take(cuts.fields);
    let kept = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    cut(&Value::Object(kept), cuts, cut_counts)
}

/// The bytes of a value as compact JSON.
pub(crate) fn length(value: &Value) -> usize {
    value.to_string().len()
}

/// The characters of the longest text or name of a value.
fn longest_text(value: &Value) -> usize {
    let longest = |values: &mut dyn Iterator<Item = usize>| values.max().unwrap_or(0);
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(values) => longest(&mut values.iter().map(longest_text)),
        Value::Object(fields) => longest(
            &mut fields
                .iter()
                .map(|(name, value)| name.chars().count().max(longest_text(value))),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Removes invisible characters from all texts and names of a value, and nulls.
fn cleaned(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(&text)),
        Value::Array(values) => values.into_iter().map(cleaned).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            fields
                .map(|(name, value)| (visible(&name), cleaned(value)))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Cuts the texts and lists of a value, and counts the cuts.
fn cut(value: &Value, cuts: Cuts, cut_counts: &mut CutCounts) -> Value {
    match value {
        Value::String(text) => match shorten(text, cuts.texts) {
            Some(short) => {
                cut_counts.texts += 1;
                Value::String(short)
            }
            None => Value::String(text.clone()),
        },
        Value::Array(values) => {
            cut_counts.items += values.len().saturating_sub(cuts.items);
            let values = values.iter().take(cuts.items);
            values.map(|value| cut(value, cuts, cut_counts)).collect()
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let name = shorten(name, cuts.texts).unwrap_or_else(|| name.clone());
                (name, cut(value, cuts, cut_counts))
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
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

    fn repeat_with(name: &str, value: Value) -> Value {
        json!({name: value})
    }

    fn fit(draft: Draft, bytes: usize, skip: usize) -> Value {
        let repeat_with = &repeat_with;
        draft
            .fit(&Budget {
                bytes,
                skip,
                repeat_with,
            })
            .answer
    }

    fn count(answer: &Value) -> usize {
        answer["tests"].as_array().map_or(0, Vec::len)
    }

    #[test]
    fn an_answer_that_fits_is_shown_whole() {
        let answer = fit(draft(2, 10), 1_000, 0);
        assert_eq!(count(&answer), 2);
        assert_eq!(
            (answer.get("omitted"), answer.get("next"), answer.get("nothing")),
            (None, None, None)
        );
        let answer = fit(draft(1, 25_000), 32_000, 0);
        assert_eq!(answer["tests"][0]["message"].as_str().map(str::len), Some(25_000));
    }

    #[test]
    fn texts_are_cut_before_entries_are_left_out() {
        let answer = fit(draft(4, 1_900), 4_000, 0);
        assert_eq!(count(&answer), 4);
        assert_eq!(
            (&answer["textsCut"], &answer["next"]),
            (&json!(4), &json!({"maxBytes": 32_000}))
        );
        let answer = fit(draft(400, 1_900), 4_000, 0);
        let returned = count(&answer);
        assert!((5..400).contains(&returned));
        assert_eq!(answer["omitted"], 400 - returned);
        assert_eq!(answer["next"], json!({"skip": returned}));
    }

    #[test]
    fn inner_lists_are_cut_after_the_third_item() {
        let signals = |count: usize| draft(1, 10).fact("signals", vec![json!("s".repeat(150)); count]);
        let answer = fit(signals(6), 2_000, 0);
        assert_eq!(answer["signals"].as_array().map(Vec::len), Some(6));
        let answer = fit(signals(20), 2_000, 0);
        assert_eq!(answer["signals"].as_array().map(Vec::len), Some(3));
        assert_eq!((&answer["itemsCut"], count(&answer)), (&json!(17), 1));
        assert_eq!(answer["next"], json!({"maxBytes": 32_000}));
    }

    #[test]
    fn following_next_shows_every_entry_once() {
        for bytes in [1_000, 4_000, 32_000] {
            let (mut skip, mut received) = (0, 0);
            loop {
                let answer = fit(draft(200, 300), bytes, skip);
                for entry in answer["tests"].as_array().unwrap() {
                    assert_eq!(entry["test"], format!("test {received}"));
                    received += 1;
                }
                let Some(next) = answer["next"]["skip"].as_u64() else {
                    break;
                };
                assert_eq!(next, received);
                skip = usize::try_from(next).unwrap();
            }
            assert_eq!(received, 200);
        }
    }

    #[test]
    fn the_smallest_answer_names_an_entry_and_continues_behind_it() {
        let field = |index: usize| (format!("field {index}"), json!("v".repeat(60)));
        let entry = |index: usize| {
            let name = ("test".to_owned(), json!(format!("test {index}")));
            Value::Object(std::iter::once(name).chain((0..20).map(field)).collect())
        };
        let facts = json!({"run": "r".repeat(300), "gate": "g".repeat(200)});
        let draft = Draft::default()
            .fact("facts", facts)
            .entries("tests", (0..9).map(entry).collect());
        let answer = fit(draft, 1_000, 0);
        assert_eq!(answer["tests"][0]["test"], "test 0");
        assert_eq!(answer["next"], json!({"skip": count(&answer)}));
        assert!(answer["itemsCut"].as_u64() >= Some(16), "{answer}");
    }

    #[test]
    fn a_text_is_shown_whole_or_not_at_all() {
        let whole = |bytes| fit(draft(3, 900).whole("prompt", Some("p".repeat(1_500))), bytes, 0);
        assert_eq!(whole(2_500)["prompt"].as_str().map(str::len), Some(1_500));
        let answer = whole(1_400);
        assert_eq!(answer.get("prompt"), None);
        assert_eq!(answer["next"], json!({"maxBytes": 32_000}));
    }

    #[test]
    fn names_of_fields_are_made_visible() {
        let answer = fit(
            Draft::default().fact("outcomes", json!({"ma\u{202e}in": "P"})),
            1_000,
            0,
        );
        assert_eq!(answer["outcomes"], json!({"main": "P"}));
    }

    proptest! {
        #[test]
        fn no_answer_is_longer_than_its_budget(
            entries in 0usize..60, text in 0usize..5_000, facts in 0usize..5_000, name in 0usize..3_000,
            limit in 1_000usize..32_000, skip in 0usize..80, next in 0usize..40_000,
        ) {
            let draft = draft(entries, text)
                .fact("long", "\u{1}\"".repeat(facts))
                .fact("names", json!({"n".repeat(name): 1}))
                .whole("prompt", Some("\"".repeat(text)));
            let repeat_with = |_: &str, _: Value| json!("a".repeat(next));
            let repeat_with = &repeat_with;
            let FittedAnswer { answer, text } = draft.fit(&Budget { bytes: limit, skip, repeat_with });
            prop_assert!(text.len() <= limit);
            prop_assert_eq!(answer.to_string(), text);
        }
    }
}
