//! Does the steps of a case with the real programs, in a copy of its folder.

use std::{fs, path::Path, process::Command};

use assay_testkit::{ServedWorld, text};
use serde_json::Value;
use tempfile::TempDir;
use time::{Duration, OffsetDateTime, macros::date};
use walkdir::WalkDir;

use crate::outcome::{Answer, Outcome};

/// The day for which the dates in the reports were written.
const WRITTEN: time::Date = date!(2026 - 11 - 26);

pub(crate) fn run<'w>(world: &'w ServedWorld, case: &Path, expected: &'w Value) -> Outcome<'w> {
    let steps = expected["steps"].as_array().expect("steps is a list");
    let copy = copied(case, steps.iter().any(|step| step["cmd"] != "analyze"));
    let folder = copy.path().display().to_string();
    let name = case.file_name().expect("a name").to_string_lossy();
    let project = text(
        &world.cli.json(&[
            "project",
            "create",
            "--org",
            "Shop",
            &name,
            "--stable-branch",
            "main",
        ])["id"],
    );
    let mut outcome = Outcome::new(world, project, copy);
    let repeated = |step: &'w Value| {
        let times = step["times"].as_u64().unwrap_or(1);
        (1..=times).map(move |time| (step, time.to_string()))
    };
    for (step, time) in steps.iter().flat_map(repeated) {
        let is_plain = steps.iter().any(|step| step["plainKey"] == true);
        let words = |field: &str| {
            let words = step[field].as_array().expect("a list of words").iter();
            words
                .map(|word| {
                    word.as_str()
                        .expect("a word")
                        .replace("@@DIR@@", &folder)
                        .replace("@@N@@", &time)
                })
                .collect::<Vec<_>>()
        };
        let command = step["cmd"].as_str().expect("cmd is a word");
        let mut process = world.cli.command(&[command, "--json"]);
        match command {
            "import" => drop(process.args(["--project", &outcome.project])),
            "upload" | "run" => upload(&mut process, world, &outcome.project, is_plain),
            _ => {}
        }
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            process.env(name, value.as_str().expect("a text"));
        }
        process
            .args(words("flags"))
            .args(words("files"))
            .current_dir(&folder);
        outcome.answers.push(Answer::of(
            command,
            &process.output().expect("the program starts"),
        ));
    }
    outcome.read();
    outcome
}

fn upload(process: &mut Command, world: &ServedWorld, project: &str, is_plain: bool) {
    let backfill: &[&str] = if is_plain { &[] } else { &["--backfill"] };
    let key = world
        .cli
        .json(&[&["key", "create-ingest", "--project", project], backfill].concat());
    process
        .env_remove("ASSAY_DATABASE_URL")
        .env("ASSAY_INGEST_URL", world.server.ingest().base())
        .env("ASSAY_INGEST_KEY", text(&key["key"]));
}

/// A copy of the case's files. Its dates are moved by whole days, as if it had been written today. `@@LOCAL+9@@` is the
/// time three minutes ago in UTC+9.
fn copied(case: &Path, moves_dates: bool) -> TempDir {
    let copy = tempfile::tempdir().expect("a temporary folder");
    for entry in WalkDir::new(case).sort_by_file_name() {
        let entry = entry.expect("a readable folder");
        let to = copy
            .path()
            .join(entry.path().strip_prefix(case).expect("below the folder"));
        if entry.file_type().is_dir() {
            fs::create_dir_all(&to).expect("a folder");
            continue;
        }
        let bytes = fs::read(entry.path()).expect("a readable file");
        let bytes = match String::from_utf8(bytes) {
            Ok(text) if moves_dates => placed(&moved(&text)).into_bytes(),
            Ok(text) => text.into_bytes(),
            Err(other) => other.into_bytes(),
        };
        fs::write(&to, bytes).expect("a file");
    }
    copy
}

/// The text with each date of November 2026 moved to as many days before today as it was before [`WRITTEN`].
fn moved(text: &str) -> String {
    let days = OffsetDateTime::now_utc().date() - WRITTEN;
    let mut moved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let replaced = FORMS.iter().find_map(|(form, write)| {
            let is_number = moved.ends_with(|c: char| c.is_ascii_digit());
            let (length, at) = form(rest).filter(|_| !is_number)?;
            Some((length, write(at + days)))
        });
        let (length, written) = replaced.unwrap_or_else(|| (next.len_utf8(), next.to_string()));
        moved.push_str(&written);
        rest = &rest[length..];
    }
    moved
}

type Form = (
    fn(&str) -> Option<(usize, OffsetDateTime)>,
    fn(OffsetDateTime) -> String,
);

/// How reports write a day: `2026-11-25`, `20261125 10:`, `11/25/2026`, and milliseconds.
const FORMS: &[Form] = &[
    (
        |text| {
            Some((
                10,
                november(text.strip_prefix("2026-11-")?.get(..2)?, text.get(10..))?,
            ))
        },
        |at| at.date().to_string(),
    ),
    (
        |text| {
            let is_time = text.as_bytes().get(8) == Some(&b' ') && text.as_bytes().get(11) == Some(&b':');
            Some((8, november(text.strip_prefix("202611")?.get(..2)?, None)?)).filter(|_| is_time)
        },
        |at| at.date().to_string().replace('-', ""),
    ),
    (
        |text| {
            let day = text.strip_prefix("11/")?.get(..2)?;
            Some((10, november(day, None)?)).filter(|_| text.get(5..10) == Some("/2026"))
        },
        |at| format!("{:02}/{:02}/{}", u8::from(at.month()), at.day(), at.year()),
    ),
    (
        |text| {
            let digits = text
                .get(..13)
                .filter(|digits| digits.starts_with("179") && digits.bytes().all(|b| b.is_ascii_digit()))?;
            let is_longer = text[13..].starts_with(|c: char| c.is_ascii_digit());
            let at =
                OffsetDateTime::from_unix_timestamp_nanos(digits.parse::<i128>().ok()? * 1_000_000).ok()?;
            Some((13, at)).filter(|_| !is_longer)
        },
        |at| (at.unix_timestamp_nanos() / 1_000_000).to_string(),
    ),
];

fn november(day: &str, rest: Option<&str>) -> Option<OffsetDateTime> {
    let is_longer = rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let date = time::Date::from_calendar_date(2026, time::Month::November, day.parse().ok()?).ok()?;
    (!is_longer).then(|| date.midnight().assume_utc())
}

/// The text with its placeholders replaced.
fn placed(text: &str) -> String {
    let mut placed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("@@") {
        placed.push_str(before);
        let Some((zone, after)) = after.split_once("@@").filter(|(word, _)| word.contains("LOCAL+")) else {
            placed.push_str("@@");
            rest = after;
            continue;
        };
        let (kind, hours) = zone.split_once('+').expect("a zone");
        let at =
            OffsetDateTime::now_utc() - Duration::minutes(3) + Duration::hours(hours.parse().expect("hours"));
        let (day, time) = (
            at.date().to_string(),
            format!("{:02}:{:02}:{:02}.000", at.hour(), at.minute(), at.second()),
        );
        placed.push_str(&match kind {
            "RLOCAL" => format!("{} {time}", day.replace('-', "")),
            _ => format!("{day}T{time}"),
        });
        rest = after;
    }
    placed + rest
}
