//! Reads the reports of an old run.

use assay_domain::{recording::ShardIndex, timestamp::Timestamp};
use assay_ingest::{Arrival, Files, PreparedReport};
use assay_reports::{Clocks, Options, PartialReport, ReadError, SourceFile};

use super::PastReport;
use crate::server::body::Fields;

/// A report whose time is further than this from its job's comes from a build cache.
const CACHED_AFTER_MS: i64 = 24 * 3_600_000;

/// The readable reports of a job.
#[derive(Debug)]
pub struct JobReport {
    /// The files that could be read.
    pub files: Vec<SourceFile>,
    /// The values to send with them.
    pub fields: Fields,
    /// What a server would store.
    pub prepared: PreparedReport,
    /// Why other files could not be read.
    pub unread: Vec<ReadError>,
}

/// Reads the reports of a job. A broken file among them is left out. None if they have neither a test nor an error.
///
/// # Errors
/// If nothing of it can be stored.
pub fn read(
    past: &PastReport,
    mut files: Vec<SourceFile>,
    now: Timestamp,
) -> anyhow::Result<Option<JobReport>> {
    if files.is_empty() {
        return Ok(None);
    }
    let mut ci = past.ci.clone();
    ci.workspace_root = past.roots.iter().find(|root| names_root(&files, root)).cloned();
    let options = Options {
        root: ci.workspace_root.as_deref(),
        clocks: Clocks {
            utc_offset_minutes: None,
            now: Some(now),
        },
        ..Options::default()
    };
    let PartialReport { report, unread } = assay_reports::read_readable(&files, &options)?;
    files.retain(|file| unread.iter().all(|error| error.file() != file.name));
    if report.tests.is_empty() && report.errors.is_empty() {
        return Ok(None);
    }
    // The start of the job counts where the report has none, or one of another day.
    let is_of_job = |start: &Timestamp| {
        let job = past.started_at.filter(|_| ci.provider.is_some());
        job.is_none_or(|job| start.since_ms(job).abs() <= CACHED_AFTER_MS)
    };
    let mut flags = past.flags.clone();
    if report.started_at.filter(is_of_job).is_none() {
        flags.started_at = past.started_at;
    }
    if let (Some(suite), Some(shard)) = (&mut flags.context.suite, report.shard) {
        *suite = without_shard(suite, shard);
    }
    let arrival = Arrival {
        files: Files::of(&files),
        report,
        flags: &flags,
        ci: &ci,
        job_started_at: None,
    };
    let prepared = assay_ingest::prepare(arrival, now)?;
    Ok(Some(JobReport {
        files,
        fields: Fields::of(&flags, &ci),
        prepared,
        unread,
    }))
}

/// The name of a job without its shard, because the shards of a suite are one run: `e2e` of `e2e-2` and `e2e (2, 3)`.
fn without_shard(job: &str, shard: ShardIndex) -> String {
    let ShardIndex { index, total } = shard;
    let is_total = |word: &str| total.is_some_and(|total| word == total.to_string());
    let is_index = |word: &str| word == index.to_string();
    let is_place = |word: &str| {
        let pair = word.split_once('/');
        is_index(word) || pair.is_some_and(|(index, total)| is_index(index) && is_total(total))
    };
    if let Some((name, legs)) = job.strip_suffix(')').and_then(|job| job.split_once(" (")) {
        let legs = legs.split(", ").filter(|leg| !is_place(leg) && !is_total(leg));
        return match legs.collect::<Vec<_>>().join(", ") {
            rest if rest.is_empty() => name.to_owned(),
            rest => format!("{name} ({rest})"),
        };
    }
    match job.rsplit_once(['-', '_', ' ']) {
        Some((name, number)) if is_place(number) => name.to_owned(),
        Some(_) | None => job.to_owned(),
    }
}

/// Whether a file names a path below a folder. JSON writes a backslash twice.
fn names_root(files: &[SourceFile], root: &str) -> bool {
    [root.to_owned(), root.replace('\\', "\\\\")].iter().any(|form| {
        let finder = memchr::memmem::Finder::new(form);
        files.iter().any(|file| finder.find(&file.bytes).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shards_of_a_job_are_one_suite() {
        let shard = ShardIndex {
            index: 2,
            total: Some(3),
        };
        for (job, expected) in [
            ("e2e (2)", "e2e"),
            ("e2e (2, 3)", "e2e"),
            ("e2e (ubuntu, 2/3)", "e2e (ubuntu)"),
            ("e2e-2", "e2e"),
            ("e2e_1", "e2e_1"),
            ("e2e (node-22)", "e2e (node-22)"),
            ("web2", "web2"),
        ] {
            assert_eq!(without_shard(job, shard), expected, "{job}");
        }
    }
}
