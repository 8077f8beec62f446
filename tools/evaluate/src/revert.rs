//! Evaluates the advice on what to revert, on simulated stable branches with planted breakages and on real histories.

use std::collections::BTreeMap;

use assay_answers::failures::{Beginnings, RevertAdvice};
use assay_flakiness::{
    Diagnose as _, Engine, ErrorTexts, FailureCause,
    domain::{
        cause::{Cause, Knowledge, RevertAction},
        observation::{History, RunObservations},
        timestamp::Timestamp,
    },
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    breakage::{Breakage, Flakes, Texts},
    causes::{BranchRun, COUNTED_FROM, CausesWorld},
    gate_counts::Bands,
    results::{TestResult, by_test},
    runs::DAYS,
};

/// Tests of a simulated project.
const TESTS: u32 = 300;
/// The share of flaky tests.
const FLAKY: f64 = 0.08;
/// The share of revisions that break something.
const BREAKS: f64 = 0.06;

/// A stable branch: every breakage begins with a new revision and lasts some runs.
fn world(seed: u64, planted: &mut u32) -> CausesWorld {
    let mut random = StdRng::seed_from_u64(seed);
    let mut texts = Texts::after(0);
    let flakes = Flakes::draw(TESTS, FLAKY, (-2.3, -0.5), &mut random);
    let mut world = CausesWorld::empty(TESTS);
    // The breakages, each with its last run.
    let mut broken: Vec<(u32, Breakage)> = Vec::new();
    let (mut at, mut revision, mut number) = (0.0, 0, 0);
    while at < DAYS {
        at += random.random_range(0.1..0.35);
        number += 1;
        broken.retain(|(last, _)| *last >= number);
        if random.random_bool(0.85) {
            revision += 1;
            if random.random_bool(BREAKS) {
                *planted += 1;
                let last = number + random.random_range(0..6);
                broken.push((last, Breakage::new(revision, TESTS, &mut texts, &mut random)));
            }
        }
        let outage = random
            .random_bool(0.01)
            .then(|| (random.random_range(0.05..0.5), texts.next()));
        let run = BranchRun {
            own: broken.iter().map(|(_, breakage)| breakage.clone()).collect(),
            outage,
            ..BranchRun::new(at, 0, revision)
        };
        world.execute(run, |run, test| {
            let random = &mut random;
            if let Some(failure) = run.broken(test, random) {
                return Some(failure);
            }
            if let Some(text) = run.outage_text(random) {
                return Some((Cause::Environment, text));
            }
            Some((Cause::Flake, flakes.text(test, random)?))
        });
    }
    world
}

/// The revision that broke a test in a run; none if its failure has another cause.
fn culprit(world: &CausesWorld, place: usize, test: u32) -> Option<String> {
    if world.truth.get(&(place, test)) != Some(&Cause::BrokenBefore) {
        return None;
    }
    let own = &world.runs.get(place)?.own;
    let breakage = own.iter().find(|breakage| breakage.tests.contains_key(&test))?;
    Some(format!("main-{}", breakage.revision))
}

/// A commit is named from this probability on.
const NAMED: f64 = 0.95;
/// A breakage is known by this many failures in a row.
const LASTS: usize = 3;

/// What the advice said of failures whose culprit is known.
struct Score {
    /// The failures by the probability of the suspect, and whether it is the culprit.
    bands: Bands,
    /// Failures of a commit that the advice keeps, and those of them that it broke.
    kept: u32,
    wrongly_kept: u32,
    /// The named commits, and whether any of the failures that named them is theirs.
    named: BTreeMap<String, bool>,
}

impl Score {
    fn new() -> Self {
        Self {
            bands: Bands::new(&[0.5, 0.8, NAMED, 1.0]),
            kept: 0,
            wrongly_kept: 0,
            named: BTreeMap::new(),
        }
    }

    /// Adds the advice for a failure of the revision `here`. `broke` says whether a revision broke the test; none if that is
    /// not known.
    fn add(&mut self, advice: &RevertAdvice, here: &str, broke: impl Fn(&str) -> Option<bool>) {
        if let Some(named) = broke(&advice.suspect).filter(|_| advice.action != RevertAction::Nothing) {
            self.bands.add(advice.probability, named);
            if advice.probability >= NAMED {
                *self.named.entry(advice.suspect.clone()).or_default() |= named;
            }
        }
        if let Some(broke) = broke(here).filter(|_| advice.action == RevertAction::Keep) {
            self.kept += 1;
            self.wrongly_kept += u32::from(broke);
        }
    }

    fn text(&self) -> String {
        let innocent = self.named.values().filter(|is_culprit| !**is_culprit).count();
        format!(
            "{} times \"do not revert\", of which {} were about the culprit; {} commits named, {innocent} of them innocent\n\n{}",
            self.kept,
            self.wrongly_kept,
            self.named.len(),
            self.bands.table()
        )
    }
}

