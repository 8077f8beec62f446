//! The answer as text and JSON.

use assay_cli_terminal::{output, terminal};
use assay_domain::fix::{FixOutcome, RunMode};
use serde_json::{Value, json};

use super::Verified;

/// A mode in words.
pub(super) const fn mode_in_words(mode: RunMode) -> &'static str {
    match mode {
        RunMode::Alone => "alone",
        RunMode::WithFile => "with its file",
        RunMode::InSuite => "in its suite",
    }
}

/// A share in percent, with at most two digits behind the point.
pub(super) fn percent(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Verified {
    /// The answer in one sentence.
    pub fn headline(&self) -> String {
        let check = &self.check;
        let mode = mode_in_words(self.ran);
        let runs = output::count(check.runs, "run");
        match check.outcome {
            FixOutcome::Proved => format!(
                "proved: {runs} {mode} without a failure, so it fails in less than {} % (P .95); before, in {} %",
                percent(check.largest_rate),
                percent(self.rate_before)
            ),
            FixOutcome::StillFlaky => {
                let has_text = self
                    .failure
                    .as_ref()
                    .is_some_and(|failure| failure.fingerprint.is_some());
                let error = match (self.errors_before.is_empty(), has_text) {
                    (true, _) => "and no error of before is known",
                    (false, true) => "with an error of before",
                    (false, false) => "with an error without a text",
                };
                format!("still flaky: failed in run {} {mode}, {error}", check.runs)
            }
            FixOutcome::Differs => format!("differs: failed in run {} {mode}, with a new error", check.runs),
            FixOutcome::NotProvable if check.runs >= check.needed => {
                format!("not provable, although {runs} {mode} passed")
            }
            FixOutcome::NotProvable if !self.remarks.is_empty() => {
                format!(
                    "not provable: {} of {} needed, {mode}",
                    output::count(check.runs, "run"),
                    check.needed
                )
            }
            FixOutcome::NotProvable => format!(
                "not provable in this budget: {} needed {mode}, {} done; or {} clean builds",
                output::count(check.needed, "run"),
                check.runs,
                self.builds_needed
            ),
        }
    }

    /// For people: a sentence, then a table.
    pub fn in_words(&self) -> String {
        let check = &self.check;
        let in_percent = |rate| format!("{} %", percent(rate));
        let mut rows = vec![
            ("test", self.test.name.clone()),
            ("rate before", in_percent(self.rate_before)),
            ("low enough", in_percent(self.bound)),
        ];
        let (runs, needed, mode) = (check.runs, check.needed, mode_in_words(self.ran));
        rows.push((
            "runs",
            format!("{runs} of {needed} {mode}, {:.0} s", check.seconds),
        ));
        if check.largest_rate < 1.0 {
            rows.push((
                "rate now",
                format!("0 to {} (P .95)", in_percent(check.largest_rate)),
            ));
        }
        rows.extend(
            self.failure
                .iter()
                .map(|failure| ("error now", failure.title.clone())),
        );
        rows.extend(
            self.errors_before
                .iter()
                .map(|title| ("error before", title.clone())),
        );
        let mut text = format!("{}\n", self.headline());
        for remark in &self.remarks {
            text += &format!("  {}\n", terminal::inert(remark));
        }
        let rows = rows.into_iter().map(|(fact, value)| vec![fact.to_owned(), value]);
        text + &output::table(&["FACT", "VALUE"], rows)
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let check = &self.check;
        json!({
            "outcome": check.outcome,
            "test": self.test,
            "mode": self.ran,
            "runs": check.runs,
            "needed": check.needed,
            "buildsNeeded": self.builds_needed,
            "rateBefore": self.rate_before,
            "lowEnough": self.bound,
            "largestRate": check.largest_rate,
            "seconds": check.seconds,
            "error": self.failure.as_ref().map(|failure| json!({
                "fingerprint": failure.fingerprint,
                "title": failure.title,
                "message": failure.message,
            })),
            "errorsBefore": self.errors_before,
            "remarks": self.remarks,
        })
    }
}
