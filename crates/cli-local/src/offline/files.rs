//! Reads the files of an analysis, a part of a folder at a time. Results are kept and texts are dropped.

use std::{
    collections::{BTreeMap, HashSet},
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use assay_cli_terminal::progress::{CountedRead, Counter, Progress, Work};
use assay_domain::{run::RunState, timestamp::Timestamp};
use assay_ingest::{Arrival, Files, Flags, PreparedReport, ci::CiContext};
use assay_reports::{Format, NamedReport, Report, SourceFile};
use flate2::read::MultiGzDecoder;
use rayon::prelude::*;

use crate::{
    analysis::{Collector, is_history, read_csv},
    sources::{
        checkout::Checkout,
        files::{self, ByteBudget, Candidate, SkippedFile},
    },
};

/// How many files are held at a time, except for files that form one run.
const AT_A_TIME: usize = 32;

/// The format of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// Decided by name and content.
    Auto,
    /// As CSV.
    Csv,
    /// As a report of this format.
    Report(Format),
}

/// The input.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Files, folders, patterns, or `-` for standard input.
    pub paths: &'a [PathBuf],
    /// The format of the files.
    pub format: InputFormat,
    /// The checkout of the tested sources.
    pub root: Option<&'a Path>,
    /// Whether each file is a run, so that the files of one build are not joined.
    pub one_run_per_file: bool,
    /// Whether names keep the parts that change from run to run.
    pub keeps_written_names: bool,
    /// Whether results of one name in a file are attempts of one execution.
    pub retries_as_attempts: bool,
}

/// Reads all files of the arguments into the collector.
pub fn read(
    progress: &dyn Progress,
    args: &Inputs<'_>,
    collector: &mut Collector,
    now: Timestamp,
) -> anyhow::Result<()> {
    let candidates = files::candidates(progress, args.paths, &["csv"])?;
    let bytes = candidates.iter().map(size).sum();
    let reading = progress.begin(Work::ReadBytes(bytes));
    let ci = CiContext::default();
    let reader = Reader {
        progress,
        args,
        checkout: Checkout::of(args.root, &ci)?,
        now,
    };
    if args.keeps_written_names {
        collector.keep_written_names();
    }
    let mut skipped = Vec::new();
    for batch in batches(progress, candidates, args.format, args.one_run_per_file) {
        match batch {
            Batch::Csv(candidate) => reader.csv(collector, &candidate, &*reading)?,
            Batch::OneBuild(slots) => {
                reading.add(slots.iter().flatten().map(size).sum());
                for content in reader.read_build(&slots)? {
                    reader.record(collector, content, &mut skipped)?;
                }
            }
            Batch::Reports(slots) => {
                let read: Vec<_> = slots
                    .par_iter()
                    .map(|slot| (slot, reader.read_slot(slot)))
                    .collect();
                for (slot, recordings) in read {
                    reading.add(slot.iter().map(size).sum());
                    reader.record(collector, recordings?, &mut skipped)?;
                }
            }
        }
    }
    drop(reading);
    files::note_skipped(progress, &skipped);
    Ok(())
}

/// Files that are read together.
enum Batch {
    /// A history.
    Csv(Candidate),
    /// Reports: one entry per run. Several files of an entry are the parts of a run, or the same run in several formats.
    Reports(Vec<Vec<Candidate>>),
    /// Reports that may be of one build: one entry per report, as above.
    OneBuild(Vec<Vec<Candidate>>),
}

