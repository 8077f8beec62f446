//! The golden vectors of the causes: a new revision breaks a test with a probability of 0.001 on the stable branch and of
//! 0.0005 on others.
//!
//! The figures were computed by a Python program that shares no code with the engine: a plain filter and smoother for each
//! flake rate, written from docs/causes.md, with stale bases (vector 4) and the factors of texts (vectors 6 and 7). Vectors
//! 10 and 11, with several variants, are those of the engine that agrees with the plain model of `tests/it`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use assay_domain::timestamp::Timestamp;

use super::{
    links::{ChainFacts, ResultFacts, Sequence},
    parts::{PRIOR, Parts, smooth},
    texts::{Share, TextShares},
    witnesses::{self, Sighting},
};
use crate::model::{FailedExecutions, Outcome};

/// The time this many days after the Unix epoch.
fn at(day: f64) -> Timestamp {
    let since_start = Duration::from_secs_f64(day * 86_400.0);
    Timestamp::from_unix_ms(i64::try_from(since_start.as_millis()).unwrap())
}

/// One result of a golden vector: P, R (passed on retry) or F.
#[derive(Debug, Clone, PartialEq)]
struct Letter {
    day: f64,
    branch: &'static str,
    variant: &'static str,
    revision: (&'static str, u32),
    letter: char,
    beta: f64,
}

/// Parses a golden vector. Each letter is a result on a new revision; letters in parentheses share one revision. `*`
/// after a letter sets the background of its run to 0.5.
fn letters(
    text: &str,
    branch: &'static str,
    variant: &'static str,
    (start, step): (f64, f64),
    first_revision: u32,
) -> Vec<Letter> {
    let (mut letters, mut inside, mut revision, mut day) =
        (Vec::<Letter>::new(), false, first_revision, start);
    for sign in text.chars() {
        match sign {
            '(' => {
                inside = true;
                revision += 1;
            }
            ')' => inside = false,
            '*' => letters.last_mut().unwrap().beta = 0.5,
            letter => {
                revision += u32::from(!inside);
                letters.push(Letter {
                    day,
                    branch,
                    variant,
                    revision: (branch, revision),
                    letter,
                    beta: 0.0,
                });
                day += step;
            }
        }
    }
    letters
}

fn main_branch(text: &str) -> Vec<Letter> {
    letters(text, "main", "", (0.0, 0.4), 0)
}

fn on(branch: &'static str, text: &str, start: f64, step: f64) -> Vec<Letter> {
    letters(text, branch, "", (start, step), 0)
}

/// The parts of one result, and P(the test is unreliable).
fn judge(letters: &[Letter], wanted: &Letter) -> (Parts, f64) {
    let mut first: BTreeMap<(&str, u32), f64> = BTreeMap::new();
    for letter in letters {
        let first_day = first.entry(letter.revision).or_insert(letter.day);
        *first_day = first_day.min(letter.day);
    }
    let mut ordered: Vec<&Letter> = letters.iter().collect();
    ordered.sort_by(|a, b| {
        let key = |letter: &Letter| (first[&letter.revision], letter.day);
        key(a)
            .partial_cmp(&key(b))
            .unwrap()
            .then(a.variant.cmp(b.variant))
    });
    let place = |names: &mut Vec<(&'static str, &'static str)>, name| {
        names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        })
    };
    let (mut chains, mut branches, mut revisions) = (Vec::new(), Vec::new(), Vec::new());
    let mut results = Vec::new();
    for letter in &ordered {
        let revision = revisions
            .iter()
            .position(|known| *known == letter.revision)
            .unwrap_or_else(|| {
                revisions.push(letter.revision);
                revisions.len() - 1
            });
        results.push(ResultFacts {
            chain: place(&mut chains, (letter.branch, letter.variant)),
            run: results.len(),
            revision,
            outcome: match letter.letter {
                'P' => Outcome::Passed,
                'R' => Outcome::Recovered(1),
                _ => Outcome::Failed(FailedExecutions {
                    attempts: 1,
                    failed: 1,
                    all: 1,
                }),
            },
            text: None,
            beta: letter.beta,
            chi: 1.0,
            started_at: at(letter.day),
            stable_rates: (0.001, 0.05),
            failed_before: false,
            calendar: 0.0,
            witnesses: 0,
            base: None,
        });
    }
    let variants: BTreeSet<&str> = chains.iter().map(|(_, variant)| *variant).collect();
    let facts = chains.iter().map(|(branch, variant)| ChainFacts {
        branch: place(&mut branches, (*branch, "")),
        stable: *branch == "main",
        queue: false,
        variant: variants.iter().position(|known| known == variant).unwrap(),
        is_over: false,
        base: chains.iter().position(|chain| *chain == ("main", *variant)),
    });
    let facts: Vec<ChainFacts> = facts.collect();
    let sightings: Vec<Sighting> = results
        .iter()
        .map(|result| Sighting {
            branch: facts[result.chain].branch,
            pull_requests: &[],
            variant: facts[result.chain].variant,
            stable: facts[result.chain].stable,
            is_no_sign: false,
            outcome: result.outcome,
            text: None,
            started_at: result.started_at,
            beta: result.beta,
        })
        .collect();
    for (result, found) in results.iter_mut().zip(witnesses::find(&sightings)) {
        result.witnesses = found.branches;
    }
    let sequence = Sequence {
        pull_requests: vec![Arc::default(); facts.len()],
        chains: facts,
        results,
        asks_for_stable: false,
        outage_ratios: (0.0, 0.0),
    };
    let smoothed = smooth(&sequence, 0.0005, &PRIOR);
    let index = ordered.iter().position(|letter| *letter == wanted).unwrap();
    let variant = sequence.chains[sequence.results[index].chain].variant;
    (smoothed.parts[index].unwrap(), smoothed.unreliable[variant])
}

