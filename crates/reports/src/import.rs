//! All files of one import read into one report.

use assay_domain::{recording::RunContext, run::RunState, timestamp::Timestamp};
use rayon::prelude::*;

use crate::{
    collect::Collector,
    decode, detect,
    files::KnownFiles,
    go,
    input::Input,
    junit, limits, playwright,
    report::{Format, ReadError, Report, SourceFile},
    trx,
};

/// How to read an import.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// The format of every file; without it each file's content tells.
    pub format: Option<Format>,
    /// The checkout's root as the reports write it (absolute), to which paths are made relative.
    pub root: Option<&'a str>,
    /// The checkout's files, by which class names of JUnit XML become files.
    pub known_files: Option<&'a KnownFiles>,
}

/// Reads all files of one import, which are one run or one shard of it.
///
/// Files are unpacked, decoded, recognised and parsed side by side. A test that several files report keeps all
/// attempts: executions that ended well first, so that the final attempt tells the outcome.
///
/// # Errors
/// The first file that is of no known format, broken or too large; nothing is read in part but cut-off files.
pub fn read(files: Vec<SourceFile>, options: &Options<'_>) -> Result<Report, ReadError> {
    let reports = read_all(&files, options)?;
    merge(
        reports.into_iter().map(|named| named.report).collect(),
        files.first(),
    )
}

/// A report and the file or folder that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedReport {
    /// The file; the folder where several files are one run.
    pub name: String,
    /// When the newest of its files was last written, where known.
    pub modified: Option<Timestamp>,
    /// What it says.
    pub report: Report,
}

/// Reads files of many runs, in their order: each file is a run of its own, but a folder of Allure results, a folder of
/// Surefire's `TEST-*.xml` and the shards of one Playwright run are one.
///
/// # Errors
/// As [`read`].
pub fn read_each(files: Vec<SourceFile>, options: &Options<'_>) -> Result<Vec<NamedReport>, ReadError> {
    let mut runs: Vec<(Option<String>, Vec<NamedReport>)> = Vec::new();
    for named in read_all(&files, options)? {
        let group = group(&named);
        let same = runs
            .iter_mut()
            .find(|(known, _)| group.is_some() && *known == group);
        match same {
            Some((_, reports)) => reports.push(named),
            None => runs.push((group, vec![named])),
        }
    }
    runs.into_iter().map(|(_, reports)| one_run(reports)).collect()
}

/// The format of a file, if it is a report: for walks through folders, which skip what is none. An empty file is none.
pub fn looks_like_report(bytes: &[u8]) -> Option<Format> {
    // Enough for the configuration that Playwright writes before its results.
    detect::detect(&decode::beginning(bytes, 4 << 20)).ok()
}

fn read_all(files: &[SourceFile], options: &Options<'_>) -> Result<Vec<NamedReport>, ReadError> {
    let total: usize = files.iter().map(|file| file.bytes.len()).sum();
    if let Some(first) = files.first().filter(|_| total > limits::IMPORT_BYTES) {
        let limit = format!("{} MiB", limits::IMPORT_BYTES >> 20);
        return Err(ReadError::TooLarge {
            file: first.name.clone(),
            what: "the import as a whole",
            limit,
        });
    }
    files
        .par_iter()
        .map(|file| {
            let report = read_file(file, options)?;
            Ok(NamedReport {
                name: file.name.clone(),
                modified: file.modified,
                report,
            })
        })
        .collect()
}

fn read_file(file: &SourceFile, options: &Options<'_>) -> Result<Report, ReadError> {
    let text = decode::decode(file)?;
    let input = Input {
        name: &file.name,
        text: text.trim_start_matches('\u{feff}'),
        root: options.root.filter(|root| !root.is_empty()),
        known_files: options.known_files,
        modified: file.modified,
    };
    let format = match options.format {
        Some(format) => format,
        None => detect::detect(&text).map_err(|hint| ReadError::Unrecognised {
            file: file.name.clone(),
            hint,
        })?,
    };
    let report = match format {
        Format::Playwright => playwright::read(&input),
        Format::Junit => junit::read(&input),
        Format::Go => go::read(&input),
        Format::Trx => trx::read(&input),
        other @ (Format::Ctrf | Format::Jest | Format::Allure) => Err(ReadError::Unrecognised {
            file: file.name.clone(),
            hint: format!("{other:?} is not read yet"),
        }),
    }?;
    Ok(report)
}

/// What the files of one run have in common; none for a run of its own.
fn group(named: &NamedReport) -> Option<String> {
    let (folder, file) = named.name.rsplit_once(['/', '\\']).unwrap_or(("", &named.name));
    match named.report.format {
        Format::Allure => Some(format!("allure {folder}")),
        Format::Junit if file.starts_with("TEST-") => Some(format!("surefire {folder}")),
        Format::Playwright | Format::Junit | Format::Ctrf | Format::Jest | Format::Go | Format::Trx => {
            let key = named.report.run_key.as_ref()?;
            named.report.shard.map(|_| format!("shards {key}"))
        }
    }
}

