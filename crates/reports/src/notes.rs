//! What a reader notices in a file beside its results: words and numbers that it cannot be sure of.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use assay_domain::{attempt::AttemptStatus, run::RunState, timestamp::Timestamp};

use crate::{input::Input, outcome, report::Report, text, time};

/// The notes about one report.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The number of results for each unknown word.
    unknown_words: RefCell<BTreeMap<String, u64>>,
    /// The first number whose comma may separate thousands or decimals.
    ambiguous_number: RefCell<Option<String>>,
    /// Whether a time has a zone, and whether one has none.
    has_zone: Cell<bool>,
    lacks_zone: Cell<bool>,
}

/// Different unknown words that are counted for one report.
const MOST_WORDS: usize = 20;
/// Characters of a word in a warning.
const WORD_CHARS: usize = 60;

impl Notes {
    /// Notes a result with an unknown word.
    pub(crate) fn unknown_word(&self, word: &str) {
        let word: String = text::plain(word).trim().chars().take(WORD_CHARS).collect();
        let mut words = self.unknown_words.borrow_mut();
        if words.len() < MOST_WORDS || words.contains_key(&word) {
            *words.entry(word).or_default() += 1;
        }
    }

    /// Notes that all times of the report have a zone, because its tool writes UTC without saying so.
    pub(crate) fn times_are_utc(&self) {
        self.has_zone.set(true);
    }

    /// Moves the notes into the report they are about. Returns whether no time of it has a zone, although it has times.
    pub(crate) fn add_to(&self, report: &mut Report, file: &str) -> bool {
        for (word, count) in self.unknown_words.take() {
            let results = if count == 1 {
                "1 result has".to_owned()
            } else {
                format!("{count} results have")
            };
            let status = match word.as_str() {
                "" => "no status".to_owned(),
                element if element.starts_with('<') => format!("the unknown outcome {element}"),
                word => format!("the unknown status {word:?}"),
            };
            report.state = RunState::Interrupted;
            report.warnings.push(format!(
                "{file}: {results} {status}; stored as skipped, and the run as incomplete"
            ));
        }
        if let Some(number) = self.ambiguous_number.take() {
            report.warnings.push(format!(
                "{file}: the comma of {number:?} was read as a separator of thousands; write decimals with a point"
            ));
        }
        self.lacks_zone.take() & !self.has_zone.take()
    }
}

impl Input<'_> {
    /// The status that a word of the report means. Words of the format take precedence over those that all formats
    /// share. An unknown word means skipped, and the report gets a warning.
    pub(crate) fn status(&self, words: outcome::Words, word: &str) -> AttemptStatus {
        outcome::status(words, word).unwrap_or_else(|| {
            self.notes.unknown_word(word);
            AttemptStatus::Skipped
        })
    }

    /// The point in time of a text; one without a zone is read as UTC for now.
    pub(crate) fn time(&self, text: &str) -> Option<Timestamp> {
        let (at, has_zone) = time::lenient(text)?;
        let note = if has_zone {
            &self.notes.has_zone
        } else {
            &self.notes.lacks_zone
        };
        note.set(true);
        Some(at)
    }

    /// Whole milliseconds of a duration in seconds as XML writes it: `5.3e-05`, `1,234.5`, `0,5`, `00:00:01.5`.
    pub(crate) fn seconds_to_ms(&self, text: &str) -> Option<u64> {
        let (ms, is_ambiguous) = time::seconds_to_ms(text)?;
        if is_ambiguous {
            self.notes
                .ambiguous_number
                .borrow_mut()
                .get_or_insert_with(|| text.trim().to_owned());
        }
        Some(ms)
    }
}
