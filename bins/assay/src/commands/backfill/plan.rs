//! `assay backfill --plan`: what would be read.

use assay_cli_remote::history::PastRun;
use assay_cli_terminal::{output, progress, when};
use assay_domain::timestamp::Timestamp;
use serde::Serialize;

use super::source::Source;
use crate::global::Global;

/// What would be read.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Plan {
    source: String,
    runs: u64,
    runs_without: u64,
    files: u64,
    expired: u64,
    jobs_with_results: u64,
    bytes: u64,
    first_run: Option<Timestamp>,
    last_run: Option<Timestamp>,
    first_expiry: Option<Timestamp>,
    requests: u64,
}

/// Lists the artifacts of runs, and shows what they are.
pub(super) fn run(
    global: &Global,
    source: &Source<'_>,
    runs: &[PastRun],
    now: Timestamp,
) -> anyhow::Result<()> {
    let mut plan = Plan {
        source: source.name.clone(),
        runs: u64::try_from(runs.len())?,
        first_run: runs.iter().map(|run| run.started_at).min(),
        last_run: runs.iter().map(|run| run.started_at).max(),
        ..Plan::default()
    };
    let unit = progress::Unit::Items("runs");
    let bar = progress::bar(global.json, "listing", plan.runs, unit);
    for run in runs {
        let mut has_files = false;
        for report in source.reports(run)? {
            for file in source.wanted(&report) {
                if file.is_expired || file.expires_at.is_some_and(|at| at < now) {
                    plan.expired += 1;
                    continue;
                }
                has_files = true;
                plan.files += 1;
                plan.bytes += file.bytes.unwrap_or(0);
                plan.first_expiry = plan.first_expiry.into_iter().chain(file.expires_at).min();
            }
            has_files |= report.cases.is_some();
            plan.jobs_with_results += u64::from(report.cases.is_some());
        }
        plan.runs_without += u64::from(!has_files);
        bar.inc(1);
    }
    bar.finish_and_clear();
    plan.requests = source.requests();
    output::print(global.json, &plan, || plan.in_words())
}

impl Plan {
    fn in_words(&self) -> String {
        let day = |at: Option<Timestamp>| at.map(when::day).unwrap_or_default();
        let (first, last) = (day(self.first_run), day(self.last_run));
        let runs = output::count(self.runs, "run");
        let mut lines = vec![
            format!("{runs} of {}, from {first} to {last}", self.source),
            format!("  {} without anything to read", self.runs_without),
        ];
        let size = output::bytes(i64::try_from(self.bytes).unwrap_or(i64::MAX));
        let mut add = |number: u64, noun: &str, rest: &str| {
            let line = format!("  {} {rest}", output::count(number, noun));
            lines.extend(Some(line).filter(|_| number > 0));
        };
        let to_read = format!("to read, {size} as far as sizes are known");
        add(self.files, "file", &to_read);
        add(
            self.jobs_with_results,
            "job",
            "whose results the CI service may have",
        );
        add(self.expired, "file", "that the CI service has deleted");
        let expiry = self.first_expiry;
        lines.extend(expiry.map(|at| format!("  the next file is deleted at {at}")));
        lines.push("Nothing was stored. Only the content shows which files are reports.".to_owned());
        lines.join("\n")
    }
}
