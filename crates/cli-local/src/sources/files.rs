//! The files of an import: named, matched by a pattern, found in a folder, or read from standard input.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context as _, ensure};
use assay_cli_terminal::progress::{Progress, Work};
use assay_domain::timestamp::Timestamp;
use assay_reports::{Format, MOST_FILE_BYTES, MOST_IMPORT_BYTES, SourceFile, shown_path};
use rayon::prelude::*;
use walkdir::WalkDir;

/// The maximum number of files of an import.
const MOST_FILES: usize = 50_000;
/// The number of skipped files that are named; the rest is only counted.
const MOST_NAMED: usize = 10;
/// The same for skipped files whose kind is recognised.
const MOST_EXPLAINED: usize = 50;
/// Suffixes of the files that a walk reads; other files cannot be reports.
const SUFFIXES: &[&str] = &["xml", "json", "jsonl", "ndjson", "trx", "tap", "zip", "gz"];
/// Further endings of file names that a walk reads: Karate's own.
const NAMES: &[&str] = &[
    assay_reports::KARATE_FEATURE_SUFFIX,
    assay_reports::KARATE_SUMMARY,
];
/// Folders that a walk does not enter, because no run writes its reports there.
const FOREIGN: &[&str] = &["node_modules", "__pycache__"];

/// Reads the reports that `paths` name. Other files of a folder are skipped with a note. A file
/// that was named must be a report.
pub fn read(
    progress: &dyn Progress,
    paths: &[PathBuf],
    format: Option<Format>,
) -> anyhow::Result<Vec<SourceFile>> {
    read_candidates(progress, &candidates(progress, paths, &[])?, paths, format)
}

/// Reads the reports among these files.
pub fn read_candidates(
    progress: &dyn Progress,
    candidates: &[Candidate],
    paths: &[PathBuf],
    format: Option<Format>,
) -> anyhow::Result<Vec<SourceFile>> {
    let files = u64::try_from(candidates.len())?;
    let reading = progress.begin(Work::ReadFiles(files));
    let budget = ByteBudget::default();
    let read: anyhow::Result<Vec<Result<SourceFile, SkippedFile>>> = candidates
        .par_iter()
        .map(|candidate| {
            let mut reason = None;
            let is_recognised = |beginning: &[u8]| {
                // What a crashed reporter left is an error of the run.
                let may_be_left = [".xml", ".json"]
                    .iter()
                    .any(|end| candidate.name().ends_with(end));
                let is_left = may_be_left && assay_reports::is_cut_off(beginning);
                let is_report = !candidate.from_walk
                    || format.is_some()
                    || is_left
                    || assay_reports::looks_like_report(beginning).is_some();
                if !is_report {
                    reason = assay_reports::why_no_report(beginning);
                }
                is_report
            };
            let file = candidate.read_if(is_recognised, &budget)?;
            reading.add(1);
            Ok(file.ok_or_else(|| SkippedFile {
                name: candidate.name(),
                reason,
            }))
        })
        .collect();
    drop(reading);
    let (mut files, mut skipped) = (Vec::new(), Vec::new());
    for file in read? {
        match file {
            Ok(file) if file.bytes.is_empty() && assay_reports::is_beside_allure(&file.name) => {}
            Ok(file) => files.push(file),
            Err(file) if assay_reports::is_beside_allure(&file.name) => {}
            Err(file) => skipped.push(file),
        }
    }
    note_skipped(progress, &skipped);
    ensure!(
        !files.is_empty(),
        "no test report was found in {}; name the files that the test runner writes",
        display_paths(paths)
    );
    Ok(files)
}

/// A file of a folder that is not a report.
pub struct SkippedFile {
    /// Its name in messages.
    pub name: String,
    /// The kind of file that its content shows, if it is known.
    pub reason: Option<String>,
}

/// A candidate file.
pub struct Candidate {
    /// Where it is; `-` for standard input.
    pub path: PathBuf,
    /// Whether a walk found it; otherwise the user named it.
    pub from_walk: bool,
}

impl Candidate {
    /// Its name in messages.
    pub fn name(&self) -> String {
        shown_path(&self.path)
    }

