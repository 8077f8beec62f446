//! The file `.assay/excused.toml` of a checkout: failures that a team accepts until a day.

use std::{fmt, path::Path};

use anyhow::Context as _;
use assay_cli_job::gate::excuses::Excuse;
use assay_cli_local::sources::{owners, text};
use assay_cli_terminal::misuse::Misuse;
use assay_domain::timestamp::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
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
    #[serde(deserialize_with = "test")]
    pub(crate) test: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    #[serde(deserialize_with = "fingerprint")]
    pub(crate) fingerprint: String,
    #[serde(deserialize_with = "owner")]
    pub(crate) owner: String,
    #[serde(deserialize_with = "reason")]
    pub(crate) reason: String,
    #[serde(deserialize_with = "ticket")]
    pub(crate) ticket: String,
    pub(crate) until: Day,
}

/// A day in UTC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Day {
    date: Datetime,
    ends: Timestamp,
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
    let excuse = |entry: Entry| Excuse {
        ends: entry.until.ends,
        until: entry.until.to_string(),
        test: entry.test,
        file: entry.file,
        fingerprint: entry.fingerprint,
        owner: entry.owner,
        reason: entry.reason,
        ticket: entry.ticket,
    };
    Ok(Some(file.excused.into_iter().map(excuse).collect()))
}

/// Readers of texts that are not empty, by the names of their fields.
macro_rules! filled {
    ($($field:ident),+) => {
        $(fn $field<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
            let text = String::deserialize(value)?;
            match text.trim().is_empty() {
                true => Err(D::Error::custom(concat!(stringify!($field), " is empty, expected a text"))),
                false => Ok(text),
            }
        })+
    };
}

filled!(test, owner, reason, ticket);

fn fingerprint<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    let text = String::deserialize(value)?;
    match text.len() == 32 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')) {
        true => Ok(text),
        false => Err(D::Error::custom(
            "fingerprint is none of an error, which has 32 digits of 0 to 9 and a to f",
        )),
    }
}

impl Day {
    /// None for a date with a time.
    fn new(date: Datetime) -> Option<Self> {
        let begins: Timestamp = format!("{date}T00:00:00Z").parse().ok()?;
        Some(Self {
            date,
            ends: begins.plus_days(1),
        })
    }

    /// The day that is some days after a time.
    pub(crate) fn after(now: Timestamp, days: i64) -> Option<Self> {
        let at = now.plus_days(days).to_string();
        Self::new(at.split_once('T')?.0.parse().ok()?)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.date.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let date = Datetime::deserialize(value).ok();
        date.and_then(Self::new).ok_or_else(|| {
            D::Error::custom("until is no day, expected one without quotes such as 2026-12-20")
        })
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.date.serialize(serializer)
    }
}
