//! `assay backfill --plan`: what would be read.

use assay_cli_terminal::{
    output,
    progress::{self, Unit},
};
use assay_domain::timestamp::Timestamp;
use serde_json::json;

use super::source::{Source, SourceFlags};
use crate::global::Global;

/// Lists runs and artifacts, and shows what they are.
pub(super) fn run(
    global: &Global,
    source: &Source,
    flags: &SourceFlags,
    since: Timestamp,
    now: Timestamp,
) -> anyhow::Result<()> {
    let runs = source.runs(since, now)?;
    let bar = progress::bar(
        global.json,
        "listing",
        u64::try_from(runs.len())?,
        Unit::Items("runs"),
    );
    let (mut with_files, mut files, mut expired, mut results, mut bytes) =
        (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
    let mut first_expiry: Option<Timestamp> = None;
    for run in &runs {
        let mut has_files = false;
        for job in source.jobs(run)? {
            for file in job.past_files().filter(|file| flags.wants(file)) {
                if file.is_expired || file.expires_at.is_some_and(|at| at < now) {
                    expired += 1;
                    continue;
                }
                has_files = true;
                files += 1;
                bytes += file.bytes.unwrap_or(0);
                first_expiry = first_expiry.into_iter().chain(file.expires_at).min();
            }
            has_files |= job.has_files_here() || job.has_results();
            results += u64::from(job.has_results());
        }
        with_files += u64::from(has_files);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let (first, last) = (
        runs.iter().map(|run| run.started_at()).min(),
        runs.iter().map(|run| run.started_at()).max(),
    );
    let value = json!({
        "source": source.name(), "runs": runs.len(), "runsWithout": runs.len() - usize::try_from(with_files)?,
        "files": files, "expired": expired, "jobsWithResults": results, "bytes": bytes, "firstRun": first,
        "lastRun": last, "firstExpiry": first_expiry, "requests": source.requests(),
    });
    output::print(global.json, &value, || {
        let day =
            |at: Option<Timestamp>| at.map_or("?".to_owned(), |at| at.to_string().chars().take(10).collect());
        let mut lines = vec![
            format!(
                "{} of {}, from {} to {}",
                output::count(value["runs"].as_u64().unwrap_or(0), "run"),
                source.name(),
                day(first),
                day(last)
            ),
            format!("  {} without anything to read", value["runsWithout"]),
        ];
        if files > 0 {
            let size = output::bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
            lines.push(format!(
                "  {} to read, {size} as far as sizes are known",
                output::count(files, "file")
            ));
        }
        if results > 0 {
            lines.push(format!(
                "  {} whose results the CI service may have",
                output::count(results, "job")
            ));
        }
        if expired > 0 {
            lines.push(format!(
                "  {} that the CI service has deleted",
                output::count(expired, "file")
            ));
        }
        if let Some(at) = first_expiry {
            lines.push(format!("  the next file is deleted at {at}"));
        }
        lines.push("Nothing was read. Only the content shows which files are reports.".to_owned());
        lines.join("\n")
    })
}