    /// Reads the file if it begins like a report. Only regular files are read, because a device or a named pipe may
    /// have no end.
    pub fn read_if(
        &self,
        is_recognised: impl FnOnce(&[u8]) -> bool,
        budget: &ByteBudget,
    ) -> anyhow::Result<Option<SourceFile>> {
        if self.path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            read_on(&mut io::stdin().lock(), &mut bytes, MOST_FILE_BYTES, budget)
                .context("reading standard input")?;
            return Ok(Some(SourceFile {
                name: "-".to_owned(),
                bytes,
                modified: None,
            }));
        }
        let name = self.name();
        // Opening a named pipe would block until something writes to it.
        let is_regular = fs::metadata(&self.path).with_context(|| name.clone())?.is_file();
        ensure!(
            is_regular,
            "{name}: not a regular file; pass the content of a pipe on standard input, as -"
        );
        ensure!(
            !is_of_kernel(&self.path),
            "{name}: a file of the kernel, whose content may never end; name a report"
        );
        let mut file = File::open(&self.path).with_context(|| name.clone())?;
        let metadata = file.metadata().with_context(|| name.clone())?;
        let mut bytes = Vec::new();
        read_on(&mut file, &mut bytes, assay_reports::BEGINNING, budget).with_context(|| name.clone())?;
        if !is_recognised(&bytes) {
            budget.remove(bytes.len());
            return Ok(None);
        }
        read_on(&mut file, &mut bytes, MOST_FILE_BYTES, budget).with_context(|| name.clone())?;
        let modified = metadata
            .modified()
            .ok()
            .map(|at| Timestamp::from(time::OffsetDateTime::from(at)));
        Ok(Some(SourceFile {
            name,
            bytes,
            modified,
        }))
    }
}

/// Whether a path leads into a file system of the kernel, where a regular file may block its readers for ever.
fn is_of_kernel(path: &Path) -> bool {
    let resolved = fs::canonicalize(path);
    resolved.is_ok_and(|path| ["/proc", "/sys"].iter().any(|kernel| path.starts_with(kernel)))
}

/// The bytes read so far, over all files.
#[derive(Debug, Default)]
pub struct ByteBudget(AtomicUsize);

impl ByteBudget {
    /// Adds bytes that were read. Fails if all files together exceed the limit.
    fn add(&self, bytes: usize) -> anyhow::Result<()> {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        ensure!(
            before.saturating_add(bytes) <= MOST_IMPORT_BYTES,
            "the files of this import exceed {} MiB together; import them in shards",
            MOST_IMPORT_BYTES >> 20
        );
        Ok(())
    }

    /// Subtracts bytes that were read and dropped.
    fn remove(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Reads until `into` holds `most` bytes. A file over the size limit is an error.
fn read_on(from: &mut impl Read, into: &mut Vec<u8>, most: usize, budget: &ByteBudget) -> anyhow::Result<()> {
    let before = into.len();
    let limit = (most + usize::from(most == MOST_FILE_BYTES)).saturating_sub(before);
    from.by_ref().take(u64::try_from(limit)?).read_to_end(into)?;
    ensure!(
        into.len() <= MOST_FILE_BYTES,
        "exceeds {} MiB; split the report, and import its parts as shards",
        MOST_FILE_BYTES >> 20
    );
    budget.add(into.len() - before)
}

/// Every file that the paths name, each once, in a fixed order. A walk also reads files with these suffixes. A folder
/// that cannot be read is skipped with a warning if a pattern finds it. It is an error if it is named, or lies in a
/// named folder.
pub fn candidates(
    progress: &dyn Progress,
    paths: &[PathBuf],
    suffixes: &[&str],
) -> anyhow::Result<Vec<Candidate>> {
    let mut unreadable = UnreadableFolders::default();
    let found = look_up(paths, suffixes, Absent::IsAnError, &mut unreadable);
    unreadable.note(progress);
    found
}

/// The candidate files that the paths name, and the folders that cannot be read. Such a folder is no error, and neither
/// is a path or pattern without a file.
pub fn existing(paths: &[PathBuf]) -> anyhow::Result<(Vec<Candidate>, UnreadableFolders)> {
    let mut unreadable = UnreadableFolders::default();
    let found = look_up(paths, &[], Absent::IsSkipped, &mut unreadable)?;
    Ok((found, unreadable))
}

/// The folders that could not be read, each with the reason.
#[derive(Debug, Default)]
pub struct UnreadableFolders(BTreeSet<String>);

impl UnreadableFolders {
    fn add(&mut self, path: &Path, problem: &io::Error) {
        self.0.insert(unreadable(path, problem).to_string());
    }

    /// Notes the first of these folders.
    pub fn note(&self, progress: &dyn Progress) {
        for folder in self.0.iter().take(MOST_NAMED) {
            progress.note(&format!(
                "warning: skipped a folder that cannot be read: {folder}"
            ));
        }
        let more = self.0.len().saturating_sub(MOST_NAMED);
        if more > 0 {
            progress.note(&format!(
                "warning: skipped {more} more folders that cannot be read"
            ));
        }
    }
}

/// The handling of a path or pattern without a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    IsAnError,
    IsSkipped,
}

fn look_up(
    paths: &[PathBuf],
    suffixes: &[&str],
    absent: Absent,
    unreadable: &mut UnreadableFolders,
) -> anyhow::Result<Vec<Candidate>> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" || path.is_file() {
            candidates.push(Candidate {
                path: path.clone(),
                from_walk: false,
            });
        } else if path.is_dir() {
            let skipped = (absent == Absent::IsSkipped).then_some(&mut *unreadable);
            walk(path, suffixes, skipped, &mut candidates)?;
        } else if path.exists() {
            // It is refused when it is read, with advice.
            candidates.push(Candidate {
                path: path.clone(),
                from_walk: false,
            });
        } else {
            matching(path, suffixes, absent, unreadable, &mut candidates)?;
        }
        ensure!(
            candidates.len() <= MOST_FILES,
            "more than {MOST_FILES} files; name fewer"
        );
    }
    let mut paths = std::collections::HashSet::new();
    candidates.retain(|candidate| paths.insert(candidate.path.clone()));
    Ok(candidates)
}

