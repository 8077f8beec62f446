//! Reads all files of one import into one report.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use assay_domain::timestamp::Timestamp;
use rayon::prelude::*;

use crate::{
    allure, builds, collect,
    decode::{self, UnpackedBytes},
    detect, duplicates,
    files::KnownFiles,
    input::Input,
    karate, limits,
    memory::{self, Memory},
    merge::merge,
    notes::Notes,
    paths,
    piece::Piece,
    readers,
    report::{Format, ReadError, Report, SourceFile, whole_import},
    retries, stable_names,
    zone::{self, Clocks},
};

/// Options of an import.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// The format of every file. If absent, each file's content decides.
    pub format: Option<Format>,
    /// The checkout's root as the reports write it. Paths are made relative to it. A relative root is ignored, since
    /// reports hold absolute paths.
    pub root: Option<&'a str>,
    /// The checkout's files, which map class names of JUnit XML to files.
    pub known_files: Option<&'a KnownFiles>,
    /// The clocks that place times without a zone.
    pub clocks: Clocks,
    /// Whether names keep the parts that change from run to run.
    pub keeps_written_names: bool,
    /// Whether results of one name in a file are attempts of one execution although the report does not say so.
    pub retries_as_attempts: bool,
    /// Whether the tests ran within a day of the import, unless a build cache or a wrong clock is at work.
    pub are_new: bool,
    /// Whether files that are older or newer than that are left out.
    pub skips_cached: bool,
    /// The exit status of the command that wrote the reports, if it is known. A failure that no result shows is an error.
    pub command_status: Option<u8>,
    /// The memory for the reading and its result. If absent, it is bounded by the limits of reports only.
    pub memory: Option<&'a Arc<dyn Memory>>,
    /// Bytes of all files and of what the archives among them unpack to. If absent, the limit is 1 GiB.
    pub unpacked_bytes: Option<&'a UnpackedBytes>,
}

/// Reads all files of one import, which are one run or one shard of it.
///
/// Files are unpacked, decoded, recognized and parsed in parallel. A test that several files report keeps all its
/// executions. Failed ones come last, because the last execution decides the outcome.
///
/// # Errors
/// The error of the first file that is too large, broken or of no known format. A file that is cut off is no error if
/// it has a complete test. The report is then marked as interrupted. An empty file beside others, or of a command that
/// failed, is an error of the run.
pub fn read(files: impl AsRef<[SourceFile]>, options: &Options<'_>) -> Result<Report, ReadError> {
    let files = files.as_ref();
    let (mut pieces, mut unread) = read_all(files, options);
    let left = match pieces.is_empty() && options.command_status.unwrap_or(0) == 0 {
        true => Vec::new(),
        false => left_by_crashed_reporters(files, &mut unread),
    };
    if let Some(error) = unread.into_iter().next() {
        return Err(error);
    }
    if let Some(now) = options.clocks.now.filter(|_| options.are_new) {
        zone::drop_far(&mut pieces, now, options.skips_cached);
    }
    let formats: Vec<Format> = pieces.iter().map(|piece| piece.report.format).collect();
    let mut report = match pieces.is_empty() && !left.is_empty() {
        // The command failed before a reporter wrote anything.
        true => Report::empty(options.format.unwrap_or(Format::Junit)),
        false => merge(pieces)?,
    };
    report.add_errors(left);
    if let Some(status) = options.command_status {
        report.add_command_error(status, &formats);
    }
    Ok(report)
}

/// The readable part of an import.
#[derive(Debug)]
pub struct PartialReport {
    /// The report of the files that could be read.
    pub report: Report,
    /// The errors of the other files, in the order of the files.
    pub unread: Vec<ReadError>,
}

/// Reads all files of one import as [`read`] does, but skips files that are broken or not reports.
///
/// # Errors
/// The first file's error if no file is readable, and an error if all files together are too large.
pub fn read_readable(files: &[SourceFile], options: &Options<'_>) -> Result<PartialReport, ReadError> {
    let (pieces, mut unread) = read_all(files, options);
    let left = match pieces.is_empty() {
        true => Vec::new(),
        false => left_by_crashed_reporters(files, &mut unread),
    };
    if let Some(at) = unread.iter().position(ReadError::is_of_whole_import) {
        return Err(unread.swap_remove(at));
    }
    if pieces.is_empty() && !unread.is_empty() {
        return Err(unread.swap_remove(0));
    }
    let mut report = merge(pieces)?;
    report.add_errors(left);
    Ok(PartialReport { report, unread })
}

