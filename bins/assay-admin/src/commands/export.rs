//! `assay-admin export`: a project's results as files.

use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use assay_answers::failures::{ExplainedFailure, FailuresQuery, ListedFailures, run_failures};
use assay_cli_terminal::{
    message,
    misuse::Misuse,
    output,
    progress::{self, Unit},
};
use assay_domain::{
    cause::Knowledge, ingest::IngestKeys as _, project::Project, store::StoreError, timestamp::Timestamp,
};
use assay_flakiness::Engine;
use assay_repository::{Database, ExportedRun};
use clap::Args;
use serde_json::{Value, json};

use crate::{
    clock, database,
    export::{ExportFolder, Format, Piece, TESTS, Written},
    global::Global,
    lookup, values,
};

/// Write a project's results as Parquet or CSV files
///
/// The files have runs, results, attempts, failures with causes, and tests with verdicts, in the order of the runs'
/// numbers. docs/export.md has their columns. Each file appears when it is complete. An export that was stopped goes
/// on with --after, and so does one that adds the newer runs every night.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  assay-admin export --project storefront storefront-results
  A month, as text:
    assay-admin export --project storefront --format csv \\
      --from 2026-11-01 --to 2026-12-01 november
  The runs after run 1234, into the same folder:
    assay-admin export --project storefront --after 1234 storefront-results

The exit status is 1 if a run was left out because its results are damaged.")]
pub(crate) struct ExportArgs {
    /// The folder of the files, one for each project and format
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The project's id or name
    #[arg(long)]
    project: String,
    /// The format of the files
    #[arg(long, value_enum, default_value_t = Format::Parquet)]
    format: Format,
    /// Only runs that started at this day (UTC) or time, or later [default: all]
    #[arg(long, value_name = "TIME", value_parser = values::day_or_time)]
    from: Option<Timestamp>,
    /// Only runs that started before this day (UTC) or time [default: now]
    #[arg(long, value_name = "TIME", value_parser = values::day_or_time)]
    to: Option<Timestamp>,
    /// Only runs with a greater number
    #[arg(long, value_name = "RUN", value_parser = clap::value_parser!(i32).range(0..))]
    after: Option<i32>,
    /// Begin new files after this many results
    #[arg(long, value_name = "N", default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    results_per_file: u64,
    /// Write no failures with causes, which take most of the time
    #[arg(long)]
    without_failures: bool,
}

/// The number of tests that are in memory at a time.
const TESTS_AT_ONCE: u32 = 5_000;

/// Runs `assay-admin export`.
pub(crate) fn run(global: &Global, args: &ExportArgs) -> anyhow::Result<()> {
    let now = clock::now();
    let opened = database::open(global)?;
    let database = &opened.database;
    let entry = lookup::project(database, &args.project)?;
    let project = database
        .project_of_key(entry.id, now)?
        .with_context(|| format!("the project {:?} is being deleted", entry.name))?;
    let period = (
        args.from.unwrap_or(project.visible_from),
        args.to.unwrap_or(project.visible_to.plus_ms(1)),
    );
    if period.0 >= period.1 {
        bail!(Misuse(format!(
            "--from is not before --to: no run starts from {} to before {}",
            period.0, period.1
        )));
    }
    let folder = ExportFolder::open(&args.folder, args.format, project.id, args.after)?;
    let mut export = Export {
        database,
        project: &project,
        now,
        has_failures: !args.without_failures,
        written: Written::new(),
        last: args.after,
        left_out: Vec::new(),
    };
    let exported = export.runs(global, args, &folder, period);
    exported.and_then(|()| export.tests(&folder)).with_context(|| {
        let after = export.last.map(|last| format!(" with --after {last}"));
        format!(
            "the export stopped; once this is fixed, run the same command{}",
            after.as_deref().unwrap_or(" again")
        )
    })?;
    output::print(global.json, &export.json(args), || export.text(args))?;
    let left_out = u64::try_from(export.left_out.len()).unwrap_or(u64::MAX);
    ensure!(
        left_out == 0,
        "{} left out; `assay-admin doctor` lists what is damaged and what to do",
        output::count(left_out, "run")
    );
    Ok(())
}