#[track_caller]
fn check(case: &str, letters: &[Letter], wanted: usize, counts: Option<TextShares>, expected: [f64; 7]) {
    let (parts, unreliable) = judge(letters, &letters[wanted]);
    let parts = counts.map_or(parts, |counts| counts.weigh(&parts));
    for (actual, expected) in parts.iter().chain([&unreliable]).zip(expected) {
        assert!(
            (actual - expected).abs() < 6e-9,
            "{case}: {parts:?} {unreliable} is not {expected}"
        );
    }
}

fn last(letters: &[Letter]) -> usize {
    letters.len() - 1
}

/// Twenty passes on `main`, then these results.
fn after_passes(more: &[Vec<Letter>]) -> Vec<Letter> {
    [main_branch(&"P".repeat(20))]
        .into_iter()
        .chain(more.iter().cloned())
        .flatten()
        .collect()
}

#[test]
fn a_clean_test_that_fails_on_a_branch_was_broken_by_the_branch() {
    let story = after_passes(&[on("a", "F", 8.1, 0.4)]);
    let expected = [
        0.30393477, 0.00000000, 0.00000000, 0.00097640, 0.00000000, 0.69508883, 0.30886249,
    ];
    check("1", &story, last(&story), None, expected);
}

#[test]
fn a_rerun_that_fails_too_confirms_the_breakage() {
    let story = after_passes(&[on("a", "(FF)", 8.1, 0.05)]);
    let expected = [
        0.02016705, 0.00000000, 0.00007715, 0.00137424, 0.00000000, 0.97838156, 0.04631547,
    ];
    check("2", &story, last(&story), None, expected);
}

#[test]
fn a_rerun_that_passes_makes_the_failure_a_flake_with_hindsight() {
    let story = after_passes(&[on("a", "(FP)", 8.1, 0.05)]);
    let expected = [
        0.99048741, 0.00000000, 0.00000000, 0.00001334, 0.00000000, 0.00949925, 0.94441706,
    ];
    check("3", &story, story.len() - 2, None, expected);
}

#[test]
fn a_branch_inherits_what_the_stable_branch_broke() {
    let story = after_passes(&[letters("FF", "main", "", (8.0, 0.4), 20), on("a", "F", 8.9, 0.4)]);
    let expected = [
        0.00301701, 0.00000000, 0.00045718, 0.99606816, 0.00000000, 0.00045764, 0.02995466,
    ];
    check("4", &story, last(&story), None, expected);
}