/// The files in their order, folder by folder.
fn batches(
    progress: &dyn Progress,
    candidates: Vec<Candidate>,
    input_format: InputFormat,
    one_run_per_file: bool,
) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut all_slots: Vec<Vec<Candidate>> = Vec::new();
    let mut folders: BTreeMap<PathBuf, Vec<Candidate>> = BTreeMap::new();
    let mut order: Vec<PathBuf> = Vec::new();
    for candidate in candidates {
        if input_format == InputFormat::Csv || (input_format == InputFormat::Auto && is_csv(&candidate.path))
        {
            batches.push(Batch::Csv(candidate));
            continue;
        }
        let folder = candidate.path.parent().map(Path::to_path_buf).unwrap_or_default();
        let files = folders.entry(folder.clone()).or_insert_with(|| {
            order.push(folder);
            Vec::new()
        });
        files.push(candidate);
    }
    for folder in order {
        let files = without_karates_copies(folders.remove(&folder).unwrap_or_default());
        let of_one_run = |candidate: &Candidate| match input_format {
            InputFormat::Report(Format::Allure) => Some("allure"),
            InputFormat::Auto | InputFormat::Csv | InputFormat::Report(_) => of_one_run(&candidate.path),
        };
        let mut runs: BTreeMap<&str, Vec<Candidate>> = BTreeMap::new();
        let mut slots: Vec<Vec<Candidate>> = Vec::new();
        for file in files {
            match of_one_run(&file) {
                Some(kind) => runs.entry(kind).or_default().push(file),
                None => match slots.last_mut() {
                    // The walk sorts by name, so that the formats of one run follow each other.
                    Some(slot) if slot.iter().all(|other| is_same_run(other, &file)) => slot.push(file),
                    Some(_) | None => slots.push(vec![file]),
                },
            }
        }
        all_slots.extend(runs.into_values());
        all_slots.extend(slots);
    }
    let (builds, single) = match one_run_per_file {
        true => (Vec::new(), all_slots),
        false => by_build(progress, all_slots),
    };
    batches.extend(builds.into_iter().map(Batch::OneBuild));
    let mut single = single.into_iter().peekable();
    while single.peek().is_some() {
        batches.push(Batch::Reports(single.by_ref().take(AT_A_TIME).collect()));
    }
    batches
}

/// The reports that may be of one build by their paths, and the others. Only files that a walk found are joined: a file
/// that is named is a run.
fn by_build(
    progress: &dyn Progress,
    slots: Vec<Vec<Candidate>>,
) -> (Vec<Vec<Vec<Candidate>>>, Vec<Vec<Candidate>>) {
    let key = |slot: &[Candidate]| {
        let first = slot.first().filter(|first| first.from_walk)?;
        // The files of a run in one folder have names of classes, features or attempts, so the folder is what counts.
        let path = match (of_one_run(&first.path), first.path.parent()) {
            (Some(kind), Some(folder)) => folder.join(kind),
            (None, _) | (_, None) => first.path.clone(),
        };
        Some(assay_reports::build_key(&path.to_string_lossy()))
    };
    let mut builds: BTreeMap<String, Vec<Vec<Candidate>>> = BTreeMap::new();
    let mut single = Vec::new();
    for slot in slots {
        match key(&slot) {
            Some(key) => builds.entry(key).or_default().push(slot),
            None => single.push(slot),
        }
    }
    let mut joined = Vec::new();
    for build in builds.into_values() {
        match build.len() {
            0 | 1 => single.extend(build),
            2..=AT_A_TIME => joined.push(build),
            _ => {
                note_many(progress, &build);
                single.extend(build);
            }
        }
    }
    (joined, single)
}

/// Notes that reports are runs of their own because they are too many to be held at a time.
fn note_many(progress: &dyn Progress, build: &[Vec<Candidate>]) {
    let first = build.iter().flatten().next();
    let folder = first
        .and_then(|first| first.path.parent())
        .unwrap_or(Path::new(""));
    progress.note(&format!(
        "{} reports in or beside {} are read as a run each: at most {AT_A_TIME} are compared to find the legs of one \
         build; give the folder of each build its number, or confirm this with --one-run-per-file",
        build.len(),
        assay_reports::shown_path(folder),
    ));
}

/// The files of a folder without those that Karate writes for a feature in the formats of other tools.
fn without_karates_copies(files: Vec<Candidate>) -> Vec<Candidate> {
    let stem = |file: &Candidate| {
        let name = file.path.file_name()?.to_str()?;
        name.strip_suffix(assay_reports::KARATE_FEATURE_SUFFIX)
            .map(str::to_owned)
    };
    let features: HashSet<String> = files.iter().filter_map(stem).collect();
    let is_copy = |file: &Candidate| {
        let name = file.path.file_stem().and_then(|stem| stem.to_str());
        file.from_walk && name.is_some_and(|name| features.contains(name))
    };
    files.into_iter().filter(|file| !is_copy(file)).collect()
}

/// Whether a file is one of several that form a run: Surefire writes one per class, Allure one per attempt, Karate one
/// per feature.
fn of_one_run(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    if name.starts_with("TEST-") && name.ends_with(".xml") {
        Some("surefire")
    } else if name.ends_with("-result.json")
        || name.ends_with("-container.json")
        || name.ends_with("-globals.json")
        || name.contains("-attachment")
    {
        Some("allure")
    } else if name.ends_with(assay_reports::KARATE_FEATURE_SUFFIX) || name == assay_reports::KARATE_SUMMARY {
        Some("karate")
    } else {
        None
    }
}