/// An export and its state.
struct Export<'a> {
    database: &'a Database,
    project: &'a Project,
    now: Timestamp,
    has_failures: bool,
    written: Written,
    /// The number of the last run in complete files.
    last: Option<i32>,
    /// The numbers of the runs that were left out, with the reasons.
    left_out: Vec<(i32, String)>,
}

impl Export<'_> {
    /// Writes the runs of a period.
    fn runs(
        &mut self,
        global: &Global,
        args: &ExportArgs,
        folder: &ExportFolder,
        period: (Timestamp, Timestamp),
    ) -> anyhow::Result<()> {
        let numbers = self
            .database
            .runs_to_export(self.project, period, args.after.unwrap_or(0))?;
        let length = u64::try_from(numbers.len()).unwrap_or(u64::MAX);
        let bar = progress::bar(global.json, "Exporting", length, Unit::Items("runs"));
        let mut unfinished: Option<(Piece<'_>, i32)> = None;
        for number in numbers {
            bar.inc(1);
            let (run, failures) = match self.read(number) {
                Ok(Some(read)) => read,
                Ok(None) => continue,
                Err(error @ StoreError::Corrupt { .. }) => {
                    bar.suspend(|| message!("left out run {number}: {error}"));
                    self.left_out.push((number, error.to_string()));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let mut piece = match unfinished.take() {
                Some((piece, _)) => piece,
                None => Piece::create(folder, self.has_failures)?,
            };
            if piece.push(run, failures)? < args.results_per_file {
                unfinished = Some((piece, number));
            } else {
                piece.finish(number, &mut self.written)?;
                self.last = Some(number);
            }
        }
        if let Some((piece, last)) = unfinished {
            piece.finish(last, &mut self.written)?;
            self.last = Some(last);
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// A run and its failures with their causes; none if it was deleted meanwhile.
    fn read(&self, number: i32) -> Result<Option<(ExportedRun, Vec<ExplainedFailure>)>, StoreError> {
        let Some(exported) = self.database.run_to_export(self.project, number)? else {
            return Ok(None);
        };
        if !self.has_failures || !exported.has_failures {
            return Ok(Some((exported, Vec::new())));
        }
        let query = FailuresQuery {
            run: exported.id,
            knowledge: Knowledge::AtTheTime,
            page: 1,
            per_page: u32::MAX,
            listed: ListedFailures::All,
            owner: None,
        };
        let found = run_failures(self.database, &Engine::default(), self.project, &query, self.now)?;
        Ok(found.map(|found| (exported, found.failures)))
    }

    /// Writes the tests.
    fn tests(&mut self, folder: &ExportFolder) -> anyhow::Result<()> {
        let mut tests = folder.create(&TESTS)?;
        let mut next = Some(0);
        while let Some(from) = next {
            let rows;
            (rows, next) = self.database.tests_to_export(self.project, from, TESTS_AT_ONCE)?;
            rows.into_iter().try_for_each(|row| tests.push(row))?;
        }
        folder.finish(tests, TESTS.name, &mut self.written)
    }

    fn count(&self, what: &str) -> u64 {
        self.written.get(what).copied().unwrap_or(0)
    }

    fn json(&self, args: &ExportArgs) -> Value {
        let left_out = self.left_out.iter();
        let left_out = left_out.map(|(run, reason)| json!({ "run": run, "reason": reason }));
        json!({
            "project": self.project.name, "folder": args.folder, "format": args.format.extension(),
            "runs": self.count("runs"), "results": self.count("results"), "attempts": self.count("attempts"),
            "failures": self.count("failures"), "tests": self.count("tests"), "files": self.count("files"),
            "bytes": self.count("bytes"), "after": self.last, "leftOut": left_out.collect::<Vec<_>>(),
        })
    }

    fn text(&self, args: &ExportArgs) -> String {
        let (name, folder) = (&self.project.name, args.folder.display());
        let Some(last) = self.last.filter(|_| self.count("runs") > 0) else {
            return format!("No further run of {name:?} in the period; {folder} has its tests");
        };
        format!(
            "Exported {} of {name:?} with {} and {} to {folder}: {}, {}\nLater, for the runs that follow: --after {last}",
            output::count(self.count("runs"), "run"),
            output::count(self.count("results"), "result"),
            output::count(self.count("failures"), "failure"),
            output::count(self.count("files"), "file"),
            output::bytes(i64::try_from(self.count("bytes")).unwrap_or(i64::MAX)),
        )
    }
}
