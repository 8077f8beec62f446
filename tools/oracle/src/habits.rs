//! The behaviour of a generated test in one run.

use crate::{
    dice::Dice,
    generator::attempt,
    texts,
    world::{Attempt, CHECKOUT, Case, Fault, Manner, Spot, TEST_DIR},
};

/// The behaviour of a test over the runs.
#[derive(Clone, Copy)]
pub enum Habit {
    Green,
    /// Fails in this percentage of the runs.
    Flaky(i64),
    /// Fails from this point (in hundredths of the runs) on.
    BrokenSince(i64),
    Skipped,
    ExpectedFailure,
    /// `test.fail()`, but it passes in the newest tenth of the runs.
    UnexpectedPass,
    /// Runs again with its serial group.
    Serial,
    /// `--repeat-each=2`.
    Repeated,
    /// Fails in this percentage of the runs, usually by a timeout.
    TimesOut(i64),
    /// Fails in this percentage of the runs, without an error text.
    FailsWithoutText(i64),
}

/// A test and its behaviour.
pub struct Design {
    pub case: Case,
    pub habit: Habit,
    pub kind: i64,
    pub word: &'static str,
    pub line: i64,
}

/// One run of a test.
pub fn generate_case(design: &Design, share: i64, clock: &mut i64, dice: &mut Dice) -> Case {
    let mut case = design.case.clone();
    let passed = |clock: &mut i64, dice: &mut Dice| vec![attempt("passed", clock, dice)];
    let passed_on_retry = |clock: &mut i64, dice: &mut Dice| {
        let failures = dice.between(1, 2);
        let mut attempts = failing(design, failures, clock, dice);
        attempts.push(attempt("passed", clock, dice));
        attempts
    };
    case.executions = vec![match design.habit {
        Habit::Green => passed(clock, dice),
        Habit::Flaky(rate) | Habit::TimesOut(rate) | Habit::FailsWithoutText(rate) if dice.percent(rate) => {
            if dice.percent(60) {
                passed_on_retry(clock, dice)
            } else {
                failing(design, 3, clock, dice)
            }
        }
        Habit::Flaky(_) | Habit::TimesOut(_) | Habit::FailsWithoutText(_) => passed(clock, dice),
        Habit::BrokenSince(part) if share >= part => failing(design, 3, clock, dice),
        Habit::BrokenSince(_) => passed(clock, dice),
        Habit::Skipped => {
            case.manner = Manner::Skipped;
            vec![Attempt {
                duration: Some(0),
                ..attempt("skipped", clock, dice)
            }]
        }
        Habit::ExpectedFailure => {
            case.manner = Manner::ExpectedFailure;
            failing(design, 1, clock, dice)
        }
        // Only in the newest tenth, because such a test fails the run.
        Habit::UnexpectedPass if share >= 90 => {
            case.manner = Manner::UnexpectedPass;
            (0..3).map(|_| attempt("passed", clock, dice)).collect()
        }
        Habit::UnexpectedPass => {
            case.manner = Manner::ExpectedFailure;
            failing(design, 1, clock, dice)
        }
        Habit::Serial => {
            let first = if dice.percent(50) { "skipped" } else { "passed" };
            let mut attempts = Vec::new();
            if dice.percent(40) {
                attempts.push(attempt(first, clock, dice));
            }
            attempts.push(attempt("passed", clock, dice));
            attempts
        }
        Habit::Repeated => passed(clock, dice),
    }];
    if matches!(design.habit, Habit::Repeated) {
        let second = if dice.percent(10) {
            failing(design, 2, clock, dice)
        } else if dice.percent(10) {
            passed_on_retry(clock, dice)
        } else {
            passed(clock, dice)
        };
        case.executions.push(second);
        if dice.percent(50) {
            case.executions.reverse();
        }
    }
    case
}

/// This many failed attempts.
pub fn failing(design: &Design, times: i64, clock: &mut i64, dice: &mut Dice) -> Vec<Attempt> {
    (0..times)
        .map(|_| {
            let timed_out = matches!(design.habit, Habit::TimesOut(_)) && dice.percent(80);
            let mut failed_attempt = attempt(if timed_out { "timedOut" } else { "failed" }, clock, dice);
            if timed_out {
                failed_attempt.faults.push(fault(design, 1, design.word, dice));
            }
            if !matches!(design.habit, Habit::FailsWithoutText(_)) {
                let kind = if dice.percent(80) {
                    design.kind
                } else {
                    dice.between(0, texts::KINDS - 1)
                };
                if !(timed_out && kind == 1) {
                    failed_attempt.faults.push(fault(design, kind, design.word, dice));
                }
                if dice.percent(15) {
                    let word = *dice.pick(&texts::WORDS);
                    failed_attempt.faults.push(fault(design, 9, word, dice));
                }
            }
            failed_attempt
        })
        .collect()
}

fn fault(design: &Design, kind: i64, word: &str, dice: &mut Dice) -> Fault {
    let spot = Spot {
        file: format!("{CHECKOUT}/{TEST_DIR}/{}", design.case.suite),
        line: design.line,
        column: dice.between(3, 60),
    };
    texts::fault(kind, word, &spot, dice)
}
