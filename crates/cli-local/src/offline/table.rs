//! The analysis as a table for a terminal.

use assay_cli_terminal::{
    output,
    table::{Cell, Tone, table_with_notes},
};
use assay_domain::verdict::{Figures, VerdictEntry, VerdictStatus};

use crate::analysis::{Analysis, AnalyzedTest, Outcome};

/// The number of a test's newest runs that are drawn.
const DRAWN_RUNS: usize = 24;

/// Most errors outside of tests that are shown.
const MOST_ERRORS: usize = 20;

/// Replaces the part that all names share.
const SHARED: &str = "…";

/// The broken, flaky and failing tests, and the number of others, for a terminal with this many columns.
pub fn table(analysis: &Analysis, columns: Option<usize>) -> String {
    let reported = analysis.reported();
    let count = |status| analysis.count(status);
    let mut text = format!(
        "{} and {} of the {} days before {}\nStable branch: {}\n{}\n",
        output::count(analysis.runs, "run"),
        output::count(analysis.tests.len(), "test"),
        analysis.window_days,
        analysis.now,
        analysis.stable_branch,
        analysis.stable.explanation,
    );
    let failing = analysis.failing();
    let rows_of = |judged: &[AnalyzedTest]| {
        let rows: Vec<Row> = judged.iter().map(|judged| Row::of(analysis, judged)).collect();
        layout(&rows, columns)
    };
    if !reported.is_empty() {
        text.push('\n');
        text += &rows_of(reported);
    }
    if !failing.is_empty() {
        text += "\nFailing now\n";
        text += &rows_of(failing);
    }
    if let [_, ..] = analysis.report_errors.as_slice() {
        text += "\nErrors outside of tests\n";
        for error in analysis.report_errors.iter().take(MOST_ERRORS) {
            let runs = output::count(error.runs, "run");
            text += &format!("  {runs}, the newest {}: {}\n", error.last_run, error.message);
        }
        let others = analysis.report_errors.len().saturating_sub(MOST_ERRORS);
        if others > 0 {
            text += &format!("  {others} more: --output json\n");
        }
    }
    if !reported.is_empty() || !failing.is_empty() {
        text += "\nRuns: ▁ passed, ▄ passed on retry, █ failed, · skipped; the newest on the right\n";
    }
    text + &format!(
        "\n{} broken, {} flaky, {}and {}: {} healthy, {} with too few runs for a verdict\n",
        count(VerdictStatus::Broken),
        count(VerdictStatus::Flaky),
        match failing.len() {
            0 => String::new(),
            failing => format!("{failing} failing now, "),
        },
        output::count(analysis.others().len(), "other test"),
        count(VerdictStatus::Healthy),
        count(VerdictStatus::InsufficientData),
    )
}

/// A row of the table.
struct Row {
    verdict: Cell,
    name: String,
    /// The score, the share of failed or retried runs, the lost time, the newest runs.
    figures: [Cell; 4],
    why: String,
}

impl Row {
    fn of(analysis: &Analysis, judged: &AnalyzedTest) -> Self {
        let VerdictEntry {
            status,
            figures,
            explanation,
            ..
        } = &judged.entry;
        let runs = analysis
            .recent(judged, DRAWN_RUNS)
            .into_iter()
            .map(|(_, outcome)| bar(outcome));
        Self {
            verdict: Cell::new(status.to_string(), tone(*status)),
            name: name(&judged.entry),
            figures: [
                format!("{:.2}", figures.flake_score).into(),
                failed_or_retried(figures).into(),
                figures.time_lost_ms.map_or(String::new(), lost_time).into(),
                runs.collect::<String>().into(),
            ],
            why: explanation.clone(),
        }
    }

    /// The row with this name and without the reason.
    fn cells(&self, name: &str) -> Vec<Cell> {
        [self.verdict.clone(), name.into()]
            .into_iter()
            .chain(self.figures.clone())
            .collect()
    }
}

/// The widest layout that fits: one line per test; the reason on a second line; names without their shared part; the
/// name on its own line too.
fn layout(rows: &[Row], columns: Option<usize>) -> String {
    const HEADER: [&str; 7] = [
        "VERDICT",
        "TEST",
        "SCORE",
        "FAILED OR RETRIED",
        "LOST",
        "LAST RUNS",
        "WHY",
    ];
    let [verdict, test, figures @ .., _why] = HEADER;
    let in_lines = || {
        rows.iter().map(|row| {
            (
                row.cells(&row.name)
                    .into_iter()
                    .chain([row.why.as_str().into()])
                    .collect(),
                Vec::new(),
            )
        })
    };
    let fitting = columns.and_then(|columns| {
        let header = [&[verdict, test][..], &figures].concat();
        let with_names = |names: &[String]| {
            let rows = rows.iter().zip(names);
            let rows = rows.map(|(row, name)| (row.cells(name), vec![row.why.clone()]));
            table_with_notes(&header, rows, columns)
        };
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        let below = || {
            let rows = rows.iter().map(|row| {
                let cells = [row.verdict.clone()]
                    .into_iter()
                    .chain(row.figures.clone())
                    .collect();
                (cells, vec![row.name.clone(), row.why.clone()])
            });
            table_with_notes(&[&[verdict][..], &figures].concat(), rows, columns)
        };
        table_with_notes(&HEADER, in_lines(), columns)
            .or_else(|| with_names(&names))
            .or_else(|| with_names(&without_shared(&names)?))
            .or_else(below)
    });
    fitting.unwrap_or_else(|| output::table(&HEADER, in_lines().map(|(cells, _): (Vec<Cell>, _)| cells)))
}

