//! The gate's decision as text, JSON and JUnit XML.
//!
//! Names and sentences come from reports and branches, so each form escapes them.

use assay_cli_local::analysis::cause_words;
use assay_cli_terminal::{output, terminal, wrap::wrapped};
use assay_domain::{cause::band, decision::GateOutcome};
use serde_json::{Value, json};

use crate::gate::policy::{Decision, Refusal, Reran};

/// Longest text of a report in any form, in characters.
const LONGEST_TEXT: usize = 500;

/// The decision for a terminal of this many columns, or for a log.
pub fn text(decision: &Decision, columns: Option<usize>) -> String {
    let indented = |text: &str| format!("  {text}\n");
    let mut text = format!("{}\n", headline(decision));
    if let Some(reran) = &decision.reran {
        text += &indented(&reran_in_words(reran));
    }
    if let Some(burn_in) = &decision.burn_in {
        text += &indented(&plain(&burn_in.in_words()));
    }
    for sentence in decision.problems.iter().chain(&decision.open) {
        text += &indented(&plain(sentence));
    }
    for (failure, refusal) in &decision.failed {
        let mark = if refusal.is_none() {
            "excused"
        } else {
            "not excused"
        };
        text += &format!(
            "\n{mark}: {}{}\n",
            plain(&failure.test_name),
            file(failure.file_path.as_deref()),
        );
        text += &indented(&format!(
            "{} (this change: {}). {}",
            cause_words(failure.cause),
            band(failure.mine),
            plain(&failure.explanation),
        ));
        if let Some(refusal) = refusal {
            text += &indented(&format!("Not excused: {}", refusal.sentence()));
        }
    }
    wrapped(&text, columns)
}

/// The decision as JSON.
pub fn json(decision: &Decision) -> Value {
    let failed = decision.failed.iter().map(|(failure, refusal)| {
        json!({
            "testName": failure.test_name,
            "filePath": failure.file_path,
            "cause": failure.cause,
            "mine": failure.mine,
            "explanation": failure.explanation,
            "excused": refusal.is_none(),
            "refusal": refusal.map(Refusal::word),
        })
    });
    json!({
        "outcome": decision.outcome,
        "passes": decision.outcome.passes(),
        "excused": decision.excused(),
        "problems": decision.problems,
        "failed": failed.collect::<Vec<_>>(),
    })
}

/// The failed tests as JUnit XML. Excused ones are skipped.
pub fn junit(decision: &Decision) -> String {
    let failures = decision.failed.len() - decision.excused();
    let problems = decision.problems.len();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"assay gate\" tests=\"{}\" \
         failures=\"{failures}\" errors=\"{problems}\" skipped=\"{}\">\n",
        decision.failed.len() + problems,
        decision.excused()
    );
    for problem in &decision.problems {
        xml += &format!(
            "<testcase classname=\"assay gate\" name=\"the run is valid\"><error message=\"{}\"/></testcase>\n",
            escaped(problem)
        );
    }
    for (failure, refusal) in &decision.failed {
        let file = failure.file_path.as_deref().unwrap_or_default();
        let result = match refusal {
            None => format!(
                "<skipped message=\"Excused: {}\"/>",
                escaped(&failure.explanation)
            ),
            Some(refusal) => format!(
                "<failure message=\"{}\">{}</failure>",
                escaped(&format!("Not excused: {}", refusal.sentence())),
                escaped(&failure.explanation)
            ),
        };
        xml += &format!(
            "<testcase classname=\"{}\" name=\"{}\" file=\"{}\">{result}</testcase>\n",
            escaped(file),
            escaped(&failure.test_name),
            escaped(file)
        );
    }
    xml + "</testsuite>\n</testsuites>\n"
}

/// `Ran 2 tests again, 3 times, 14 s: this change, P .004`.
fn reran_in_words(reran: &Reran) -> String {
    let times = match reran.times {
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    let mine = match reran.mine {
        mine if mine < 0.001 => "below .001".to_owned(),
        mine if mine > 0.999 => "above .999".to_owned(),
        mine => format!("{mine:.3}").trim_start_matches('0').to_owned(),
    };
    format!(
        "Ran {} again, {times}, {:.0} s: this change, P {mine}",
        output::count(reran.tests, "test"),
        reran.seconds.max(1.0),
    )
}

fn headline(decision: &Decision) -> String {
    let failed = |count: usize| output::count(count, "failed test");
    let all = decision.failed.len();
    let excused = decision.excused();
    match decision.outcome {
        GateOutcome::Clean => "Gate: passes, no test failed".to_owned(),
        GateOutcome::Excused => format!("Gate: passes, {} excused", failed(all)),
        GateOutcome::Rerun => {
            let state = match decision.reran {
                None => "not decided, run this revision again",
                Some(_) => "not decided after reruns",
            };
            format!("Gate: {state}; {excused} of {} excused", failed(all))
        }
        GateOutcome::Blocked => match all {
            0 => "Gate: does not pass".to_owned(),
            all => format!("Gate: does not pass, {excused} of {} excused", failed(all)),
        },
    }
}

/// A text of a report on one line, without control characters, of a bounded length.
fn plain(text: &str) -> String {
    let line: String = terminal::one_line(text).chars().take(LONGEST_TEXT).collect();
    assay_reports::shown_name(&line)
}

fn file(path: Option<&str>) -> String {
    path.map_or_else(String::new, |path| format!(" ({})", plain(path)))
}

fn escaped(text: &str) -> String {
    plain(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::judged::{
        JudgedFailure,
        fixture::{flake, run},
    };

    fn decision(name: &str, count: usize) -> Decision {
        let failure = JudgedFailure {
            file_path: Some("a/b.ts".to_owned()),
            ..flake(name)
        };
        Decision {
            outcome: GateOutcome::Blocked,
            problems: vec!["The report is not complete: `rm` @all".to_owned()],
            failed: vec![(failure.clone(), None), (failure, Some(Refusal::New))]
                .into_iter()
                .cycle()
                .take(count)
                .collect(),
            open: Vec::new(),
            reran: None,
            burn_in: None,
            judged: run(Vec::new()),
            reruns: None,
        }
    }

    #[test]
    fn reruns_are_one_line() {
        let reran = |mine, times| Decision {
            reran: Some(Reran {
                tests: 2,
                times,
                seconds: 14.2,
                mine,
            }),
            ..decision("pays", 1)
        };
        let line = "Ran 2 tests again, 3 times, 14 s: this change, P .004\n";
        assert!(text(&reran(0.004, 3), None).contains(line));
        assert!(text(&reran(0.000_1, 1), None).contains("once, 14 s: this change, P below .001"));
        let narrow = text(&decision("pays", 1), Some(40));
        assert!(!narrow.contains("Ran "));
        assert!(narrow.lines().skip(1).all(|line| line.len() <= 40), "{narrow}");
    }

    #[test]
    fn junit_xml_skips_what_is_excused() {
        let xml = junit(&decision("a < b & \"c\"", 2));
        assert!(
            xml.contains("tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"1\""),
            "{xml}"
        );
        assert!(xml.contains("name=\"a &lt; b &amp; &quot;c&quot;\""), "{xml}");
        assert!(
            xml.contains("<skipped message=\"Excused: Failed in 4 of 120"),
            "{xml}"
        );
    }
}