/// What the files say that are empty or cut off before the keys of their format. They are no longer among the unread ones.
fn left_by_crashed_reporters(files: &[SourceFile], unread: &mut Vec<ReadError>) -> Vec<String> {
    if unread.is_empty() {
        return Vec::new();
    }
    let failed: HashSet<String> = unread.iter().map(|error| error.file().to_owned()).collect();
    let is_left = |file: &&SourceFile| looks_like_report(&file.bytes).is_none() && is_cut_off(&file.bytes);
    let left = files
        .iter()
        .filter(|file| failed.contains(&file.name))
        .filter(is_left);
    let left: Vec<&str> = left.map(|file| &*file.name).collect();
    unread.retain(|error| !left.contains(&error.file()));
    let says = |file| {
        format!("{file}: the report is empty, cut off or was not written. Its reporter crashed or never ran.")
    };
    left.into_iter().map(says).collect()
}

/// A report and the file or folder that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedReport {
    /// The file; the folder where several files are one run.
    pub name: String,
    /// The leg of a matrix that the report is of, where several reports of one name are variants of one run.
    pub variant: Option<String>,
    /// The time of the latest change to one of its files, if known.
    pub modified: Option<Timestamp>,
    /// The report.
    pub report: Report,
}

/// Reads files of many runs, in their order. Each file is a run, with two exceptions. A folder of Allure results, of
/// Surefire's `TEST-*.xml` or of Karate's features is one run. The shards of one run are one run, too.
///
/// # Errors
/// As [`read`].
pub fn read_each(files: Vec<SourceFile>, options: &Options<'_>) -> Result<Vec<NamedReport>, ReadError> {
    by_run(all_readable(&files, options)?)
        .into_iter()
        .map(merge_run)
        .collect()
}

/// The reports of each run, in the order of their first files.
fn by_run(pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    let mut runs: Vec<Vec<Piece>> = Vec::new();
    let mut run_index: HashMap<String, usize> = HashMap::new();
    for piece in pieces {
        let next = runs.len();
        let index = run_group(&piece).map_or(next, |group| *run_index.entry(group).or_insert(next));
        match runs.get_mut(index) {
            Some(pieces) => pieces.push(piece),
            None => runs.push(vec![piece]),
        }
    }
    runs
}

/// Reads files that may be of one build: those of one [`build_key`](crate::build_key). Files that start within an hour
/// and have tests in common are variants of one run, and a file that repeats failed tests is a part of the run whose
/// tests it repeats. Any other file is a run. The files that are one run in [`read_each`] count as one file.
///
/// # Errors
/// As [`read`].
pub fn read_build(files: Vec<SourceFile>, options: &Options<'_>) -> Result<Vec<NamedReport>, ReadError> {
    let runs = by_run(all_readable(&files, options)?);
    let pieces = runs.into_iter().map(|pieces| {
        let NamedReport {
            name,
            modified,
            report,
            ..
        } = merge_run(pieces)?;
        Ok(Piece {
            name,
            modified,
            report,
            allure: None,
        })
    });
    builds::runs(pieces.collect::<Result<_, ReadError>>()?)
}

/// The number of bytes by which a file is recognised: enough for the configuration that Playwright writes before its
/// results.
pub const BEGINNING: usize = 4 << 20;

/// The format of a file, or `None` if it is not a report or empty. Callers that search folders skip such files.
pub fn looks_like_report(bytes: &[u8]) -> Option<Format> {
    detect::detect(&decode::beginning(bytes, BEGINNING)).ok()
}

/// Whether a whole file that is not recognised may be the beginning of a report whose reporter crashed.
pub fn is_cut_off(bytes: &[u8]) -> bool {
    bytes.len() < BEGINNING && detect::is_cut_off(&decode::beginning(bytes, BEGINNING))
}

/// Explains why a file is not a report, if its content shows what it is instead. `None` for reports and unknown
/// content.
pub fn why_no_report(bytes: &[u8]) -> Option<String> {
    detect::detect(&decode::beginning(bytes, BEGINNING))
        .err()
        .filter(|hint| !hint.starts_with("expected "))
}

/// The reports of all files, or the error of the first unreadable one.
fn all_readable(files: &[SourceFile], options: &Options<'_>) -> Result<Vec<Piece>, ReadError> {
    let (pieces, unread) = read_all(files, options);
    unread.into_iter().next().map_or(Ok(pieces), Err)
}