/// The names without the beginning and the end that all of them share, cut at word boundaries; `None` if they share
/// nothing.
fn without_shared(names: &[String]) -> Option<Vec<String>> {
    let first = names.first()?;
    // A single name, or equal names, would lose everything that identifies them.
    if names.iter().all(|name| name == first) {
        return None;
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let shared = |name: &str, other: &str| -> usize {
        let pairs = name.char_indices().zip(other.chars());
        pairs
            .take_while(|((_, a), b)| a == b)
            .last()
            .map_or(0, |((at, c), _)| at + c.len_utf8())
    };
    let before = names.iter().map(|name| shared(first, name)).min()?;
    let before = first.get(..before)?.trim_end_matches(is_word).len();
    let rests: Vec<&str> = names
        .iter()
        .map(|name| name.get(before..))
        .collect::<Option<_>>()?;
    let backwards: Vec<String> = rests.iter().map(|rest| rest.chars().rev().collect()).collect();
    let last = backwards.first()?;
    let after = backwards.iter().map(|name| shared(last, name)).min()?;
    let after = last.get(..after)?.trim_end_matches(is_word).len();
    if (before == 0 && after == 0) || rests.iter().any(|rest| rest.len() <= after) {
        return None;
    }
    let mark = |is_cut: bool| if is_cut { SHARED } else { "" };
    let cut = |rest: &&str| {
        let middle = rest.get(..rest.len() - after).unwrap_or(rest);
        format!("{}{middle}{}", mark(before > 0), mark(after > 0))
    };
    Some(rests.iter().map(cut).collect())
}

/// The name, with its file if the name alone does not identify the test.
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

fn failed_or_retried(figures: &Figures) -> String {
    figures
        .failure_rate
        .map_or(String::new(), |rate| format!("{:.0}%", rate * 100.0))
}

fn lost_time(ms: u64) -> String {
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
        Outcome::MassFailure | Outcome::Failed => '█',
        Outcome::Skipped => '·',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(names: &[&str]) -> Option<Vec<String>> {
        without_shared(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn names_lose_only_their_shared_part() {
        assert_eq!(
            cut(&[
                "org.example.shop.CartTest > adds",
                "org.example.shop.CardTest > pays"
            ])
            .unwrap(),
            ["…CartTest > adds", "…CardTest > pays"]
        );
        assert_eq!(
            cut(&[
                "web > adds (tests/shop.spec.ts)",
                "ios > adds (tests/shop.spec.ts)"
            ])
            .unwrap(),
            ["web…", "ios…"]
        );
        assert_eq!(cut(&["a > x", "b > y"]), None);
        assert_eq!(cut(&["a > x", "a > x"]), None);
        assert_eq!(cut(&["a > x"]), None);
        assert_eq!(cut(&["é.ü.a", "é.ü.b"]).unwrap(), ["…a", "…b"]);
    }

    fn row(name: &str) -> Row {
        Row {
            verdict: Cell::new("flaky", Tone::Doubtful),
            name: name.to_owned(),
            figures: ["0.99", "43%", "63ms", "▁█▁█▁█▁▁█▁█▁█▁▁█▁█▁█▁▁▁█"].map(Into::into),
            why: "Failed in 3 separate episodes; breakages and their fixes do not explain them".to_owned(),
        }
    }

    fn shown(rows: &[Row], columns: Option<usize>) -> String {
        anstream::adapter::strip_str(&layout(rows, columns)).to_string()
    }

    #[test]
    fn at_80_columns_every_name_and_reason_is_whole_and_no_line_too_long() {
        let long = format!(
            "chromium > {} > pays",
            "a very long describe block ".repeat(5).trim()
        );
        let other = long.replace("chromium", "webkit");
        let rows = [row("webkit > shop.spec.ts > pays"), row(&long), row(&other)];
        let text = shown(&rows, Some(80));
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let words = words.join(" ");
        for row in &rows {
            let expected = format!("{} {}", row.name, row.why);
            assert!(words.contains(&expected), "{expected} in {text}");
        }
        assert!(
            text.starts_with("VERDICT  SCORE  FAILED OR RETRIED  LOST  LAST RUNS\n"),
            "{text}"
        );

        // Short names stay in the row; only the reason gets its own line.
        let short = shown(&[row("adds"), row("pays")], Some(80));
        assert!(short.starts_with("VERDICT  TEST  SCORE"), "{short}");
        assert!(short.contains("\n  Failed in 3 separate episodes"), "{short}");
        // In a pipe, a test is one line.
        assert_eq!(shown(&rows, None).lines().count(), 4);
        assert_eq!(shown(&rows, Some(400)).lines().count(), 4);
    }

    #[test]
    fn shortened_names_with_a_long_common_prefix_stay_different() {
        let rows = [
            row("org.example.shop.checkout.payments > adds"),
            row("org.example.shop.checkout.payments > pays"),
        ];
        let text = shown(&rows, Some(80));
        assert!(
            text.contains("flaky    …adds") && text.contains("flaky    …pays"),
            "{text}"
        );
    }
}
