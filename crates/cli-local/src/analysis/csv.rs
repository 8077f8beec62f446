//! Reads a history as CSV with one attempt per row.

use std::io::Read;

use assay_domain::{attempt::AttemptStatus, test::TestName, timestamp::Timestamp};
use csv::{ByteRecord, ReaderBuilder, Trim};

use crate::analysis::{
    collector::{Collector, RowRun},
    part::Attempt,
};

/// Longest value of a column, in bytes.
const LONGEST_VALUE: usize = 16_384;
/// Highest number of a retry.
const MOST_RETRIES: u32 = 100_000;

/// The error of a CSV history. Every message names the file, the line and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The header or a row is not valid.
    #[error("{file}:{line}: {problem}")]
    Row {
        /// The file.
        file: String,
        /// The line on which the row begins, from 1.
        line: u64,
        /// The problem and what was expected.
        problem: String,
    },
    /// The file cannot be read.
    #[error("{file}: reading failed")]
    Io {
        /// The file.
        file: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// The columns of a history. The first ones are required.
const COLUMNS: [&str; 13] = [
    "test",
    "run",
    "started_at",
    "status",
    "file",
    "branch",
    "revision",
    "merge",
    "execution",
    "retry",
    "duration_ms",
    "variant",
    "error",
];
/// The number of required columns.
const REQUIRED: usize = 4;

/// The columns that a file has, with their indexes in it.
struct Columns(Vec<(&'static str, usize)>);

/// Adds every row of a CSV history. `name` is the file's name in messages. Without a branch column, all runs are of the
/// stable branch. Returns the number of rows.
///
/// # Errors
/// The first invalid row. The rows before it have been added.
pub fn read_csv(collector: &mut Collector, name: &str, input: impl Read) -> Result<u64, CsvError> {
    let mut reader = ReaderBuilder::new().trim(Trim::Headers).from_reader(input);
    let header = reader.byte_headers().map_err(|error| csv_error(name, error))?;
    let row_error = |line, problem| CsvError::Row {
        file: name.to_owned(),
        line,
        problem,
    };
    let columns = Columns::of(header).map_err(|problem| row_error(1, problem))?;
    let stable_branch = collector.stable_branch().to_owned();
    let mut record = ByteRecord::new();
    let mut rows = 0;
    while reader
        .read_byte_record(&mut record)
        .map_err(|error| csv_error(name, error))?
    {
        let line = record.position().map_or(0, csv::Position::line);
        add(collector, name, &stable_branch, &columns, &record)
            .map_err(|problem| row_error(line, problem))?;
        rows += 1;
    }
    Ok(rows)
}

impl Columns {
    fn of(header: &ByteRecord) -> Result<Self, String> {
        let mut columns = Self(Vec::new());
        for (place, column) in COLUMNS.into_iter().enumerate() {
            let before = columns.0.len();
            columns
                .0
                .extend(indexes(header, column).map(|index| (column, index)));
            match columns.0.len() - before {
                0 if place < REQUIRED => {
                    return Err(format!(
                        "the header has no column {column:?}; expected test,run,started_at,status and optionally \
                         file,branch,revision,merge,execution,retry,duration_ms,variant,error, in any order"
                    ));
                }
                0 | 1 => {}
                _ => return Err(format!("the header names the column {column:?} twice")),
            }
        }
        Ok(columns)
    }

    fn index(&self, column: &str) -> Option<usize> {
        let (_, index) = self.0.iter().find(|(name, _)| *name == column)?;
        Some(*index)
    }
}

/// The indexes of a header's titles that are this column.
fn indexes(header: &ByteRecord, column: &str) -> impl Iterator<Item = usize> {
    let titles = (0..).zip(header).filter(move |(index, title)| {
        let mark = b"\xef\xbb\xbf".as_slice();
        let title = title.strip_prefix(mark).filter(|_| *index == 0).unwrap_or(title);
        title.eq_ignore_ascii_case(column.as_bytes())
    });
    titles.map(|(index, _)| index)
}

/// Whether text starts with the header of a history.
pub(crate) fn is_history(bytes: &[u8]) -> bool {
    let mut reader = ReaderBuilder::new().trim(Trim::Headers).from_reader(bytes);
    let required = COLUMNS.iter().take(REQUIRED);
    let is_in = |header: &ByteRecord| {
        required
            .clone()
            .all(|column| indexes(header, column).next().is_some())
    };
    reader.byte_headers().is_ok_and(is_in)
}

/// Adds one row. The error describes the problem.
fn add(
    collector: &mut Collector,
    file: &str,
    stable_branch: &str,
    columns: &Columns,
    record: &ByteRecord,
) -> Result<(), String> {
    let optional = |column: &str| -> Result<Option<&str>, String> {
        let Some(index) = columns.index(column) else {
            return Ok(None);
        };
        let bytes = record.get(index).unwrap_or_default();
        if bytes.len() > LONGEST_VALUE {
            return Err(format!(
                "{column} has {} bytes, expected at most {LONGEST_VALUE}",
                bytes.len()
            ));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| format!("{column} is not UTF-8"))?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    };
    let required = |column: &str| optional(column)?.ok_or_else(|| format!("{column} is empty"));

    let test = TestName {
        name: required("test")?.to_owned(),
        file_path: optional("file")?.map(ToOwned::to_owned),
    };
    let started_at = time(required("started_at")?)?;
    let status: AttemptStatus = required("status").and_then(|word| {
        word.parse()
            .map_err(|unknown| format!("status {word:?}, {unknown}"))
    })?;
    let count = |column| optional(column)?.map(|text| ordinal(column, text)).transpose();
    let execution = count("execution")?.unwrap_or(0);
    let retry = count("retry")?;
    let duration_ms = optional("duration_ms")?.map(duration).transpose()?;
    let branch = match columns.index("branch") {
        Some(_) => optional("branch")?,
        None => Some(stable_branch),
    };
    let run = RowRun {
        file,
        id: required("run")?,
        branch,
        revision: optional("revision")?,
        merge: optional("merge")?,
        variant: optional("variant")?.unwrap_or_default(),
    };
    let error = optional("error")?.filter(|_| status.is_failure());
    let attempt = Attempt {
        execution,
        retry: 0,
        status,
        duration_ms,
        started_at: Some(started_at),
        signature: error.and_then(|message| collector.signature(message)),
    };
    collector.row(run, &test, retry, attempt, started_at)
}

/// RFC 3339, the same without a zone (UTC), or seconds or milliseconds since 1970.
fn time(text: &str) -> Result<Timestamp, String> {
    let wrong = || {
        format!(
            "started_at {text:?}, expected a date-time such as 2026-11-20T18:46:03Z, or seconds or milliseconds since 1970"
        )
    };
    if let Ok(at) = text.parse() {
        return Ok(at);
    }
    if let Ok(number) = text.parse::<i64>() {
        // Seconds reach this value in the year 5138; milliseconds passed it in March 1973.
        let ms = if number.unsigned_abs() < 100_000_000_000 {
            number.saturating_mul(1_000)
        } else {
            number
        };
        return Ok(Timestamp::from_unix_ms(ms));
    }
    let text = text.replacen(' ', "T", 1);
    format!("{text}Z")
        .parse()
        .or_else(|_| text.parse())
        .map_err(|_| wrong())
}

/// The number of an execution or a retry.
fn ordinal(column: &str, text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|ordinal| *ordinal <= MOST_RETRIES)
        .ok_or_else(|| format!("{column} {text:?}, expected a whole number from 0 to {MOST_RETRIES}"))
}

/// Whole milliseconds; a fraction is rounded.
fn duration(text: &str) -> Result<u64, String> {
    let wrong = || format!("duration_ms {text:?}, expected milliseconds, 0 or more");
    if let Ok(whole) = text.parse() {
        return Ok(whole);
    }
    let number: f64 = text.parse().map_err(|_| wrong())?;
    if !(0.0..9e15).contains(&number) {
        return Err(wrong());
    }
    format!("{:.0}", number.round()).parse().map_err(|_| wrong())
}

fn csv_error(file: &str, error: csv::Error) -> CsvError {
    let line = error.position().map_or(0, csv::Position::line);
    let file = file.to_owned();
    let problem = match error.into_kind() {
        csv::ErrorKind::Io(source) => return CsvError::Io { file, source },
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            format!("the row has {len} columns, expected {expected_len} as in the header")
        }
        csv::ErrorKind::Utf8 { .. } => "the row is not UTF-8".to_owned(),
        csv::ErrorKind::Seek | csv::ErrorKind::Serialize(_) | csv::ErrorKind::Deserialize { .. } | _ => {
            "the row is not CSV".to_owned()
        }
    };
    CsvError::Row { file, line, problem }
}