/// The failures of a run at its time, each with the advice.
fn advised(
    history: &History,
    texts: &ErrorTexts,
    observed: &RunObservations,
    text_of: impl Fn(Option<u32>) -> Option<u32>,
) -> Vec<(FailureCause, RevertAdvice)> {
    let (number, now) = (observed.run.number, observed.run.started_at);
    let mut causes = Engine::default().causes_of_run(history, texts, number, Knowledge::AtTheTime, now);
    for cause in &mut causes {
        cause.text = text_of(cause.text);
    }
    let beginnings = Beginnings::of(history, causes.iter());
    let advice = |failure: FailureCause| {
        let advice = beginnings.breakage(&failure)?.revert?;
        Some((failure, advice))
    };
    causes.clone().into_iter().filter_map(advice).collect()
}

/// The table over these seeds.
pub(crate) fn table(seeds: &[u64]) -> String {
    let mut planted = 0;
    let mut score = Score::new();
    for seed in seeds {
        let world = world(*seed, &mut planted);
        for (place, (run, observed)) in world.runs.iter().zip(&world.history.runs).enumerate() {
            if run.at < COUNTED_FROM {
                continue;
            }
            for (failure, advice) in advised(&world.history, &world.texts, observed, |text| text) {
                let truth = culprit(&world, place, failure.test);
                score.add(&advice, &format!("main-{}", run.revision), |revision| {
                    Some(truth.as_deref() == Some(revision))
                });
            }
        }
    }
    format!("{planted} breakages; {}", score.text())
}

/// The table of a real history. Failures without a text count as those of one error in their run, so that the advice
/// names more commits than it would by their texts.
pub(crate) fn real(history: &History, texts: &ErrorTexts) -> String {
    let results = by_test(
        history,
        Timestamp::from_unix_ms(i64::MIN),
        Timestamp::from_unix_ms(i64::MAX),
    );
    let mut score = Score::new();
    let mut judged = 0;
    for observed in &history.runs {
        // A run of several variants is judged at once.
        if observed.run.number <= judged {
            continue;
        }
        judged = observed.run.number;
        for (failure, advice) in advised(history, texts, observed, |text| text.or(Some(u32::MAX))) {
            let run = history.runs.get(failure.run_index).map(|observed| &observed.run);
            let of_test = usize::try_from(failure.test)
                .ok()
                .and_then(|test| results.get(test));
            let (Some(run), Some(of_test)) = (run, of_test) else {
                continue;
            };
            let of_chain = of_test
                .iter()
                .filter(|result| result.stable && result.chain.1 == run.variant);
            let of_chain: Vec<&TestResult> = of_chain.collect();
            let here = run.revision.as_deref().unwrap_or_default();
            score.add(&advice, here, |revision| broke(&of_chain, revision));
        }
    }
    score.text()
}

/// Whether a revision broke a test, by the results of a chain in the order of time: the test passed before it, failed in each
/// result of it, and failed three times in a row from it on. None if there are too few results.
fn broke(results: &[&TestResult], revision: &str) -> Option<bool> {
    let is_of = |result: &&&TestResult| result.revision.as_deref() == Some(revision);
    let first = results.iter().position(|result| is_of(&result))?;
    let before = results.get(first.checked_sub(1)?)?;
    let next = results.iter().skip(first).take(LASTS);
    if before.failed
        || results
            .iter()
            .filter(is_of)
            .chain(next.clone())
            .any(|result| !result.failed)
    {
        return Some(false);
    }
    (next.count() == LASTS).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_broke_a_test_that_passed_before_and_failed_three_times_from_it_on() {
        for (results, expected) in [
            ("aP bF bF cF", Some(true)),
            ("aP bF cF cP", Some(false)),
            ("aP bF cF dF bP", Some(false)),
            ("aF bF cF dF", Some(false)),
            ("aP bF cF", None),
            ("bF cF dF", None),
            ("aP cF dF eF", None),
        ] {
            let results: Vec<TestResult> = results
                .split(' ')
                .map(|result| TestResult {
                    run: 0,
                    chain: (None, "".into()),
                    stable: true,
                    revision: Some(result[..1].into()),
                    failed: result.ends_with('F'),
                    recovered: false,
                })
                .collect();
            let chain: Vec<&TestResult> = results.iter().collect();
            assert_eq!(broke(&chain, "b"), expected);
        }
    }

    #[test]
    fn no_culprit_is_kept() {
        let text = table(&[7, 8]);
        let kept: u32 = text
            .split_once("breakages; ")
            .and_then(|(_, rest)| rest.split(' ').next())
            .unwrap()
            .parse()
            .unwrap();
        assert!(kept > 20, "{text}");
        assert!(text.contains("of which 0 were about the culprit"), "{text}");
    }
}
