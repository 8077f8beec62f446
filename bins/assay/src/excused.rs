//! The file `.assay/excused.toml` of a checkout: failures that a team accepts until a day.

use std::path::Path;

use anyhow::Context as _;
use assay_cli_job::gate::excuses::Excuse;
use assay_cli_local::sources::{owners, text};
use assay_cli_terminal::misuse::Misuse;
use assay_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use time::{Date, Month, UtcDateTime};
use toml::value::Datetime;

/// The file, from the root of the checkout.
pub(crate) const PATH: &str = ".assay/excused.toml";

/// The file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExcusedFile {
    #[serde(default)]
    pub(crate) excused: Vec<Entry>,
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
    pub(crate) until: Datetime,
}

/// The excuses of the repository that contains this folder, or of the folder itself; none without the file.
pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<Vec<Excuse>>> {
    let root = owners::repository(folder).unwrap_or_else(|| folder.to_owned());
    let path = root.join(PATH);
    if !path.exists() {
        return Ok(None);
    }
    let text = text::read(&path, 1).with_context(|| format!("{PATH} is not read"))?;
    let file: ExcusedFile = toml::from_str(&text).map_err(|error| {
        let at = error.span().unwrap_or_default().start;
        let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        Misuse(format!("{PATH}, line {line}: {}", error.message()))
    })?;
    let excuses: Result<Vec<Excuse>, Misuse> = file.excused.into_iter().map(Entry::excuse).collect();
    Ok(Some(excuses?))
}

impl Entry {
    fn excuse(self) -> Result<Excuse, Misuse> {
        let wrong = |what: &str| Misuse(format!("{PATH}, {:?}: {what}", self.test));
        let texts = [
            ("test", &self.test),
            ("fingerprint", &self.fingerprint),
            ("owner", &self.owner),
            ("reason", &self.reason),
            ("ticket", &self.ticket),
        ];
        if let Some((name, _)) = texts.iter().find(|(_, text)| text.trim().is_empty()) {
            return Err(wrong(&format!("{name} is empty")));
        }
        let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
        if self.fingerprint.len() != 32 || !self.fingerprint.chars().all(is_digit) {
            return Err(wrong(
                "fingerprint is not one of an error, which has 32 digits of 0 to 9 and a to f",
            ));
        }
        let ends = end_of(&self.until).ok_or_else(|| wrong("until is no day such as 2026-12-20"))?;
        Ok(Excuse {
            until: self.until.to_string(),
            ends,
            test: self.test,
            file: self.file,
            fingerprint: self.fingerprint,
            owner: self.owner,
            reason: self.reason,
            ticket: self.ticket,
        })
    }
}

/// The end of a day in UTC; none for a date with a time.
fn end_of(day: &Datetime) -> Option<Timestamp> {
    let date = day.date.filter(|_| day.time.is_none() && day.offset.is_none())?;
    let month = Month::try_from(date.month).ok()?;
    let date = Date::from_calendar_date(i32::from(date.year), month, date.day).ok()?;
    let starts = UtcDateTime::new(date, time::Time::MIDNIGHT).unix_timestamp();
    Some(Timestamp::from_unix_ms(starts.checked_mul(1_000)?).plus_days(1))
}

/// The day that is some days after a time, in UTC.
pub(crate) fn day_after(now: Timestamp, days: i64) -> anyhow::Result<Datetime> {
    let at = UtcDateTime::from_unix_timestamp(now.plus_days(days).unix_ms().div_euclid(1_000))?;
    let text = format!("{:04}-{:02}-{:02}", at.year(), u8::from(at.month()), at.day());
    text.parse().context("the day is no date")
}
