//! Evaluates how many clean runs prove a fix: on simulated fixes, whose truth is known, and on real histories.

use std::{collections::BTreeMap, fmt::Write as _};

use assay_flakiness::{
    domain::{observation::History, timestamp::Timestamp},
    plan::{
        fix::{CleanRuns, bound},
        reruns::{ProcessOf, RerunKind},
    },
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::{
    burn_in::Simulated,
    real::{CROWD, crowds},
    results::by_test,
};

/// The simulated fixes.
const FIXES: u32 = 9_000;
/// The runs before a fix, from which its rate is estimated.
const BEFORE: u32 = 200;
/// The rates before a fix, the logarithm equally distributed.
const RATES: (f64, f64) = (0.01, 0.5);
/// The rate that a fix leaves, as a share of the one before: a true fix, a half one and none, equally often.
const LEFT: [f64; 3] = [0.0, 0.5, 1.0];
/// The runs of a history that judge a claim, and the fewest.
const JUDGED: (usize, usize) = (300, 100);
/// The runs in which a failure is counted as soon.
const SOON: usize = 60;
/// The fewest failures before a claim.
const LEAST_FAILURES: usize = 2;
/// The failures in a row from which on they are a breakage.
const BREAKAGE: usize = 3;

/// A build of a chain in a real history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Build {
    Passed,
    /// It passed on retry, or failed and passed again soon.
    Flaky,
    /// It failed in a breakage or in a mass failure.
    Apart,
}

/// A rule for a number of clean runs.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Verify(CleanRuns),
    InARow(u32),
}

impl Rule {
    fn needed(self, rate_before: f64) -> u32 {
        match self {
            Self::Verify(runs) => runs.needed(bound(rate_before)),
            Self::InARow(count) => count,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Verify(_) => "verify".to_owned(),
            Self::InARow(count) => format!("{count} in a row"),
        }
    }
}

/// The rate by failures before, with the prior of burn-in.
fn estimate(failures: u32, runs: u32) -> f64 {
    (f64::from(failures) + 0.2) / (f64::from(runs) + 2.2)
}

/// What a rule said of simulated fixes.
#[derive(Default)]
struct Score {
    /// The fixes of each kind, and those that are proved.
    fixes: [u32; 3],
    proved: [u32; 3],
    /// Those that are proved although the rate is above the bound.
    wrong: u32,
    runs: u64,
}

/// The table of simulated fixes.
pub(crate) fn simulated() -> String {
    let verify = Rule::Verify(CleanRuns::Repetitions);
    let of = |rule, kind| score(rule, kind, FIXES, 101);
    let in_suite = of(verify, RerunKind::WithFile);
    // The fixed number that takes as many runs in all.
    let as_costly = |count: &u32| of(Rule::InARow(*count), RerunKind::WithFile).runs >= in_suite.runs;
    let cost = (100..1_000).step_by(20).find(as_costly).unwrap_or(1_000);
    let mut text = "| Rule | True fixes | Half fixes | No fixes | Wrong, of proved | Runs, mean |\n\
                    |---|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for (rule, kind, words) in [
        (verify, RerunKind::WithFile, "in the suite"),
        (Rule::InARow(30), RerunKind::WithFile, "in the suite"),
        (Rule::InARow(100), RerunKind::WithFile, "in the suite"),
        (Rule::InARow(cost), RerunKind::WithFile, "in the suite"),
        (Rule::InARow(30), RerunKind::Alone, "alone"),
        (Rule::InARow(100), RerunKind::Alone, "alone"),
    ] {
        let score = of(rule, kind);
        let share = |part: u32, all: u32| 100.0 * f64::from(part) / f64::from(all.max(1));
        let [a, b, c] = [0, 1, 2].map(|kind: usize| {
            let get = |counts: &[u32; 3]| counts.get(kind).copied().unwrap_or(0);
            share(get(&score.proved), get(&score.fixes))
        });
        let proved = score.proved.iter().sum();
        let _ = writeln!(
            text,
            "| {}, {words} | {a:.1} % | {b:.1} % | {c:.1} % | {:.1} % | {} |",
            rule.name(),
            share(score.wrong, proved),
            score.runs / u64::from(FIXES)
        );
    }
    text
}