fn one_run(reports: Vec<NamedReport>) -> Result<NamedReport, ReadError> {
    let modified = reports.iter().filter_map(|named| named.modified).max();
    let several = reports.len() > 1;
    let name = reports
        .first()
        .map(|named| named.name.clone())
        .unwrap_or_default();
    let folder = name
        .rsplit_once(['/', '\\'])
        .map_or(".", |(folder, _)| folder)
        .to_owned();
    let report = merge(reports.into_iter().map(|named| named.report).collect(), None)?;
    Ok(NamedReport {
        name: if several { folder } else { name },
        modified,
        report,
    })
}

/// The reports of one run as one.
fn merge(reports: Vec<Report>, first_file: Option<&SourceFile>) -> Result<Report, ReadError> {
    let file = || first_file.map_or_else(|| "-".to_owned(), |file| file.name.clone());
    let mut reports = reports.into_iter();
    let Some(mut whole) = reports.next() else {
        return Err(ReadError::Unrecognised {
            file: file(),
            hint: format!("expected {}", crate::detect::KNOWN),
        });
    };
    let mut tests = Collector::default();
    let mut shards = vec![whole.shard];
    let mut formats = vec![whole.format];
    for test in std::mem::take(&mut whole.tests) {
        tests.add(test.test, test.attempts);
    }
    for next in reports {
        whole.widen(next.started_at, None);
        whole.widen(next.finished_at, None);
        whole.context = fill(std::mem::take(&mut whole.context), next.context);
        whole.run_key = whole.run_key.take().or(next.run_key);
        if next.state == RunState::Interrupted {
            whole.state = next.state;
        }
        whole.errors.extend(next.errors);
        whole.warnings.extend(next.warnings);
        shards.push(next.shard);
        formats.push(next.format);
        for test in next.tests {
            tests.add(test.test, test.attempts);
        }
    }
    if tests.len() > limits::TESTS {
        let limit = format!("{} tests", limits::TESTS);
        return Err(ReadError::TooLarge {
            file: file(),
            what: "the number of tests",
            limit,
        });
    }
    whole.tests = tests.finish();
    join_shards(&mut whole, &shards);
    formats.dedup();
    if formats.len() > 1 {
        whole.warnings.push(
            "Reports of several formats were read as one run; the same tests may be in it twice.".into(),
        );
    }
    bound(&mut whole);
    Ok(whole)
}

/// Files of several shards in one import are one run; it is whole when all shards are there.
fn join_shards(report: &mut Report, shards: &[Option<assay_domain::recording::ShardIndex>]) {
    let mut indexes: Vec<u32> = shards.iter().flatten().map(|shard| shard.index).collect();
    indexes.sort_unstable();
    indexes.dedup();
    let alike = shards.iter().all(|shard| *shard == report.shard);
    if alike {
        return;
    }
    report.shard = None;
    let total = shards.iter().flatten().filter_map(|shard| shard.total).max();
    let missing = total.is_some_and(|total| u32::try_from(indexes.len()).is_ok_and(|count| count < total));
    if missing {
        report.state = RunState::Interrupted;
        let there = indexes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        report.warnings.push(format!(
            "Of {} shards only {there} are there.",
            total.unwrap_or_default()
        ));
    }
}

/// The context with what it lacks taken from another.
fn fill(context: RunContext, other: RunContext) -> RunContext {
    RunContext {
        branch: context.branch.or(other.branch),
        commit_sha: context.commit_sha.or(other.commit_sha),
        commit_message: context.commit_message.or(other.commit_message),
        author_name: context.author_name.or(other.author_name),
        tested_revision: context.tested_revision.or(other.tested_revision),
        pull_request_number: context.pull_request_number.or(other.pull_request_number),
        pull_request_title: context.pull_request_title.or(other.pull_request_title),
        ci_provider: context.ci_provider.or(other.ci_provider),
        suite: context.suite.or(other.suite),
    }
}

fn bound(report: &mut Report) {
    if report.errors.len() > limits::REPORT_ERRORS {
        let left = report.errors.len() - limits::REPORT_ERRORS;
        report.errors.truncate(limits::REPORT_ERRORS);
        report.warnings.insert(
            0,
            format!("{left} more errors outside of any test were left out."),
        );
    }
    if report.warnings.len() > limits::WARNINGS {
        let left = report.warnings.len() - limits::WARNINGS;
        report.warnings.truncate(limits::WARNINGS);
        report
            .warnings
            .push(format!("{left} more warnings were left out."));
    }
}