/// The candidate files of a folder, by name. An unreadable folder in it is an error if there is no list of skipped
/// ones.
fn walk(
    folder: &Path,
    suffixes: &[&str],
    mut skipped: Option<&mut UnreadableFolders>,
    into: &mut Vec<Candidate>,
) -> anyhow::Result<()> {
    let entries = WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            entry.depth() == 0 || !(name.starts_with('.') || FOREIGN.contains(&name.as_ref()))
        });
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => match (error.path(), error.io_error(), &mut skipped) {
                (Some(path), Some(problem), Some(skipped)) => {
                    skipped.add(path, problem);
                    continue;
                }
                (Some(path), Some(problem), None) => return Err(unreadable(path, problem)),
                _ => return Err(error.into()),
            },
        };
        let name = entry.file_name().to_string_lossy();
        let is_known = may_be_report(&name) || has_suffix(&name, suffixes);
        if entry.file_type().is_file() && is_known {
            into.push(Candidate {
                path: entry.into_path(),
                from_walk: true,
            });
            ensure!(
                into.len() <= MOST_FILES,
                "{}: more than {MOST_FILES} files; name fewer",
                shown_path(folder)
            );
        }
    }
    Ok(())
}

/// Whether a walk reads a file of this name. Its content then decides.
pub fn may_be_report(name: &str) -> bool {
    has_suffix(name, SUFFIXES) || NAMES.iter().any(|end| name.ends_with(end))
}

fn has_suffix(name: &str, suffixes: &[&str]) -> bool {
    let suffix = Path::new(name).extension().and_then(|suffix| suffix.to_str());
    suffix.is_some_and(|suffix| suffixes.iter().any(|other| suffix.eq_ignore_ascii_case(other)))
}

/// The error for a path that cannot be read. The libraries' own messages would show the path unescaped.
fn unreadable(path: &Path, problem: &io::Error) -> anyhow::Error {
    anyhow::anyhow!("{}: {problem}", shown_path(path))
}

/// The files that a pattern matches. Matched folders are walked, and unreadable ones are skipped.
fn matching(
    pattern: &Path,
    suffixes: &[&str],
    absent: Absent,
    unreadable: &mut UnreadableFolders,
    into: &mut Vec<Candidate>,
) -> anyhow::Result<()> {
    let text = pattern.to_string_lossy();
    let name = shown_path(pattern);
    let before = into.len();
    if text.contains(['*', '?', '[']) {
        for path in glob::glob(&text).with_context(|| format!("{name}: the pattern is not valid"))? {
            let path = match path {
                Ok(path) => path,
                Err(error) => {
                    unreadable.add(error.path(), error.error());
                    continue;
                }
            };
            if path.is_dir() {
                walk(&path, suffixes, Some(unreadable), into)?;
            } else {
                into.push(Candidate {
                    path,
                    from_walk: false,
                });
            }
        }
        ensure!(
            into.len() > before || absent == Absent::IsSkipped,
            "{name}: no file matches"
        );
        return Ok(());
    }
    ensure!(absent == Absent::IsSkipped, "{name}: no such file or folder");
    Ok(())
}

/// Notes the skipped files: first those whose kind is recognised.
pub fn note_skipped(progress: &dyn Progress, skipped: &[SkippedFile]) {
    let (explained, others): (Vec<_>, Vec<_>) = skipped.iter().partition(|file| file.reason.is_some());
    let names: Vec<_> = explained
        .into_iter()
        .take(MOST_EXPLAINED)
        .chain(others.into_iter().take(MOST_NAMED))
        .collect();
    for SkippedFile { name, reason } in &names {
        let reason = reason
            .as_deref()
            .map_or(String::new(), |reason| format!("; {reason}"));
        progress.note(&format!("skipped {name}: no test report{reason}"));
    }
    let more = skipped.len() - names.len();
    if more > 0 {
        progress.note(&format!("skipped {more} more files that are no test reports"));
    }
}

fn display_paths(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths
        .iter()
        .take(MOST_NAMED)
        .map(|path| shown_path(path))
        .collect();
    names.join(", ")
}