/// Applies a rule to simulated fixes.
fn score(rule: Rule, kind: RerunKind, fixes: u32, seed: u64) -> Score {
    let mut random = StdRng::seed_from_u64(seed);
    let mut score = Score::default();
    for number in 0..fixes {
        let place = usize::try_from(number % 3).unwrap_or(0);
        let left = LEFT.get(place).copied().unwrap_or(0.0);
        let rate = (random.random_range(RATES.0.ln()..RATES.1.ln())).exp();
        // Builds before a fix are jobs of their own.
        let failures = (0..BEFORE).filter(|_| random.random_bool(rate)).count();
        let failures = u32::try_from(failures).unwrap_or(0).max(1);
        let rate_before = estimate(failures, BEFORE);
        let mut test = Simulated::new(rate * left, ProcessOf::Suite, &mut random);
        let needed = rule.needed(rate_before);
        let clean = (0..needed).take_while(|_| !test.fails(kind, &mut random)).count();
        let clean = u32::try_from(clean).unwrap_or(u32::MAX);
        let is_proved = clean >= needed;
        let is_wrong = is_proved && rate * left > bound(rate);
        if let (Some(fixes), Some(proved)) = (score.fixes.get_mut(place), score.proved.get_mut(place)) {
            *fixes += 1;
            *proved += u32::from(is_proved);
        }
        score.wrong += u32::from(is_wrong);
        score.runs += u64::from(clean.saturating_add(u32::from(!is_proved)));
    }
    score
}

/// What became of claims in a history.
#[derive(Default)]
struct Claims {
    claims: u32,
    soon: u32,
    judged: u32,
    /// By all failures.
    wrong: u32,
    /// By flaky failures.
    wrong_flaky: u32,
    runs: u64,
}

/// The table of a real history. A claim follows each stretch of clean builds of a chain after a failure, by the rate of the
/// 200 builds before. It is wrong if the next builds fail more often than it says, by flaky failures or by all.
pub(crate) fn real(history: &History) -> String {
    let [first, last] = [i64::MIN, i64::MAX].map(Timestamp::from_unix_ms);
    let results = by_test(history, first, last);
    let crowds = crowds(history, CROWD);
    let mut chains: Vec<Vec<Build>> = Vec::new();
    for (test, of_test) in (0..).zip(results) {
        let mut by_chain: BTreeMap<_, Vec<(bool, Build)>> = BTreeMap::new();
        for result in of_test.into_iter().filter(|result| result.stable) {
            let chain = by_chain.entry(result.chain).or_default();
            let build = match result.failed || result.recovered {
                true if crowds.contains(&(result.run, test)) => Build::Apart,
                true => Build::Flaky,
                false => Build::Passed,
            };
            chain.push((result.failed, build));
        }
        chains.extend(by_chain.values().map(|chain| classified(chain)));
    }
    let mut text = "| Rule | Claims | Failed within 60 builds | Wrong by flaky failures, of judged | By all | Judged | Builds, mean |\n\
                    |---|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for rule in [
        Rule::Verify(CleanRuns::Builds),
        Rule::InARow(30),
        Rule::InARow(100),
    ] {
        let mut claims = Claims::default();
        for chain in &chains {
            claims.add(rule, chain);
        }
        let share = |part: u32, all: u32| 100.0 * f64::from(part) / f64::from(all.max(1));
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} % | {:.1} % | {:.1} % | {} | {} |",
            rule.name(),
            claims.claims,
            share(claims.soon, claims.claims),
            share(claims.wrong_flaky, claims.judged),
            share(claims.wrong, claims.judged),
            claims.judged,
            claims.runs / u64::from(claims.claims.max(1))
        );
    }
    text
}