/// `run-7.json` beside `run-7.xml`: one run in two formats.
fn is_same_run(a: &Candidate, b: &Candidate) -> bool {
    a.from_walk
        && b.from_walk
        && a.path.file_stem() == b.path.file_stem()
        && a.path.extension() != b.path.extension()
}

fn is_csv(path: &Path) -> bool {
    let name = path.to_string_lossy().to_lowercase();
    name.ends_with(".csv") || name.ends_with(".csv.gz")
}

/// The content of a file, or of the files of one run.
enum FileContent {
    /// The runs in it, by name, with the variant of each.
    Recordings(Vec<(String, Option<String>, PreparedReport)>),
    /// A history, read from standard input.
    History(Vec<u8>),
    /// It is not a report.
    Nothing(SkippedFile),
    /// It is a report that cannot be read, and why.
    Unreadable(anyhow::Error),
}

/// The files of a slot that are read.
enum SlotFiles {
    Reports {
        files: Vec<SourceFile>,
        /// Whether a walk found all of them.
        all_recognised: bool,
    },
    Other(FileContent),
}

/// What several files are.
#[derive(Clone, Copy)]
enum Joined {
    /// A run, or one run each.
    Run,
    /// Possibly one build.
    Build,
}

struct Reader<'a> {
    progress: &'a dyn Progress,
    args: &'a Inputs<'a>,
    checkout: Checkout,
    now: Timestamp,
}