/// The reports of the readable files, and the errors of the others.
fn read_all(files: &[SourceFile], options: &Options<'_>) -> (Vec<Piece>, Vec<ReadError>) {
    let default_bytes = UnpackedBytes::new(limits::IMPORT_BYTES);
    let budget = Budget::new(options, &default_bytes);
    let results = files.iter().filter(|file| file.name.ends_with("-result.json"));
    let allure_folders: HashSet<&str> = results.map(|file| paths::folder(&file.name)).collect();
    let is_candidate = |file: &&SourceFile| {
        !(is_beside_allure(&file.name) && allure_folders.contains(paths::folder(&file.name)))
    };
    match files {
        // For this little work another thread costs more than it saves.
        [only] => match read_file(only, options, &budget) {
            Ok(pieces) => (pieces, Vec::new()),
            Err(error) => (Vec::new(), vec![error]),
        },
        several => {
            let several: Vec<&SourceFile> = several.iter().filter(is_candidate).collect();
            let originals = duplicates::originals(&several);
            let (mut pieces, mut unread) = (Vec::new(), Vec::new());
            let mut failed: HashSet<String> = HashSet::new();
            let bytes_of: HashMap<&str, &[u8]> =
                several.iter().map(|file| (&*file.name, &*file.bytes)).collect();
            let is_leg = |file: &SourceFile, original: &str, failed: &HashSet<String>| {
                failed.contains(original) && bytes_of.get(original).is_some_and(|bytes| *bytes == file.bytes)
            };
            // Equal files with a failure may be of legs, of which a retry ends only one.
            for is_copy in [false, true] {
                let is_read = |file: &SourceFile, original: &Option<&str>| match original {
                    None => !is_copy,
                    Some(original) => is_copy && is_leg(file, original, &failed),
                };
                let read: Vec<Result<Vec<Piece>, ReadError>> = several
                    .par_iter()
                    .zip(&originals)
                    .filter(|(file, original)| is_read(file, original))
                    .map(|(file, _)| read_file(file, options, &budget))
                    .collect();
                for file in read {
                    match file {
                        Ok(more) => pieces.extend(more),
                        Err(error) => unread.push(error),
                    }
                }
                failed.extend(
                    pieces
                        .iter()
                        .filter(|piece| piece.has_failed())
                        .map(|piece| piece.name.clone()),
                );
            }
            if let Some(first) = pieces.first_mut() {
                let skipped = several.iter().zip(&originals).filter_map(|(file, original)| {
                    let original = original.filter(|original| !is_leg(file, original, &failed))?;
                    let original_name = if original.is_empty() { "." } else { original };
                    Some(format!(
                        "{}: repeats the results of {original_name}; counted once",
                        file.name
                    ))
                });
                first.report.warnings.extend(skipped);
            }
            (pieces, unread)
        }
    }
}

/// Whether Allure writes files of this name beside its results. They say nothing about tests, and are skipped without a
/// warning.
pub fn is_beside_allure(name: &str) -> bool {
    const OTHER_FILES: &[&str] = &[
        "categories.json",
        "environment.properties",
        "environment.xml",
        "executor.json",
        "testrun.json",
    ];
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
    file.contains("-attachment") || OTHER_FILES.contains(&file)
}

/// What all files of an import may use together.
struct Budget<'a> {
    unpacked_bytes: &'a UnpackedBytes,
    memory: memory::ImportBudget,
    /// Tests that were read.
    tests: AtomicUsize,
}

impl<'a> Budget<'a> {
    fn new(options: &Options<'a>, default_bytes: &'a UnpackedBytes) -> Self {
        Self {
            unpacked_bytes: options.unpacked_bytes.unwrap_or(default_bytes),
            memory: memory::ImportBudget::new(options.memory),
            tests: AtomicUsize::new(0),
        }
    }

    /// Counts the tests of a file. Fails if the files have too many.
    fn take_tests(&self, file: &SourceFile, tests: usize) -> Result<(), ReadError> {
        let so_far = self.tests.fetch_add(tests, Ordering::Relaxed);
        if so_far.saturating_add(tests) <= limits::TESTS_OF_FILES {
            return Ok(());
        }
        Err(ReadError::too_large(
            &file.name,
            whole_import::TESTS,
            limits::TESTS_OF_FILES,
        ))
    }
}

/// The report in a file; several if one JSON report follows another.
fn read_file(file: &SourceFile, options: &Options<'_>, budget: &Budget<'_>) -> Result<Vec<Piece>, ReadError> {
    let pieces = memory::within(&budget.memory, || {
        let pieces = read_within(file, options, budget);
        // A reader may end early because the budget is used up. Then that is the error.
        memory::check(&file.name)?;
        pieces
    })?;
    let tests = pieces.iter().map(|piece| piece.report.tests.len()).sum();
    budget.take_tests(file, tests)?;
    Ok(pieces)
}