fn flaky_on_main() -> Vec<Letter> {
    let main = main_branch("PPPPFPPPPPPP(FP)PPPPPFPPPPP");
    main.into_iter().chain(on("a", "F", 11.0, 0.4)).collect()
}

#[test]
fn a_flaky_test_flakes_on_a_branch_too() {
    let story = flaky_on_main();
    let expected = [
        0.99171398, 0.00000000, 0.00000000, 0.00004765, 0.00000000, 0.00823837, 1.00000000,
    ];
    check("5", &story, last(&story), None, expected);
}

fn share(of_text: f64, of_all: f64) -> Share {
    Share { of_text, of_all }
}

#[test]
fn a_failure_with_the_text_of_earlier_flakes_is_a_flake() {
    let story = flaky_on_main();
    let counts = TextShares {
        flake: share(2.9, 3.0),
        known: share(3.0, 3.0),
        pairs: 40.0,
        ..TextShares::default()
    };
    let expected = [
        0.99799077, 0.00000000, 0.00000000, 0.00001155, 0.00000000, 0.00199768, 1.00000000,
    ];
    check("6", &story, last(&story), Some(counts), expected);
}

#[test]
fn a_new_text_makes_the_change_more_probable() {
    let story = flaky_on_main();
    let counts = TextShares {
        flake: share(0.0, 2.9),
        known: share(0.0, 3.0),
        pairs: 40.0,
        ..TextShares::default()
    };
    let expected = [
        0.96637800, 0.00000000, 0.00000000, 0.00019334, 0.00000000, 0.03342866, 1.00000000,
    ];
    check("7", &story, last(&story), Some(counts), expected);
}

#[test]
fn the_change_and_the_run_are_equally_probable_causes_of_a_crowd_on_a_new_revision() {
    let story = after_passes(&[on("a", "F*", 8.1, 0.4)]);
    let expected = [
        0.00021825, 0.49964075, 0.00000000, 0.00000210, 0.00000000, 0.50013889, 0.02674289,
    ];
    check("8", &story, last(&story), None, expected);
}

#[test]
fn the_second_failing_revision_of_a_branch_was_broken_by_the_first() {
    let story = after_passes(&[on("a", "PFF", 8.1, 0.1)]);
    let expected = [
        0.04456025, 0.00000000, 0.00000000, 0.00080631, 0.95413755, 0.00049589, 0.06998604,
    ];
    check("9", &story, last(&story), None, expected);
}

fn variants(ends: [&str; 3]) -> Vec<Letter> {
    let lanes = ["a", "b", "c"].into_iter().zip(ends);
    let lane = |(variant, end): (&'static str, &str)| {
        letters(
            &format!("{}{end}", "P".repeat(20)),
            "main",
            variant,
            (0.0, 0.4),
            0,
        )
    };
    lanes.flat_map(lane).collect()
}

#[test]
fn three_variants_that_fail_at_one_revision_confirm_each_other() {
    let story = variants(["F", "F", "F"]);
    let expected = [
        0.00009255, 0.00000000, 0.00000000, 0.00000034, 0.00000000, 0.99990712, 0.01240739,
    ];
    check("10", &story, last(&story), None, expected);
}

#[test]
fn a_variant_that_fails_alone_may_be_a_flake() {
    let story = variants(["F", "P", "P"]);
    let expected = [
        0.50269834, 0.00000000, 0.00000000, 0.00622862, 0.00000000, 0.49107304, 0.44561760,
    ];
    check("11", &story, 20, None, expected);
}

#[test]
fn a_failure_on_another_branch_an_hour_before_makes_a_flake_more_probable() {
    let story = after_passes(&[on("b", "F", 8.05, 0.4), on("a", "F", 8.1, 0.4)]);
    let expected = [
        0.87935103, 0.00000000, 0.06025130, 0.00008605, 0.00000000, 0.06031162, 0.91578224,
    ];
    check("12", &story, last(&story), None, expected);
}
