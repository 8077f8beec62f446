//! The file `.assay/excused.toml` of a checkout: failures that a team accepts until a day.

use assay_cli_job::gate::excuses::Excuse;
use assay_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use toml::{Spanned, value::Datetime};

use crate::config::{file_of_checkout, mistake};

/// The file, from the root of the checkout.
pub(crate) const PATH: &str = ".assay/excused.toml";

/// The file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExcusedFile<E> {
    #[serde(default = "Vec::new")]
    pub(crate) excused: Vec<E>,
}

/// An entry of the file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) test: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    pub(crate) fingerprint: String,
    pub(crate) owner: String,
    pub(crate) reason: String,
    pub(crate) ticket: String,
    /// A day in UTC.
    pub(crate) until: Datetime,
}

/// The excuses of the repository that contains the current folder, or of the folder itself; none without the file.
pub(crate) fn read() -> anyhow::Result<Vec<Excuse>> {
    let Some(text) = file_of_checkout(PATH)? else {
        return Ok(Vec::new());
    };
    let mistake = |at: usize, problem: &str| mistake((PATH, &text), at, problem);
    let file: Result<ExcusedFile<Spanned<Entry>>, _> = toml::from_str(&text);
    let file = file.map_err(|error| mistake(error.span().unwrap_or_default().start, error.message()))?;
    let excuse = |entry: Spanned<Entry>| {
        let at = entry.span().start;
        let excuse = entry.into_inner().excuse();
        Ok(excuse.map_err(|problem| mistake(at, &problem))?)
    };
    file.excused.into_iter().map(excuse).collect()
}

impl Entry {
    /// The excuse, or what is wrong with the entry.
    fn excuse(self) -> Result<Excuse, String> {
        let texts = [&self.test, &self.owner, &self.reason, &self.ticket];
        let names = ["test", "owner", "reason", "ticket"];
        let is_empty = |(_, text): &(_, &String)| text.trim().is_empty();
        if let Some((name, _)) = names.iter().zip(texts).find(is_empty) {
            return Err(format!("{name} is empty, expected a text"));
        }
        let is_digit = |c| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        if self.fingerprint.len() != 32 || !self.fingerprint.bytes().all(is_digit) {
            return Err(
                "fingerprint is none of an error, which has 32 digits of 0 to 9 and a to f".to_owned(),
            );
        }
        let until = self.until.to_string();
        let begins: Result<Timestamp, _> = format!("{until}T00:00:00Z").parse();
        let begins = begins
            .map_err(|_| "until is no day, expected one without a time such as 2026-12-20".to_owned())?;
        Ok(Excuse {
            ends: begins.plus_days(1),
            until,
            test: self.test,
            file: self.file,
            fingerprint: self.fingerprint,
            owner: self.owner,
            reason: self.reason,
            ticket: self.ticket,
        })
    }
}
