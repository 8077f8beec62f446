//! What a backfill read, sent and left out.

use assay_cli_terminal::{message, output};
use serde::Serialize;

/// How many notes on single files are printed.
const MOST_NOTES: u64 = 10;

/// What a backfill read, sent and left out.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    pub(super) runs: u64,
    pub(super) runs_with_reports: u64,
    /// Results of tests that were read.
    pub(super) tests: u64,
    /// Bytes that were downloaded.
    pub(super) bytes: u64,
    /// Reports that were sent and stored now.
    pub(super) stored: u64,
    /// Reports that the project already had.
    pub(super) unchanged: u64,
    /// Reports that an earlier start of this backfill stored.
    pub(super) known: u64,
    /// Reports that the server refused.
    pub(super) refused: u64,
    /// Files that the CI service has deleted.
    pub(super) expired: u64,
    /// Files that cannot be read.
    pub(super) unreadable: u64,
}

impl Counts {
    /// Counts a file that cannot be read, and says why.
    pub(super) fn unreadable(&mut self, note: &str) {
        self.unreadable += 1;
        self.note(note);
    }

    /// Notes what was skipped, unless there is much of it.
    pub(super) fn note(&self, note: &str) {
        match self.unreadable + self.refused {
            0..=MOST_NOTES => message!("skipped {note}"),
            number if number == MOST_NOTES + 1 => message!("skipped more; the summary counts them"),
            _ => {}
        }
    }

    pub(super) fn in_words(&self) -> String {
        let listed = |noun: &str, counts: &[(u64, &str)]| {
            let counts = counts.iter().filter(|(number, _)| *number > 0);
            let words: Vec<_> = counts.map(|(number, what)| format!("{number} {what}")).collect();
            match words.is_empty() {
                true => String::new(),
                false => format!("; {noun}: {}", words.join(", ")),
            }
        };
        let reports = [
            (self.stored, "stored"),
            (self.unchanged, "there already"),
            (self.known, "sent earlier"),
            (self.refused, "refused"),
        ];
        let files = [
            (self.expired, "deleted by the CI service"),
            (self.unreadable, "not readable"),
        ];
        let have = match self.runs_with_reports {
            1 => "1 has".to_owned(),
            number => format!("{number} have"),
        };
        format!(
            "Of {}, {have} reports{}{}.",
            output::count(self.runs, "run"),
            listed("reports", &reports),
            listed("files", &files),
        )
    }
}