impl Reader<'_> {
    /// Reads a history as a stream.
    fn csv(
        &self,
        collector: &mut Collector,
        candidate: &Candidate,
        counter: &dyn Counter,
    ) -> anyhow::Result<()> {
        let name = candidate.name();
        if candidate.path.as_os_str() == "-" {
            read_csv(collector, &name, io::stdin().lock())?;
            return Ok(());
        }
        let is_regular = std::fs::metadata(&candidate.path)
            .with_context(|| name.clone())?
            .is_file();
        ensure!(
            is_regular,
            "{name}: not a regular file; pass the content of a pipe on standard input, as -"
        );
        let file = CountedRead {
            inner: File::open(&candidate.path).with_context(|| name.clone())?,
            counter,
        };
        let is_packed = candidate
            .path
            .extension()
            .is_some_and(|suffix| suffix.eq_ignore_ascii_case("gz"));
        let plain: Box<dyn Read + '_> = if is_packed {
            Box::new(MultiGzDecoder::new(BufReader::new(file)))
        } else {
            Box::new(file)
        };
        read_csv(collector, &name, plain)?;
        Ok(())
    }

    /// Reads the reports of what may be one build. If one of them cannot be read, each is read by itself.
    fn read_build(&self, slots: &[Vec<Candidate>]) -> anyhow::Result<Vec<FileContent>> {
        let mut files = Vec::new();
        let mut others = Vec::new();
        for slot in slots {
            match self.read_files(slot)? {
                SlotFiles::Reports { files: of_slot, .. } => files.extend(of_slot),
                SlotFiles::Other(content) => others.push(content),
            }
        }
        if files.is_empty() {
            return Ok(others);
        }
        match self.recordings(files, Joined::Build) {
            Ok(recordings) => {
                others.push(FileContent::Recordings(recordings));
                Ok(others)
            }
            Err(_) => slots.iter().map(|slot| self.read_slot(slot)).collect(),
        }
    }

    /// Reads the files of one run: its parts, or the same run in several formats. The most detailed format counts.
    fn read_slot(&self, candidates: &[Candidate]) -> anyhow::Result<FileContent> {
        let (files, all_recognised) = match self.read_files(candidates)? {
            SlotFiles::Reports {
                files,
                all_recognised,
            } => (files, all_recognised),
            SlotFiles::Other(content) => return Ok(content),
        };
        match self.recordings(files, Joined::Run) {
            Ok(recordings) => Ok(FileContent::Recordings(recordings)),
            // A malformed file must not prevent the judgement of the others.
            Err(error) if all_recognised => Ok(FileContent::Unreadable(error)),
            Err(error) => Err(error),
        }
    }

    fn format(&self) -> Option<Format> {
        match self.args.format {
            InputFormat::Report(format) => Some(format),
            InputFormat::Auto | InputFormat::Csv => None,
        }
    }

    fn read_files(&self, candidates: &[Candidate]) -> anyhow::Result<SlotFiles> {
        let format = self.format();
        let joined = candidates
            .iter()
            .all(|candidate| of_one_run(&candidate.path).is_some())
            || format == Some(Format::Allure);
        let budget = ByteBudget::default();
        let mut files = Vec::new();
        let mut reason = None;
        for candidate in candidates {
            let is_recognised = |beginning: &[u8]| {
                let is_report = !candidate.from_walk
                    || joined
                    || format.is_some()
                    || assay_reports::looks_like_report(beginning).is_some();
                if !is_report {
                    reason = assay_reports::why_no_report(beginning);
                }
                is_report
            };
            match candidate.read_if(is_recognised, &budget) {
                Ok(Some(file)) => files.push((candidate.from_walk, file)),
                Ok(None) => {}
                Err(error) if candidate.from_walk => {
                    return Ok(SlotFiles::Other(FileContent::Unreadable(error)));
                }
                Err(error) => return Err(error),
            }
        }
        if let [(false, only)] = files.as_slice()
            && only.name == "-"
            && self.args.format == InputFormat::Auto
            && is_history(&only.bytes)
        {
            return Ok(SlotFiles::Other(FileContent::History(
                files.swap_remove(0).1.bytes,
            )));
        }
        let format_of = |file: &SourceFile| format.or_else(|| assay_reports::looks_like_report(&file.bytes));
        if files.is_empty() {
            let name = candidates.first().map(Candidate::name).unwrap_or_default();
            return Ok(SlotFiles::Other(FileContent::Nothing(SkippedFile {
                name,
                reason,
            })));
        }
        if !joined {
            files.sort_by_key(|(_, file)| format_of(file).map(Format::rank));
            files.truncate(1);
        }
        let all_recognised = files.iter().all(|(recognised, _)| *recognised);
        let files: Vec<SourceFile> = files.into_iter().map(|(_, file)| file).collect();
        Ok(SlotFiles::Reports {
            files,
            all_recognised,
        })
    }

    fn recordings(
        &self,
        files: Vec<SourceFile>,
        joined: Joined,
    ) -> anyhow::Result<Vec<(String, Option<String>, PreparedReport)>> {
        let format = self.format();
        let summed = Files::of(&files);
        let known_files = self.checkout.known_files(format, &files);
        let mut options = self.checkout.options(format, known_files.as_ref());
        options.keeps_written_names = self.args.keeps_written_names;
        options.retries_as_attempts = self.args.retries_as_attempts;
        let reports = match joined {
            Joined::Run => assay_reports::read_each(files, &options)?,
            Joined::Build => assay_reports::read_build(files, &options)?,
        };
        let several = reports.len() > 1;
        let ci = CiContext::default();
        let (timed, empty): (Vec<_>, Vec<_>) = reports
            .into_iter()
            .partition(|NamedReport { report, .. }| identifies_run(report));
        // With the file's own time such a run would be the newest, and older runs might leave the window.
        for NamedReport { name, .. } in empty {
            self.progress
                .note(&format!("skipped {name}: it has no tests and no time"));
        }
        timed
            .into_iter()
            .map(
                |NamedReport {
                     name,
                     variant,
                     report,
                     ..
                 }| {
                    let flags = Flags {
                        run_key: several.then(|| name.clone()),
                        ..Flags::default()
                    };
                    let arrival = Arrival {
                        files: summed.clone(),
                        report,
                        flags: &flags,
                        ci: &ci,
                        job_started_at: None,
                    };
                    Ok((name, variant, assay_ingest::prepare(arrival, self.now)?))
                },
            )
            .collect()
    }

    /// Adds the content of a file to the collector, or to the skipped files. Notes why a file is unreadable.
    fn record(
        &self,
        collector: &mut Collector,
        content: FileContent,
        skipped: &mut Vec<SkippedFile>,
    ) -> anyhow::Result<()> {
        match content {
            FileContent::Recordings(recordings) => {
                for (name, variant, prepared) in recordings {
                    collector.record_variant(&name, variant.as_deref(), prepared.recording);
                }
            }
            FileContent::History(bytes) => {
                read_csv(collector, "-", bytes.as_slice())?;
            }
            FileContent::Nothing(file) => skipped.push(file),
            FileContent::Unreadable(error) => self.progress.note(&format!("skipped {error:#}")),
        }
        Ok(())
    }
}

/// Whether a report has a start, a test or an error, or was cut short before its first test.
fn identifies_run(report: &Report) -> bool {
    report.started_at.is_some()
        || !report.tests.is_empty()
        || !report.errors.is_empty()
        || report.state == RunState::Interrupted
}

fn size(candidate: &Candidate) -> u64 {
    std::fs::metadata(&candidate.path).map_or(0, |metadata| metadata.len())
}
