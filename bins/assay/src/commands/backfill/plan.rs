//! `assay backfill --plan`: what would be read.

use std::process::ExitCode;

use assay_cli_remote::history::PastRun;
use assay_cli_terminal::{
    output::{self, count},
    progress::{self, Unit},
    when,
};
use assay_domain::timestamp::Timestamp;
use serde_json::json;

use super::source::Source;
use crate::global::Global;

/// Lists the artifacts of runs, of which there is one at least, and shows what they are.
pub(super) fn run(
    global: &Global,
    source: &Source<'_>,
    runs: &[PastRun],
    now: Timestamp,
) -> anyhow::Result<ExitCode> {
    let (mut without, mut files, mut expired, mut with_results, mut bytes) =
        (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
    let mut first_expiry = None;
    let length = u64::try_from(runs.len())?;
    let bar = progress::bar(global.json, "listing", length, Unit::Items("runs"));
    for run in runs {
        let before = files + with_results;
        for report in source.reports(run)? {
            for file in source.wanted(&report) {
                if file.is_expired || file.expires_at.is_some_and(|at| at < now) {
                    expired += 1;
                    continue;
                }
                files += 1;
                bytes += file.bytes.unwrap_or(0);
                first_expiry = first_expiry.into_iter().chain(file.expires_at).min();
            }
            with_results += u64::from(report.results.is_some());
        }
        without += u64::from(files + with_results == before);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let starts = || runs.iter().map(|run| run.started_at);
    let (first, last) = (starts().min(), starts().max());
    let plan = json!({
        "source": source.name, "runs": length, "runsWithout": without, "files": files, "expired": expired,
        "jobsWithResults": with_results, "bytes": bytes, "firstRun": first, "lastRun": last,
        "firstExpiry": first_expiry, "requests": source.requests(),
    });
    output::print(global.json, &plan, || {
        let [first, last] = [first, last].map(|at| at.map(when::day).unwrap_or_default());
        let expiry = first_expiry.map(|at| format!("  the next file is deleted at {at}\n"));
        format!(
            "{} of {}, from {first} to {last}\n  {without} without anything to read\n  \
             {} to read, {} as far as sizes are known\n  {} whose results the CI service may have\n  \
             {} that the CI service has deleted\n{}\
             Nothing was stored. Only the content shows which files are reports.",
            count(length, "run"),
            source.name,
            count(files, "file"),
            output::bytes(i64::try_from(bytes).unwrap_or(i64::MAX)),
            count(with_results, "job"),
            count(expired, "file"),
            expiry.unwrap_or_default(),
        )
    })?;
    Ok(ExitCode::SUCCESS)
}
