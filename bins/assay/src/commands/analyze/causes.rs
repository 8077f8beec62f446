//! The flag `--causes` and its table: the causes of a history's failures.

use assay_cli_local::analysis::{CausedFailure, Causes, Collector, FailureSelection, cause_words};
use assay_cli_terminal::{
    misuse::Misuse,
    output,
    table::{Cell, Tone, table_with_notes},
};
use assay_domain::{
    cause::{Action, Knowledge, band},
    timestamp::Timestamp,
};

use super::Output;

/// The value of `--causes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CauseScope {
    /// Every failure of the window.
    Window(Knowledge),
    /// The failures of the run with this name, judged by the runs until it.
    Run(String),
}

/// Parses the flag's value.
pub(super) fn scope(text: &str) -> Result<CauseScope, String> {
    match text {
        "" => Err("expected at-the-time, hindsight or the name of a run".to_owned()),
        "at-the-time" => Ok(CauseScope::Window(Knowledge::AtTheTime)),
        "hindsight" => Ok(CauseScope::Window(Knowledge::Hindsight)),
        run => Ok(CauseScope::Run(run.to_owned())),
    }
}

/// Rejects combinations of flags that have no output, before anything is read.
pub(super) fn check(scope: Option<&CauseScope>, output: Output) -> Result<(), Misuse> {
    match (scope, output) {
        (Some(_), Output::Html) => Err(Misuse(
            "--causes has no HTML output; use --json, or give a run's name for a table".to_owned(),
        )),
        (Some(CauseScope::Window(_)), Output::Table) => Err(Misuse(
            "the causes of a whole window need --json; for a table give a run's name: --causes RUN"
                .to_owned(),
        )),
        (_, Output::Table | Output::Json | Output::Html) => Ok(()),
    }
}

impl CauseScope {
    pub(super) fn causes(&self, collector: &Collector, now: Timestamp) -> anyhow::Result<Causes> {
        let (selection, knowledge) = match self {
            Self::Window(knowledge) => (FailureSelection::All, *knowledge),
            Self::Run(name) => (FailureSelection::Run(name), Knowledge::AtTheTime),
        };
        Ok(collector.causes(selection, knowledge, now)?)
    }
}

/// The failures of one run with their causes and actions, the most probable breakages of its branch first.
pub(super) fn table(causes: &Causes, columns: Option<usize>) -> String {
    const HEADER: [&str; 4] = ["CAUSE", "ON THIS BRANCH", "TEST", "WHY"];
    let Some(gate) = causes.gates.first() else {
        return "No test failed in this run".to_owned();
    };
    let mut failures: Vec<&CausedFailure> = causes.causes.iter().collect();
    failures.sort_by(|a, b| {
        (a.recovered, b.mine, &a.test_name)
            .partial_cmp(&(b.recovered, a.mine, &b.test_name))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let head = |failure: &CausedFailure| -> Vec<Cell> {
        vec![
            Cell::new(cause_words(failure.cause), tone(failure.action)),
            band(failure.mine).into(),
        ]
    };
    let rows = |failures: &[&CausedFailure]| {
        let rows = failures.iter().map(|failure| {
            let notes = vec![name(failure), failure.explanation.clone()];
            (head(failure), notes)
        });
        columns.and_then(|columns| table_with_notes(&HEADER[..2], rows, columns))
    };
    let in_lines = |failures: &[&CausedFailure]| {
        let rows = failures.iter().map(|failure| {
            let mut cells = head(failure);
            cells.extend([name(failure).into(), failure.explanation.as_str().into()]);
            cells
        });
        output::table(&HEADER, rows)
    };
    let text = rows(&failures).unwrap_or_else(|| in_lines(&failures));
    format!(
        "Run {} ({}){}\n\n{}\n{}\n",
        gate.run_number,
        assay_reports::shown_name(&gate.run),
        gate.branch.as_deref().map_or_else(String::new, |branch| format!(
            " on {}",
            assay_reports::shown_name(branch)
        )),
        text.trim_end(),
        advice(gate.action, gate.mine),
    )
}

fn advice(action: Action, mine: f64) -> String {
    let band = band(mine);
    match action {
        Action::Pass => format!("\nPass: a breakage by this change is {band}"),
        Action::Rerun => format!("\nRun this revision again: a breakage by this change is {band}"),
        Action::Block => format!("\nBlock: a breakage by this change is {band}"),
    }
}

const fn tone(action: Action) -> Tone {
    match action {
        Action::Pass => Tone::Good,
        Action::Rerun => Tone::Doubtful,
        Action::Block => Tone::Bad,
    }
}

fn name(failure: &CausedFailure) -> String {
    let mut name = failure.test_name.clone();
    if let Some(file) = failure.file_path.as_deref().filter(|file| !name.contains(file)) {
        name += &format!(" ({file})");
    }
    if !failure.variant.is_empty() {
        name += &format!(" [{}]", failure.variant);
    }
    if failure.recovered {
        name += ", passed on retry";
    }
    name
}
