//! The server's answer in words.

use assay_cli_terminal::{changes, output, terminal};
use assay_domain::{
    recording::{ReplacedResults, VerdictChange, VerdictChanges},
    run::Counts,
    verdict::VerdictStatus,
};
use assay_reports::shown_name;
use serde::Deserialize;
use serde_json::Value;

/// The printed parts of an answer. A field that is missing gets a default, because the report is already stored.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredAnswer {
    project: Project,
    run_id: Option<String>,
    run_number: Option<i64>,
    shard_id: Option<String>,
    url: Option<String>,
    status: Option<String>,
    #[serde(with = "ReadCounts")]
    counts: Counts,
    effect: String,
    continues: bool,
    replaced: Option<Replaced>,
    values: Vec<Value>,
    verdicts_changed: Vec<Change>,
    verdicts_changed_total: Option<u64>,
    warnings: Vec<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Replaced {
    tests: u32,
    failed: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Project {
    name: String,
}

/// Deserializes [`Counts`].
#[derive(Deserialize)]
#[serde(remote = "Counts")]
struct ReadCounts {
    #[serde(default)]
    total: u32,
    #[serde(default)]
    passed: u32,
    #[serde(default)]
    failed: u32,
    #[serde(default)]
    skipped: u32,
    #[serde(default)]
    recovered: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Change {
    test_name: String,
    #[serde(default)]
    file_path: Option<String>,
    from: String,
    to: String,
}

impl Change {
    /// Converts the change. None if it has a verdict of a newer server that this program does not know.
    fn known(&self) -> Option<VerdictChange> {
        Some(VerdictChange {
            test_name: shown(&self.test_name),
            file_path: self.file_path.as_deref().map(shown),
            from: self.from.parse::<VerdictStatus>().ok()?,
            to: self.to.parse::<VerdictStatus>().ok()?,
        })
    }
}

/// A text of the server on one line, which cannot command a terminal or a CI service.
fn shown(text: &str) -> String {
    terminal::one_line(&shown_name(text))
}

/// The warnings of an answer.
pub fn warnings(answer: &Value) -> Vec<String> {
    let stored = StoredAnswer::deserialize(answer).unwrap_or_default();
    stored.warnings.iter().map(|warning| shown(warning)).collect()
}

/// Describes the answer to a report that was stored.
pub fn in_words(answer: &Value) -> String {
    let stored = StoredAnswer::deserialize(answer).unwrap_or_default();
    let project = shown(&stored.project.name);
    let text = |text: &Option<String>| text.as_deref().map(shown).unwrap_or_default();
    let ended = match stored.status.as_deref() {
        Some(status) => shown(status),
        None => "is not complete yet".to_owned(),
    };
    let shard = match stored.run_id == stored.shard_id {
        true => String::new(),
        false => format!("\nshard {}", text(&stored.shard_id)),
    };
    let page = match stored.url {
        Some(_) => format!("\npage {}", text(&stored.url)),
        None => String::new(),
    };
    let replaced = stored
        .replaced
        .map(|Replaced { tests, failed }| ReplacedResults { tests, failed });
    let relation = match stored.effect.as_str() {
        "unchanged" => "\nIt was already stored; nothing changed".to_owned(),
        _ => output::relation(stored.continues, replaced),
    };
    let changes: Vec<_> = stored.verdicts_changed.iter().filter_map(Change::known).collect();
    let count = u64::try_from(stored.verdicts_changed.len()).unwrap_or(u64::MAX);
    let changes = VerdictChanges {
        total: stored.verdicts_changed_total.unwrap_or(count),
        listed: changes,
    };
    format!(
        "Run {} of {project:?} {ended}: {}\nrun {}{shard}{page}{relation}{}",
        stored.run_number.unwrap_or_default(),
        output::counts(&stored.counts),
        text(&stored.run_id),
        changes::in_words(&changes)
    )
}

/// Describes the answer to `--dry-run`.
pub fn of_dry_run(answer: &Value) -> String {
    let stored = StoredAnswer::deserialize(answer).unwrap_or_default();
    let rows = stored.values.iter().map(|value| {
        let text = |name: &str| match value.get(name) {
            Some(Value::String(text)) => shown(text.lines().next().unwrap_or_default()),
            Some(Value::Null) | None => String::new(),
            Some(value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
                value.to_string()
            }
        };
        vec![text("what"), text("value"), text("from")]
    });
    format!(
        "{}\nWould store {} in {:?}; nothing was stored",
        output::table(&["VALUE", "", "FROM"], rows),
        output::counts(&stored.counts),
        shown(&stored.project.name)
    )
}
