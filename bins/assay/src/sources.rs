//! The files of an import: named, matched by a pattern, found in a folder, or read from standard input.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use assay_domain::timestamp::Timestamp;
use assay_reports::{Format, SourceFile};
use rayon::prelude::*;
use walkdir::WalkDir;

use crate::{
    cli::Global,
    progress::{self, Unit},
};

/// Most files that one import looks at.
const MOST_FILES: usize = 50_000;
/// Largest file that is read, in bytes.
const LARGEST_FILE: u64 = 512 << 20;
/// How many skipped files are named before the rest is only counted.
const MOST_NAMED: usize = 10;
/// Suffixes of files that a walk looks into; others cannot be reports.
const SUFFIXES: &[&str] = &["xml", "json", "jsonl", "ndjson", "trx", "gz"];
/// Folders that a walk does not enter: what they hold was not written by the run.
const FOREIGN: &[&str] = &["node_modules", "__pycache__"];

/// Reads the reports that `paths` name. What a folder holds beside reports is skipped with a word on standard
/// error; a file that was named must be a report.
pub(crate) fn read(
    global: &Global,
    paths: &[PathBuf],
    format: Option<Format>,
) -> anyhow::Result<Vec<SourceFile>> {
    let candidates = candidates(paths, &[])?;
    let files = u64::try_from(candidates.len())?;
    let bar = progress::bar(global, "reading", files, Unit::Things("files"));
    let read: anyhow::Result<Vec<(SourceFile, bool)>> = candidates
        .par_iter()
        .map(|candidate| {
            let file = candidate.read()?;
            let is_report = !candidate.found
                || format.is_some()
                || assay_reports::looks_like_report(&file.bytes).is_some();
            bar.inc(1);
            Ok((file, is_report))
        })
        .collect();
    bar.finish_and_clear();
    let (files, others): (Vec<_>, Vec<_>) = read?.into_iter().partition(|(_, is_report)| *is_report);
    let files: Vec<SourceFile> = files.into_iter().map(|(file, _)| file).collect();
    let skipped: Vec<String> = others
        .into_iter()
        .map(|(file, _)| file.name)
        .filter(|name| !assay_reports::is_beside_allure(name))
        .collect();
    tell_skipped(&skipped);
    ensure!(!files.is_empty(), "no test report was found in {}", listed(paths));
    Ok(files)
}

/// A file to look at.
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    /// Whether a walk found it, rather than the user naming it.
    pub(crate) found: bool,
}

impl Candidate {
    pub(crate) fn read(&self) -> anyhow::Result<SourceFile> {
        if self.path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            io::stdin()
                .lock()
                .take(LARGEST_FILE + 1)
                .read_to_end(&mut bytes)
                .context("reading standard input")?;
            ensure!(
                u64::try_from(bytes.len())? <= LARGEST_FILE,
                "standard input exceeds {} MiB",
                LARGEST_FILE >> 20
            );
            return Ok(SourceFile {
                name: "-".to_owned(),
                bytes,
                modified: None,
            });
        }
        let name = self.path.display().to_string();
        let metadata = fs::metadata(&self.path).with_context(|| name.clone())?;
        ensure!(
            metadata.len() <= LARGEST_FILE,
            "{name}: exceeds {} MiB",
            LARGEST_FILE >> 20
        );
        let bytes = fs::read(&self.path).with_context(|| name.clone())?;
        let modified = metadata
            .modified()
            .ok()
            .map(|at| Timestamp::from(time::OffsetDateTime::from(at)));
        Ok(SourceFile {
            name,
            bytes,
            modified,
        })
    }
}

/// Every file that the paths name, each once, in a fixed order. A walk also looks into files with these suffixes.
pub(crate) fn candidates(paths: &[PathBuf], suffixes: &[&str]) -> anyhow::Result<Vec<Candidate>> {
    let mut all: Vec<Candidate> = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" || path.is_file() {
            all.push(Candidate {
                path: path.clone(),
                found: false,
            });
        } else if path.is_dir() {
            walk(path, suffixes, &mut all)?;
        } else if path.exists() {
            // A named pipe, as a shell's process substitution makes it.
            all.push(Candidate {
                path: path.clone(),
                found: false,
            });
        } else {
            matching(path, suffixes, &mut all)?;
        }
        ensure!(
            all.len() <= MOST_FILES,
            "more than {MOST_FILES} files; name fewer"
        );
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|candidate| seen.insert(candidate.path.clone()));
    Ok(all)
}

/// The files of a folder that may be reports, by name.
fn walk(folder: &Path, suffixes: &[&str], into: &mut Vec<Candidate>) -> anyhow::Result<()> {
    let entries = WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            entry.depth() == 0 || !(name.starts_with('.') || FOREIGN.contains(&name.as_ref()))
        });
    for entry in entries {
        let entry = entry?;
        let suffix = entry
            .path()
            .extension()
            .and_then(|suffix| suffix.to_str())
            .unwrap_or_default();
        let mut known = SUFFIXES.iter().chain(suffixes);
        if entry.file_type().is_file() && known.any(|known| suffix.eq_ignore_ascii_case(known)) {
            into.push(Candidate {
                path: entry.into_path(),
                found: true,
            });
            ensure!(
                into.len() <= MOST_FILES,
                "{}: more than {MOST_FILES} files; name fewer",
                folder.display()
            );
        }
    }
    Ok(())
}

/// The files that a pattern matches, folders walked.
fn matching(pattern: &Path, suffixes: &[&str], into: &mut Vec<Candidate>) -> anyhow::Result<()> {
    let text = pattern.to_string_lossy();
    let before = into.len();
    if text.contains(['*', '?', '[']) {
        for path in glob::glob(&text).with_context(|| format!("{text}: not a pattern"))? {
            let path = path?;
            if path.is_dir() {
                walk(&path, suffixes, into)?;
            } else {
                into.push(Candidate { path, found: false });
            }
        }
        ensure!(into.len() > before, "{text}: no file matches");
        return Ok(());
    }
    bail!("{text}: no such file or folder")
}

pub(crate) fn tell_skipped(skipped: &[String]) {
    for name in skipped.iter().take(MOST_NAMED) {
        eprintln!("assay: skipped {name}: no test report");
    }
    if let Some(more) = skipped.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
        eprintln!("assay: skipped {more} more files that are no test reports");
    }
}

fn listed(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths
        .iter()
        .take(MOST_NAMED)
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}