/// The reports in a file, within the file's budget of memory.
fn read_within(
    file: &SourceFile,
    options: &Options<'_>,
    budget: &Budget<'_>,
) -> Result<Vec<Piece>, ReadError> {
    let text = decode::decode(file, budget.unpacked_bytes)?;
    memory::permit_lists_of(&text);
    let notes = Notes::default();
    let input = Input {
        name: &file.name,
        text: text.trim_start_matches('\u{feff}'),
        root: options.root.filter(|root| paths::is_absolute(root)),
        known_files: options.known_files,
        lines_before: 0,
        notes: &notes,
    };
    let unrecognised = |hint| ReadError::Unrecognised {
        file: file.name.clone(),
        hint,
    };
    let format = match options.format {
        Some(format) => format,
        None => detect::detect(input.text).map_err(unrecognised)?,
    };
    let mut pieces = read_pieces(file, input, format, options.clocks)?;
    for piece in &mut pieces {
        memory::keep_rest_of(&piece.report);
        if options.retries_as_attempts {
            retries::join_all(&mut piece.report);
            if let Some(allure::Part::Result { may_retry, .. }) = &mut piece.allure {
                *may_retry = true;
            }
        } else if format.may_hide_retries() {
            let doubt = retries::warning(&piece.report, &file.name);
            piece.report.warnings.extend(doubt);
        }
        if !options.keeps_written_names {
            stable_names::apply(&mut piece.report, &file.name);
        }
        collect::settle(&mut piece.report.tests);
    }
    Ok(pieces)
}

/// The reports in a file of a known format. Together they are within one budget of memory.
fn read_pieces(
    file: &SourceFile,
    mut input: Input<'_>,
    format: Format,
    clocks: Clocks,
) -> Result<Vec<Piece>, ReadError> {
    let mut pieces = Vec::new();
    loop {
        let (mut report, allure, next_report) = readers::read(format, &input)?;
        if input.notes.add_to(&mut report, input.name) {
            clocks.place(&mut report, input.name);
        }
        report.check_begun(input.name);
        pieces.push(Piece {
            name: file.name.clone(),
            modified: file.modified,
            report,
            allure,
        });
        match next_report {
            Some(_) if pieces.len() >= limits::DOCUMENTS => {
                let what = "the number of reports in one file";
                return Err(ReadError::too_large(&file.name, what, limits::DOCUMENTS));
            }
            Some(at) => input = input.rest_from(at),
            None => break,
        }
    }
    let count = pieces.len();
    if let Some(first) = pieces.first_mut().filter(|_| count > 1) {
        let several = format!("{}: {count} reports in one file; all were read", file.name);
        first.report.warnings.push(several);
    }
    Ok(pieces)
}

/// A key that all files of one run share. `None` for a file that is a run by itself.
fn run_group(piece: &Piece) -> Option<String> {
    let folder = paths::folder(&piece.name);
    let file = piece
        .name
        .get(folder.len()..)
        .unwrap_or_default()
        .trim_start_matches(['/', '\\']);
    let format = piece.report.format;
    if format == Format::Allure {
        Some(format!("allure {folder}"))
    } else if format == Format::Junit && file.starts_with("TEST-") {
        Some(format!("surefire {folder}"))
    } else if format == Format::Karate && file.ends_with(karate::FEATURE_SUFFIX) {
        Some(format!("karate {folder}"))
    } else {
        let key = piece.report.run_key.as_ref()?;
        piece.report.shard.map(|_| format!("shards {key}"))
    }
}

/// Merges the files of one run. Several files are named by their folder.
fn merge_run(pieces: Vec<Piece>) -> Result<NamedReport, ReadError> {
    let modified = pieces.iter().filter_map(|piece| piece.modified).max();
    let first = pieces.first().map(|piece| piece.name.clone()).unwrap_or_default();
    let name = match (pieces.len(), paths::folder(&first)) {
        (0 | 1, _) => first,
        (_, "") => ".".to_owned(),
        (_, folder) => folder.to_owned(),
    };
    Ok(NamedReport {
        name,
        variant: None,
        modified,
        report: merge(pieces)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_all_files_are_bounded_together() {
        let file = SourceFile {
            name: "r.xml".to_owned(),
            bytes: Vec::new(),
            modified: None,
        };
        let bytes = UnpackedBytes::new(limits::IMPORT_BYTES);
        let budget = Budget::new(&Options::default(), &bytes);
        for _ in 0..4 {
            budget.take_tests(&file, limits::TESTS).unwrap();
        }
        assert_eq!(
            budget.take_tests(&file, 1).unwrap_err().to_string(),
            "r.xml: the number of tests in all files of the import exceeds the limit of 2000000"
        );
    }
}
