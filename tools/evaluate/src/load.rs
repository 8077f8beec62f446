//! Reads real histories from files.

use std::{collections::BTreeMap, fs::File, io::Read, path::Path};

use anyhow::Context as _;
use assay_flakiness::{
    HistoryBuilder, ObservedAttempt, ObservedRun,
    domain::{attempt::AttemptStatus, observation::History, test::TestName, timestamp::Timestamp},
};
use csv::{Reader, StringRecord};

/// Reads one attempt per row.
pub(crate) fn csv(path: &Path) -> anyhow::Result<History> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_packed = path.extension().is_some_and(|extension| extension == "gz");
    let content: Box<dyn Read> = if is_packed {
        Box::new(flate2::read::GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut reader = Reader::from_reader(content);
    let columns = Columns::of(reader.headers()?);
    let mut attempts: BTreeMap<(ObservedRun, TestName), Vec<(u32, ObservedAttempt)>> = BTreeMap::new();
    for row in reader.records() {
        let row = row?;
        let line = row.position().map_or(0, csv::Position::line);
        let (key, attempt) = columns.attempt(&row).with_context(|| format!("line {line}"))?;
        attempts.entry(key).or_default().push(attempt);
    }
    let mut builder = HistoryBuilder::new("main");
    for ((run, test), mut attempts) in attempts {
        attempts.sort_by_key(|(retry, _)| *retry);
        builder.observe(&run, &test, attempts.into_iter().map(|(_, attempt)| attempt));
    }
    Ok(builder.build().0)
}

/// The columns of a file by name.
struct Columns(BTreeMap<String, usize>);

impl Columns {
    fn of(header: &StringRecord) -> Self {
        Self(
            header
                .iter()
                .enumerate()
                .map(|(place, name)| (name.trim().to_owned(), place))
                .collect(),
        )
    }

    fn get<'r>(&self, row: &'r StringRecord, name: &str) -> Option<&'r str> {
        self.0
            .get(name)
            .and_then(|place| row.get(*place))
            .filter(|value| !value.is_empty())
    }

    fn required<'r>(&self, row: &'r StringRecord, name: &str) -> anyhow::Result<&'r str> {
        self.get(row, name).with_context(|| format!("no {name}"))
    }

    fn attempt(
        &self,
        row: &StringRecord,
    ) -> anyhow::Result<((ObservedRun, TestName), (u32, ObservedAttempt))> {
        let owned = |name: &str| self.get(row, name).map(str::to_owned);
        let run = ObservedRun {
            started_at: self.required(row, "started_at")?.parse()?,
            id: self.required(row, "run")?.to_owned(),
            branch: owned("branch"),
            revision: owned("revision"),
            variant: owned("variant").unwrap_or_default(),
        };
        let test = TestName {
            name: self.required(row, "test")?.to_owned(),
            file_path: owned("file"),
        };
        let status: AttemptStatus = self.required(row, "status")?.parse()?;
        let retry = self.get(row, "retry").map_or(Ok(0), str::parse)?;
        let duration_ms = self.get(row, "duration_ms").map(str::parse).transpose()?;
        Ok(((run, test), (retry, ObservedAttempt { status, duration_ms })))
    }
}

/// Reads the dask-distributed data set: main only, one attempt per result.
pub(crate) fn dask(directory: &Path) -> anyhow::Result<History> {
    let open = |name: &str| {
        let path = directory.join(name);
        File::open(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let mut runs: BTreeMap<String, (Timestamp, String)> = BTreeMap::new();
    for row in Reader::from_reader(open("runs.csv")?).records() {
        let row = row?;
        runs.insert(
            field(&row, 0)?.to_owned(),
            (field(&row, 1)?.parse()?, field(&row, 2)?.to_owned()),
        );
    }
    let mut builder = HistoryBuilder::new("main");
    let results = flate2::read::GzDecoder::new(open("results.csv.gz")?);
    for row in Reader::from_reader(results).records() {
        let row = row?;
        let (started_at, revision) = runs.get(field(&row, 0)?).context("a result of an unknown run")?;
        let run = ObservedRun {
            started_at: *started_at,
            id: field(&row, 0)?.to_owned(),
            branch: Some("main".to_owned()),
            revision: Some(revision.clone()).filter(|revision| !revision.is_empty()),
            variant: field(&row, 2)?.to_owned(),
        };
        let test = TestName {
            name: field(&row, 1)?.to_owned(),
            file_path: None,
        };
        let status = match field(&row, 3)? {
            "P" => AttemptStatus::Passed,
            "F" => AttemptStatus::Failed,
            "S" => AttemptStatus::Skipped,
            other => anyhow::bail!("{other} is no status"),
        };
        builder.observe(&run, &test, [status]);
    }
    Ok(builder.build().0)
}

fn field(row: &StringRecord, place: usize) -> anyhow::Result<&str> {
    row.get(place).context("a row is too short")
}
