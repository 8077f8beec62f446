//! The analysis for a terminal.

use assay_analysis::{Analysis, Judged, Outcome};
use assay_domain::verdict::{Figures, VerdictEntry, VerdictStatus};

use crate::{
    output,
    table::{Cell, Tone},
};

/// How many of a test's newest runs are drawn.
const DRAWN_RUNS: usize = 24;

/// Broken and flaky tests, those that fail now, and how many others there are.
pub(super) fn table(analysis: &Analysis) -> String {
    let reported = analysis.reported();
    let count = |status| analysis.count(status);
    let mut text = format!(
        "{} and {} of the {} days before {}; stable branch {}\n",
        output::count(number(analysis.runs), "run"),
        output::count(number(analysis.tests.len()), "test"),
        analysis.window_days,
        analysis.now,
        analysis.stable_branch,
    );
    let failing = analysis.failing();
    let header = ["VERDICT", "TEST", "SCORE", "FAILED", "LOST", "LAST RUNS", "WHY"];
    if !reported.is_empty() {
        text.push('\n');
        text += &output::table(&header, reported.iter().map(|judged| row(analysis, judged)));
    }
    if !failing.is_empty() {
        text += "\nFailing now\n";
        text += &output::table(&header, failing.iter().map(|judged| row(analysis, judged)));
    }
    if !reported.is_empty() || !failing.is_empty() {
        text += "\nA run is ▁ passed, ▄ passed on retry, █ failed, · skipped; the newest stands right.\n";
    }
    text + &format!(
        "\n{} broken, {} flaky, {}and {}: {} healthy, {} with too few runs to say\n",
        count(VerdictStatus::Broken),
        count(VerdictStatus::Flaky),
        match failing.len() {
            0 => String::new(),
            failing => format!("{failing} failing now, "),
        },
        output::count(number(analysis.others().len()), "other test"),
        count(VerdictStatus::Healthy),
        count(VerdictStatus::InsufficientData),
    )
}

fn row(analysis: &Analysis, judged: &Judged) -> Vec<Cell> {
    let VerdictEntry {
        status,
        figures,
        explanation,
        ..
    } = &judged.entry;
    vec![
        Cell::new(status.to_string(), tone(*status)),
        name(&judged.entry).into(),
        format!("{:.2}", figures.flake_score).into(),
        failed(figures).into(),
        figures.time_lost_ms.map_or(String::new(), lost).into(),
        analysis
            .recent(judged, DRAWN_RUNS)
            .into_iter()
            .map(bar)
            .collect::<String>()
            .into(),
        explanation.as_str().into(),
    ]
}

/// The name, with its file where that tells more.
fn name(entry: &VerdictEntry) -> String {
    let name = &entry.test_name;
    match &entry.file_path {
        Some(file) if !entry.test_name.contains(file.as_str()) => format!("{name} ({file})"),
        Some(_) | None => name.clone(),
    }
}

const fn tone(status: VerdictStatus) -> Tone {
    match status {
        VerdictStatus::Broken => Tone::Bad,
        VerdictStatus::Flaky => Tone::Doubtful,
        VerdictStatus::Failing => Tone::Bad,
        VerdictStatus::Healthy => Tone::Good,
        VerdictStatus::InsufficientData => Tone::Faint,
    }
}

fn failed(figures: &Figures) -> String {
    figures
        .failure_rate
        .map_or(String::new(), |rate| format!("{:.0}%", rate * 100.0))
}

fn lost(ms: u64) -> String {
    match ms / 1_000 {
        0 => format!("{ms}ms"),
        seconds @ 1..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

const fn bar(outcome: Outcome) -> char {
    match outcome {
        Outcome::Passed => '▁',
        Outcome::Recovered => '▄',
        Outcome::Failed => '█',
        Outcome::Skipped => '·',
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