/// The builds of a chain, each given with whether it failed at last. Three such in a row are a breakage.
fn classified(chain: &[(bool, Build)]) -> Vec<Build> {
    let in_a_row = chain.chunk_by(|one, next| one.0 && next.0);
    let of_row = |row: &[(bool, Build)]| {
        let is_breakage = row.len() >= BREAKAGE;
        let builds = row
            .iter()
            .map(|(_, build)| if is_breakage { Build::Apart } else { *build });
        builds.collect::<Vec<_>>()
    };
    in_a_row.flat_map(of_row).collect()
}

impl Claims {
    fn add(&mut self, rule: Rule, chain: &[Build]) {
        let failed = |build: &Build| *build != Build::Passed;
        let before = usize::try_from(BEFORE).unwrap_or(0);
        for (place, _) in chain.iter().enumerate().filter(|(_, build)| failed(build)) {
            let earlier = chain
                .get((place + 1).saturating_sub(before)..=place)
                .unwrap_or(&[]);
            let failures = earlier.iter().filter(|build| failed(build)).count();
            if failures < LEAST_FAILURES {
                continue;
            }
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let rate = estimate(count(failures), count(earlier.len()));
            let needed = rule.needed(rate);
            let needed_places = usize::try_from(needed).unwrap_or(usize::MAX);
            let after = chain.get(place + 1..).unwrap_or(&[]);
            let (Some(clean), Some(rest)) = (after.get(..needed_places), after.get(needed_places..)) else {
                continue;
            };
            if clean.iter().any(failed) || rest.len() < SOON {
                continue;
            }
            self.claims += 1;
            self.runs += u64::from(needed);
            self.soon += u32::from(rest.iter().take(SOON).any(failed));
            if rest.len() >= JUDGED.1 {
                let judged = rest.iter().take(JUDGED.0);
                let of = |kind| f64::from(count(judged.clone().filter(|build| **build == kind).count()));
                let (passed, flaky, apart) = (of(Build::Passed), of(Build::Flaky), of(Build::Apart));
                self.judged += 1;
                self.wrong += u32::from(flaky + apart > bound(rate) * (passed + flaky + apart));
                self.wrong_flaky += u32::from(flaky > bound(rate) * (passed + flaky));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verify_is_seldom_wrong_and_thirty_in_a_row_often() {
        let verify = score(Rule::Verify(CleanRuns::Repetitions), RerunKind::WithFile, 900, 3);
        let thirty = score(Rule::InARow(30), RerunKind::WithFile, 900, 3);
        let proved = |score: &Score| score.proved.iter().sum::<u32>();
        assert_eq!(verify.proved[0], verify.fixes[0], "each true fix");
        assert!(
            20 * verify.wrong <= proved(&verify),
            "{} of {}",
            verify.wrong,
            proved(&verify)
        );
        assert!(
            5 * thirty.wrong > proved(&thirty),
            "{} of {}",
            thirty.wrong,
            proved(&thirty)
        );
    }

    #[test]
    fn a_claim_in_a_history_is_judged_by_what_follows() {
        let claims = |later: &[usize]| {
            let mut chain = vec![(false, Build::Passed); 700];
            for place in [10, 20].iter().chain(later) {
                chain[*place] = (true, Build::Flaky);
            }
            let mut claims = Claims::default();
            claims.add(Rule::InARow(30), &classified(&chain));
            [
                claims.claims,
                claims.soon,
                claims.judged,
                claims.wrong,
                claims.wrong_flaky,
            ]
        };
        assert_eq!(claims(&[]), [1, 0, 1, 0, 0]);
        let isolated: Vec<usize> = (60..700).step_by(20).collect();
        assert_eq!(claims(&isolated), [1, 1, 1, 1, 1]);
        let breakage: Vec<usize> = (100..120).collect();
        // The second claim follows the breakage.
        assert_eq!(claims(&breakage), [2, 1, 2, 1, 0]);
    }
}
