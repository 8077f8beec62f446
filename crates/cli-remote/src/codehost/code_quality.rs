//! A Code Quality report for the widget of GitLab's merge requests, which needs no token.

use std::{fs, path::Path};

use anyhow::Context as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::codehost::comment::Annotation;

/// The file that the job keeps as its artifact `codequality`.
pub(crate) const FILE: &str = "gl-codequality.json";

/// Writes the failures of a run that have a file. Returns their number. An empty report clears the widget.
pub(crate) fn write(folder: &Path, annotations: &[Annotation], run_id: &str) -> anyhow::Result<usize> {
    let of_run = annotations
        .iter()
        .filter(|annotation| annotation.run_id == run_id);
    let entries: Vec<Value> = of_run.filter_map(entry).collect();
    let path = folder.join(FILE);
    fs::write(&path, Value::from(entries.clone()).to_string()).with_context(|| path.display().to_string())?;
    Ok(entries.len())
}

fn entry(of: &Annotation) -> Option<Value> {
    let file = of.file.as_ref()?;
    let hash = Sha256::new()
        .chain_update(file)
        .chain_update([0])
        .chain_update(&of.title);
    let fingerprint: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Some(json!({
        "description": format!("{}: {}", of.title, of.message),
        "check_name": "assay",
        "fingerprint": fingerprint,
        "severity": if of.is_mine { "major" } else { "info" },
        "location": {"path": file, "lines": {"begin": of.line.unwrap_or(1)}},
    }))
}
