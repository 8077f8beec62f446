//! Judging without a server: reads the reports and histories of this machine into a [`Collector`], and shows its
//! [`Analysis`](crate::analysis::Analysis) as a table.

mod files;
mod table;

use std::path::{Path, PathBuf};

use anyhow::ensure;
use assay_cli_terminal::progress::Progress;
use assay_domain::timestamp::Timestamp;

use crate::analysis::Collector;

pub use files::{InputFormat, Inputs, read};
pub use table::table;

/// Reads reports and histories of any format into a collector, to judge one more run against them. `keeps_written_names` is whether names keep the parts that change from run to run, also those of that run.
pub fn collect(
    progress: &dyn Progress,
    paths: &[PathBuf],
    stable_branch: &str,
    root: Option<&Path>,
    keeps_written_names: bool,
    now: Timestamp,
) -> anyhow::Result<Collector> {
    let mut collector = Collector::new(stable_branch);
    let reading = Inputs {
        paths,
        format: InputFormat::Auto,
        root,
        one_run_per_file: false,
        keeps_written_names,
        retries_as_attempts: false,
    };
    read(progress, &reading, &mut collector, now)?;
    ensure!(collector.runs() > 0, "no test report and no history was found");
    assume_stable(progress, &mut collector, "");
    note_branches(progress, &collector);
    // The run that is judged by them may have a branch.
    collector.put_on_stable();
    Ok(collector)
}

/// Judges runs without a branch as runs of the stable branch, and notes them, because the user may know better. The note
/// ends with `alternative`.
pub fn assume_stable(progress: &dyn Progress, collector: &mut Collector, alternative: &str) {
    let assumed = collector.assume_stable();
    if assumed > 0 {
        let (are, name) = if assumed == 1 {
            ("is", "names")
        } else {
            ("are", "name")
        };
        progress.note(&format!(
            "{assumed} of {} runs {name} no branch and {are} judged as on the stable branch {:?}{alternative}",
            collector.runs(),
            collector.stable_branch(),
        ));
    }
}

/// Notes that no run is on the stable branch. Without such runs no test can be broken. A misnamed branch is the more
/// likely reason.
pub fn note_branches(progress: &dyn Progress, collector: &Collector) {
    let branches = collector.branches();
    if branches.is_empty() || branches.contains(&collector.stable_branch()) {
        return;
    }
    let some: Vec<&str> = branches.iter().take(5).copied().collect();
    progress.note(&format!(
        "no run is on the stable branch {:?}, so no test can be broken; there {} {}: name the one that \
         releases are made from with --stable-branch",
        collector.stable_branch(),
        if branches.len() == 1 { "is" } else { "are" },
        some.join(", "),
    ));
}
