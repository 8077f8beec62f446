//! A reference implementation of the causes: one rate and one result at a time, every share by name. It shares no code
//! with the engine.

use std::collections::{BTreeMap, BTreeSet};

use assay_flakiness::{
    Diagnose as _, Engine, ErrorTexts, FailureCause,
    domain::{cause::Knowledge, observation::History, timestamp::Timestamp},
};
use proptest::prelude::*;

use crate::{
    history,
    reference::{Row, THETA, branches_break, chain_of, is_same_crowd, next_of_crowd, rows, stable_chains},
};

const DAY_MS: f64 = 86_400_000.0;

/// The probabilities of flake, crowd, drift, before, earlier, this.
type Six = [f64; 6];

/// The text of a failure, by run number and test: a few texts, and some failures without one.
fn text(number: i32, test: u32) -> Option<u32> {
    let dice = (number as u32)
        .wrapping_mul(7_919)
        .wrapping_add(test.wrapping_mul(104_729))
        % 9;
    (dice < 7).then_some(if dice < 3 { 1 } else { dice + test % 2 * 10 })
}

struct RowOfTest<'r> {
    row: &'r Row,
    variant: String,
    branch: Option<String>,
    test: u32,
    chi: f64,
    witnesses: Witnesses,
}

/// The other branches that met a failure.
#[derive(Debug, Clone, Copy, Default)]
struct Witnesses {
    branches: usize,
    is_known: bool,
    passed_at: Option<i64>,
}

/// The witnesses of a result, by looking at each earlier one.
fn witnesses(rows: &[Row], order: &[usize], test: u32, index: usize) -> Witnesses {
    // By time; results of one time in the order of the sequence.
    let before: Vec<usize> = {
        let mut before: Vec<usize> = (0..order.len())
            .filter(|i| (rows[order[*i]].at, *i) < (rows[order[index]].at, index))
            .collect();
        before.sort_by_key(|i| (rows[order[*i]].at, *i));
        before
    };
    let letter = |i: usize| rows[order[i]].results[&test].0;
    let branch = |i: usize| chain_of(rows, &rows[order[i]]).1;
    let last_pass = before.iter().rposition(|i| letter(*i) != 'F');
    let passed_at = last_pass.map(|place| rows[order[before[place]]].at);
    if letter(index) != 'F' {
        return Witnesses {
            passed_at,
            ..Witnesses::default()
        };
    }
    let (earlier, since) = before.split_at(last_pass.map_or(0, |place| place + 1));
    let text_of = |i: usize| text(rows[order[i]].number, test);
    let branches: BTreeSet<Option<String>> = since
        .iter()
        .filter(|i| rows[order[index]].at - rows[order[**i]].at <= 2 * 86_400_000)
        .filter(|i| {
            let both = (text_of(**i), text_of(index));
            !matches!(both, (Some(one), Some(other)) if one != other)
        })
        .map(|i| branch(*i))
        .filter(|other| *other != branch(index))
        .collect();
    let counted = |i: &&usize| letter(**i) != 'P' && rows[order[**i]].beta < 0.1;
    Witnesses {
        branches: branches.len(),
        is_known: earlier.iter().any(|i| counted(&i))
            || since.iter().any(|i| branch(*i).as_deref() == Some("main")),
        passed_at,
    }
}

impl RowOfTest<'_> {
    fn is_stable(&self) -> bool {
        self.branch.as_deref() == Some("main")
    }
}

/// What the stable branch's rows teach about its failures.
struct StableBranch {
    breaks: f64,
    crowds: f64,
    /// The odds of an outage against a breakage on several variants.
    outages: f64,
    /// The probability of each flake rate.
    rates: [f64; 10],
}

fn stable_branch(rows: &[Row]) -> StableBranch {
    let (mut expected, mut lasted) = (0.1, 0.1);
    // The variants whose streak a revision began and that passed again soon, and those where it lasted.
    let mut short: BTreeMap<(&str, u32), u32> = BTreeMap::new();
    let mut long: BTreeMap<(&str, u32), u32> = BTreeMap::new();
    // Whether the crowds that began in a run failed again on any variant.
    let mut crowds: BTreeMap<i32, bool> = BTreeMap::new();
    // The results of each test of each chain, and those of its failures that passed again soon.
    let mut tests: Vec<(f64, f64)> = Vec::new();
    for chain in stable_chains(rows).into_values() {
        let is_new =
            |place: usize| place > 0 && rows[chain[place]].revision != rows[chain[place - 1]].revision;
        let (mut results, mut soon): (f64, BTreeMap<u32, u32>) = (0.0, BTreeMap::new());
        let mut streaks: BTreeMap<u32, (u32, bool, &str, bool)> = BTreeMap::new();
        let mut ran: BTreeSet<u32> = BTreeSet::new();
        for (place, at) in chain.iter().enumerate() {
            let row = &rows[*at];
            let counts = row.beta < 0.1;
            for (test, (letter, _)) in &row.results {
                if *letter == 'F' {
                    let of_revision = counts && is_new(place) && ran.contains(test);
                    let streak = streaks
                        .entry(*test)
                        .or_insert((0, of_revision, &row.revision, false));
                    streak.3 |= counts && streak.0 > 0 && streak.2 == row.revision;
                    streak.0 += u32::from(counts);
                    if counts && (streak.0, streak.1) == (3, true) {
                        lasted += 1.0;
                        *long.entry((streak.2, *test)).or_default() += 1;
                    }
                } else {
                    let (streak, of_revision, revision, again) = streaks.remove(test).unwrap_or_default();
                    if of_revision && streak < 3 {
                        let kept_failing = again && row.revision != revision;
                        let of = if kept_failing { &mut long } else { &mut short };
                        *of.entry((revision, *test)).or_default() += 1;
                    }
                    let recovered = u32::from(*letter == 'R' && counts);
                    *soon.entry(*test).or_default() += recovered + if streak < 3 { streak } else { 0 };
                }
            }
            if counts {
                results += row.results.len() as f64;
                ran.extend(row.results.keys());
                if is_new(place) {
                    expected += row.stable_rates.0 * row.results.len() as f64;
                }
            }
        }
        soon.retain(|test, _| ran.contains(test));
        for test in &ran {
            soon.entry(*test).or_default();
        }
        let mean = (results / soon.len().max(1) as f64).round();
        tests.extend(soon.into_values().map(|failures| {
            let failures = f64::from(failures);
            (mean.max(failures), failures)
        }));
        let mut same_as_former: BTreeSet<usize> = BTreeSet::new();
        for (place, at) in chain.iter().enumerate().filter(|(_, at)| rows[**at].beta >= 0.1) {
            let Some(next) = next_of_crowd(rows, &chain, place) else {
                continue;
            };
            let is_same = is_same_crowd(&rows[*at], &rows[next], 0.5);
            if is_same {
                same_as_former.insert(next);
            }
            if is_new(place) && !same_as_former.contains(at) {
                *crowds.entry(rows[*at].number).or_insert(false) |= is_same;
            }
        }
    }
    let failed_again = crowds.values().filter(|again| **again).count() as f64;
    let ended = crowds.len() as f64 - failed_again;
    let prior: [f64; 10] = std::array::from_fn(|k| if k == 0 { 0.94 } else { 0.06 / 9.0 });
    let mut rates = prior;
    for _ in 0..20 {
        let mut sums = prior.map(|p| 50.0 * p);
        for (results, failures) in &tests {
            let log: [f64; 10] = std::array::from_fn(|k| {
                rates[k].ln() + failures * THETA[k].ln() + (results - failures) * (1.0 - THETA[k]).ln()
            });
            let top = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights = log.map(|log| (log - top).exp());
            let total: f64 = weights.iter().sum();
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum += weight / total;
            }
        }
        rates = sums.map(|sum| sum / (50.0 + tests.len() as f64));
    }
    StableBranch {
        breaks: (lasted / expected).clamp(0.0001, 1.0),
        crowds: f64::min(1.0, (0.3 + failed_again) / (4.0 + ended)),
        outages: if stable_chains(rows).len() > 1 {
            let begun: BTreeSet<&(&str, u32)> = short.keys().chain(long.keys()).collect();
            // The tests that failed on several variants, and those of them that kept failing, by revision.
            let mut revisions: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
            for of_test in begun {
                let [short, long] = [&short, &long].map(|of| of.get(of_test).copied().unwrap_or(0));
                if short + long > 1 {
                    let (tests, kept_failing) = revisions.entry(of_test.0).or_default();
                    *tests += 1;
                    *kept_failing += u32::from(long >= short);
                }
            }
            let lasting = revisions
                .values()
                .filter(|(tests, kept_failing)| 2 * kept_failing >= *tests)
                .count() as f64;
            (1.0 + revisions.len() as f64 - lasting) / (0.5 + lasting)
        } else {
            0.0
        },
        rates,
    }
}

/// The parts of a test's results. `learned` is given for the failures of the stable branch.
fn six_of_test(rows: &[Row], test: u32, learned: Option<&StableBranch>) -> (Vec<Six>, Vec<usize>) {
    let mut order: Vec<usize> = (0..rows.len())
        .filter(|i| rows[*i].results.contains_key(&test))
        .collect();
    // The rows are already ordered by revision, time and number.
    order.sort();
    let chi = |row: &Row| {
        let near = rows.iter().any(|other| {
            other.beta >= 0.1
                && other.branch != row.branch
                && (other.at, other.number) < (row.at, row.number)
                && row.at - other.at <= 6 * 3_600_000
        });
        if near { 0.5 } else { 1.0 }
    };
    let results: Vec<RowOfTest<'_>> = order
        .iter()
        .map(|i| {
            let (variant, branch) = chain_of(rows, &rows[*i]);
            RowOfTest {
                row: &rows[*i],
                variant,
                branch,
                test,
                chi: chi(&rows[*i]),
                witnesses: Witnesses::default(),
            }
        })
        .collect();
    let mut results = results;
    for (index, result) in results.iter_mut().enumerate() {
        result.witnesses = witnesses(rows, &order, test, index);
    }
    let chains: Vec<_> = rows.iter().map(|row| chain_of(rows, row)).collect();
    let tests: BTreeSet<&u32> = rows.iter().flat_map(|row| row.results.keys()).collect();
    let runs: BTreeSet<_> = results
        .iter()
        .map(|s| (&s.branch, s.is_stable().then_some(s.row.number)))
        .collect();
    let at_least = match runs.len() {
        ..6 => 0.0006,
        6.. => (0.4 / tests.len() as f64).clamp(0.0001, 0.0006),
    };
    let other = branches_break(rows, &chains).max(at_least);
    let passes: Vec<(f64, Vec<Six>)> = THETA
        .iter()
        .map(|theta| one_rate(&results, *theta, other, learned))
        .collect();
    let top = passes
        .iter()
        .map(|(log, _)| *log)
        .fold(f64::NEG_INFINITY, f64::max);
    let usual = |k: usize| if k == 0 { 0.94 } else { 0.06 / 9.0 };
    let weight = |k: usize| learned.map_or(usual(k), |learned| learned.rates[k]) * (passes[k].0 - top).exp();
    let total: f64 = (0..10).map(weight).sum();
    let mixed = (0..results.len())
        .map(|i| std::array::from_fn(|part| (0..10).map(|k| weight(k) / total * passes[k].1[i][part]).sum()))
        .collect();
    (mixed, order)
}

/// What the backward pass needs of a result.
struct Step {
    good: f64,
    broken: f64,
    keep: f64,
    brk: f64,
    /// P(an outage begins).
    begins: f64,
    /// P(broken) and P(outage) if the sibling has no fault that this result shares.
    apart: (f64, f64),
    sibling: Option<usize>,
    in_same_crowd: bool,
    is_first_on_stable: bool,
}

/// The logarithm of the likelihood at one flake rate, and the parts of each result, given all results.
fn one_rate(
    results: &[RowOfTest<'_>],
    theta: f64,
    other: f64,
    learned: Option<&StableBranch>,
) -> (f64, Vec<Six>) {
    // The shares of each chain: this (n), earlier (e), before (i), drift (r), outage that began with this revision (o) or
    // an earlier one (q), good. The good share is stored, because 1 minus the others would have no correct digits where it
    // is tiny.
    let mut shares: BTreeMap<(String, Option<String>), [f64; 7]> = BTreeMap::new();
    let mut log = 0.0;
    // Flake, crowd, drift, before, earlier, this, outage of this revision, outage of an earlier one.
    let mut parts: Vec<[f64; 8]> = Vec::new();
    let mut steps = Vec::new();
    for (index, here) in results.iter().enumerate() {
        let chain = (here.variant.clone(), here.branch.clone());
        let stable = here.is_stable();
        let before: Vec<&RowOfTest<'_>> = results[..index].iter().collect();
        let last_here = before
            .iter()
            .rfind(|s| s.variant == here.variant && s.branch == here.branch);
        let last_of_branch = before.iter().rposition(|s| s.branch == here.branch);
        let sibling = last_of_branch.filter(|last| {
            before[*last].variant != here.variant && before[*last].row.revision == here.row.revision
        });
        let base = shares.get(&(here.variant.clone(), Some("main".to_owned())));
        let m = if stable {
            0.0
        } else {
            base.map_or(0.0, |s| 0.7 * s.iter().take(6).sum::<f64>())
        };
        let (usually_breaks, stable_mends) = here.row.stable_rates;
        let stable_breaks = usually_breaks * learned.map_or(1.0, |learned| learned.breaks);
        let chi = here.chi * learned.filter(|_| stable).map_or(1.0, |learned| learned.crowds);
        let failed = |s: &RowOfTest<'_>| s.row.results[&s.test].0 == 'F';
        let mut alone = match last_here {
            None if stable => 0.015,
            _ if stable => stable_breaks,
            _ => other,
        };
        let is_new = last_here.is_some_and(|last| last.row.revision != here.row.revision);
        let streak_begins = is_new && failed(here) && !last_here.is_some_and(|last| failed(last));
        let mut merged = false;
        if learned.is_some()
            && stable
            && streak_begins
            && here.row.beta < 0.1
            && !sibling.is_some_and(|sibling| failed(before[sibling]))
        {
            // The branches of this variant whose last result failed within a day: one may be merged now.
            let of_variant = before
                .iter()
                .filter(|s| s.variant == here.variant && !s.is_stable());
            let branches: BTreeSet<&Option<String>> = of_variant.map(|s| &s.branch).collect();
            let streaks = branches.into_iter().filter_map(|branch| {
                let own = before
                    .iter()
                    .filter(|s| s.variant == here.variant && s.branch == *branch && s.row.beta < 0.1);
                let failing: Vec<_> = own.rev().take_while(|s| failed(s)).collect();
                let age = here.row.at - failing.first()?.row.at;
                (0..=86_400_000).contains(&age).then_some(failing.len())
            });
            if let Some(streak) = streaks.max() {
                alone += (1.0 - alone) * 0.2 * other / (other + theta.powi(streak as i32));
                merged = true;
            }
        }
        // The sibling's breakage and outage that this result shares. A test that is new on a stable variant shares the
        // earlier ones too.
        let shared = sibling.map(|sibling| {
            let [n, _, i, _, o, q, _] =
                shares[&(before[sibling].variant.clone(), before[sibling].branch.clone())];
            if stable && last_here.is_none() {
                (n + i, o + q)
            } else {
                (n, o)
            }
        });
        let apart_ms = last_here.map_or(0, |last| here.row.at - last.row.at);
        let days = (apart_ms as f64 / DAY_MS).clamp(0.0, 1.0);
        let drifts = 0.0003 + 0.0012 * days;
        let stable_variants: BTreeSet<&String> = results
            .iter()
            .filter(|s| s.is_stable())
            .map(|s| &s.variant)
            .collect();
        let may_be_outage = stable && stable_variants.len() > 1;
        let outages = learned
            .filter(|_| may_be_outage)
            .map_or(0.0, |learned| learned.outages);
        let begins = if last_here.is_some() {
            f64::min(0.3, outages * stable_breaks)
        } else {
            0.0
        };
        let beside = |(n, o): (f64, f64)| {
            (
                0.85 * n + 0.15 * alone * (1.0 - n),
                0.85 * o + 0.15 * begins * (1.0 - o),
            )
        };
        let faults = match shared {
            Some(shared) if !merged => beside(shared),
            Some(_) => (alone, 0.15 * begins),
            None => (alone, begins),
        };
        let faults_apart = if merged { faults } else { beside((0.0, 0.0)) };
        let beta = here.row.beta;
        // Another variant of the same run that failed in a crowd shares the crowd.
        let in_same_crowd = sibling.filter(|sibling| {
            let other = before[*sibling].row;
            last_here.is_none_or(|last| last.row.revision != here.row.revision)
                && other.number == here.row.number
                && other.results[&here.test].0 != 'P'
                && other.beta > 0.0
                && (here.row.results[&here.test].0 != 'P' || beta > 0.0)
        });
        let x = chi * beta * sibling.map_or(1.0, |_| 0.15);
        let x = x / (1.0 + x);
        let d = match here.witnesses.branches {
            0 => 0.0,
            1 => f64::min(0.3, 2.0 * other),
            _ => f64::min(0.3, 6.0 * other),
        };
        let [n, e, i, r, o, q, good] = shares
            .get(&chain)
            .copied()
            .unwrap_or([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        let was_broken = n + e + i + r;
        // This, earlier, before, drift, the two outages; P(still broken); P(broken now) and P(an outage begins) of good code.
        let predict = |(h, begins): (f64, f64)| -> ([f64; 6], f64, f64, f64) {
            match last_here {
                None if stable => ([0.0, 0.0, h, 0.0, 0.0, begins], 1.0, h + begins, 0.0),
                None => {
                    let mut n = if sibling.is_some() {
                        h
                    } else {
                        f64::min(0.5, 2.0 * h)
                    } * (1.0 - m);
                    n += (1.0 - n - m) * x;
                    let drift = (1.0 - n - m) * d;
                    ([n, 0.0, m, drift, 0.0, 0.0], n + m + drift, n + m + drift, 0.0)
                }
                Some(last) if last.row.revision == here.row.revision => {
                    let breaks = drifts;
                    let own = if stable || here.witnesses.branches > 0 {
                        0.0
                    } else {
                        0.5
                    };
                    let this = 0.998 * n + breaks * own * good;
                    let drift = 0.998 * r + breaks * (1.0 - own) * good;
                    let next = [this, 0.998 * e, 0.998 * i, drift, 0.3 * o, 0.3 * q];
                    (next, 0.998, breaks, 0.0)
                }
                Some(_) => {
                    let k = if stable {
                        1.0 - stable_mends
                    } else {
                        1.0 - 0.2 * (1.0 - m)
                    };
                    let caught = if stable { 0.0 } else { 0.3 * m };
                    let mut own = if stable { h } else { h * (1.0 - 0.3 * m) };
                    let begins = if stable { begins } else { 0.0 };
                    own += (1.0 - own - begins - caught) * x;
                    let d = if stable { 0.0 } else { d };
                    let drift = (1.0 - own - caught) * d;
                    let (e, i) = if stable {
                        (0.0, k * (i + n + e))
                    } else {
                        (k * (e + n), k * i + good * caught)
                    };
                    let r = k * r + good * drift;
                    let next = [good * own, e, i, r, good * begins, 0.3 * (o + q)];
                    (next, k, own + caught + drift, begins)
                }
            }
        };
        let (next, keep, brk, begins) = predict(faults);
        let [apart @ .., apart_outage, apart_before] = predict(faults_apart).0;
        let apart = (apart.iter().sum(), apart_outage + apart_before);
        let b: f64 = next.iter().sum();
        let still_good = good * (1.0 - brk - begins)
            + if last_here.is_some() {
                was_broken * (1.0 - keep) + 0.7 * (o + q)
            } else {
                0.0
            };
        let background = in_same_crowd.map_or(beta, |sibling| {
            let (n, o) = shared.unwrap();
            0.85 * parts[sibling][1] / (1.0 - 0.85 * (n + o)) + 0.15 * beta
        });
        let p1 = 1.0 - (1.0 - theta) * (1.0 - background);
        let (lg, lb) = here.row.likelihood(here.test, p1);
        let z = still_good * lg + b * lb;
        log += z.ln();
        let [n, e, i, r, o, q] = next.map(|share| share * lb / z);
        let g = still_good * lg / z;
        parts.push([g * (1.0 - background / p1), g * background / p1, r, i, e, n, o, q]);
        let sibling = sibling.filter(|_| last_here.is_none_or(|l| l.row.revision != here.row.revision));
        steps.push(Step {
            good: lg,
            broken: lb,
            keep,
            brk,
            begins,
            apart,
            sibling,
            in_same_crowd: in_same_crowd.is_some(),
            is_first_on_stable: stable && last_here.is_none(),
        });
        shares.insert(chain, [n, e, i, r, o, q, g]);
    }
    // The probability of the later results if the code is good, broken, and in an outage.
    let mut message: BTreeMap<(String, Option<String>), (f64, f64, f64)> = BTreeMap::new();
    // The factors of the later variants for the parts.
    let mut extra = vec![[1.0; 8]; results.len()];
    for index in (0..results.len()).rev() {
        let here = &results[index];
        let chain = (here.variant.clone(), here.branch.clone());
        let (gg, gb, go) = message.get(&chain).copied().unwrap_or((1.0, 1.0, 1.0));
        let factors = [gg, gg, gb, gb, gb, gb, go, go];
        let products: Vec<f64> = (0..8)
            .map(|p| parts[index][p] * factors[p] * extra[index][p])
            .collect();
        let total: f64 = products.iter().sum();
        parts[index] = std::array::from_fn(|p| products[p] / total);
        let step = &steps[index];
        let (g, b, o) = (step.good * gg, step.broken * gb, step.broken * go);
        if let Some(sibling) = step.sibling {
            let next = extra[index];
            let beside_good = |background: f64| {
                let p1 = 1.0 - (1.0 - theta) * (1.0 - background);
                let crowd = background / p1;
                let good = here.row.likelihood(here.test, p1).0 * gg;
                let (broken, outage) = step.apart;
                (1.0 - broken - outage) * good * (crowd * next[1] + (1.0 - crowd) * next[0])
                    + broken * b * next[2]
                    + outage * o * next[2]
            };
            let beta = here.row.beta;
            let (alone, crowd) = if step.in_same_crowd {
                (beside_good(0.15 * beta), beside_good(0.85 + 0.15 * beta))
            } else {
                (beside_good(beta), beside_good(beta))
            };
            let (broken, outage) = if step.is_first_on_stable {
                (b * next[3], o * next[7])
            } else {
                (b * next[5], o * next[6])
            };
            let shared = (0.85 * broken + 0.15 * alone) / alone;
            let outage = (0.85 * outage + 0.15 * alone) / alone;
            let (before, outage_before) = if step.is_first_on_stable {
                (shared, outage)
            } else {
                (1.0, 1.0)
            };
            extra[sibling] = [
                1.0,
                crowd / alone,
                1.0,
                before,
                1.0,
                shared,
                outage,
                outage_before,
            ];
        }
        let (keep, brk, begins) = (step.keep, step.brk, step.begins);
        let was_good = (1.0 - brk - begins) * g + brk * b + begins * o;
        let was_broken = (1.0 - keep) * g + keep * b;
        let was_outage = 0.7 * g + 0.3 * o;
        let total = was_good + was_broken;
        message.insert(chain, (was_good / total, was_broken / total, was_outage / total));
    }
    let six = |[flake, crowd, drift, before, earlier, this, outage, outage_before]: [f64; 8]| {
        [
            flake,
            crowd,
            drift + outage + outage_before,
            before,
            earlier,
            this,
        ]
    };
    (log, parts.into_iter().map(six).collect())
}

/// The probabilities of a failure with its text: flake, environment, before, earlier, this.
fn five(rows: &[Row], six: &[Six], order: &[usize], test: u32, index: usize) -> [f64; 5] {
    let row = |i: usize| &rows[order[i]];
    let letter = |i: usize| row(i).results[&test].0;
    let text_at = |i: usize| text(row(i).number, test).filter(|_| letter(i) != 'P');
    let mut pairs: BTreeSet<(u32, u32)> = BTreeSet::new();
    for row in rows {
        for (test, (letter, _)) in &row.results {
            pairs.extend(
                text(row.number, *test)
                    .filter(|_| *letter != 'P')
                    .map(|text| (*test, text)),
            );
        }
    }
    let tests_with = |f: u32| pairs.iter().filter(|(_, text)| *text == f).count();
    let mut p = six[index];
    let found = witnesses(rows, order, test, index);
    if let Some(f) = text_at(index).filter(|f| tests_with(*f) < 20) {
        type WeightedTexts = Vec<(f64, u32)>;
        let share = |set: &WeightedTexts| -> (f64, f64) {
            (
                set.iter().filter(|(_, t)| *t == f).map(|(w, _)| w).sum(),
                set.iter().map(|(w, _)| w).sum(),
            )
        };
        let others: Vec<usize> = (0..order.len())
            .filter(|i| *i != index && text_at(*i).is_some())
            .collect();
        let known: WeightedTexts = others.iter().map(|i| (1.0, text_at(*i).unwrap())).collect();
        let passed_at = found.passed_at;
        let is_own = |i: usize| chain_of(rows, row(i)).1 == chain_of(rows, row(index)).1;
        let flake: WeightedTexts = others
            .iter()
            .filter(|i| {
                let at = row(**i).at;
                is_own(**i) || at > row(index).at || passed_at.is_some_and(|passed_at| at <= passed_at)
            })
            .map(|i| (six[*i][0], text_at(*i).unwrap()))
            .collect();
        let run: WeightedTexts = rows
            .iter()
            .filter(|other| other.number == row(index).number)
            .flat_map(|other| &other.results)
            .filter(|(other, (letter, _))| **other != test && *letter != 'P')
            .filter_map(|(other, _)| text(row(index).number, *other).map(|t| (1.0, t)))
            .collect();
        let chain = |i: usize| chain_of(rows, row(i));
        // The episode of a chain around one of its results.
        let episode_around = |of: &(String, Option<String>), through: usize| -> Vec<usize> {
            let own: Vec<usize> = (0..order.len()).filter(|i| chain(*i) == *of).collect();
            let at = own.iter().position(|i| *i == through).unwrap();
            let mut from = at;
            while from > 0 && letter(own[from - 1]) == 'F' {
                from -= 1;
            }
            let mut to = at;
            while to + 1 < own.len() && letter(own[to + 1]) == 'F' {
                to += 1;
            }
            own[from..=to].to_vec()
        };
        let episode = if letter(index) == 'F' {
            episode_around(&chain(index), index)
        } else {
            Vec::new()
        };
        let mut stable_episode = episode.clone();
        if chain(index).1.as_deref() != Some("main") {
            let base = (chain(index).0, Some("main".to_owned()));
            let last = (0..index).rfind(|i| chain(*i) == base && letter(*i) == 'F');
            stable_episode = last.map_or(Vec::new(), |last| {
                episode_around(&base, last)
                    .into_iter()
                    .filter(|i| *i < index)
                    .collect()
            });
        }
        let first_here = episode
            .iter()
            .find(|i| row(**i).revision == row(index).revision)
            .copied();
        let weighted_texts = |set: &[usize], weight: &dyn Fn(usize) -> f64| -> WeightedTexts {
            set.iter()
                .filter(|i| **i != index)
                .filter_map(|i| text_at(*i).map(|t| (weight(*i), t)))
                .collect()
        };
        let before = weighted_texts(&stable_episode, &|i| 1.0 - six[i][0] - six[i][1]);
        let earlier = weighted_texts(&episode, &|_| 1.0);
        let here: Vec<usize> = episode
            .iter()
            .copied()
            .filter(|i| Some(*i) >= first_here)
            .collect();
        let this = weighted_texts(&here, &|_| 1.0);
        let g0 = (tests_with(f) as f64 - 1.0 + 0.5) / (pairs.len() as f64 + 10.0);
        let smoothed = |set: &WeightedTexts, a: f64, r: f64| (share(set).0 + a * r) / (share(set).1 + a);
        let seen_in_run = if run.is_empty() {
            g0
        } else {
            share(&run).0 / share(&run).1
        };
        let fresh = if run.is_empty() {
            g0
        } else {
            0.7 * g0 + 0.3 * seen_in_run
        };
        let new = if known.is_empty() {
            fresh
        } else {
            0.2 * share(&known).0 / share(&known).1 + 0.8 * fresh
        };
        let crowd = if run.is_empty() {
            g0
        } else {
            0.6 * seen_in_run + 0.4 * g0
        };
        let f = [
            smoothed(&flake, 0.35, g0),
            crowd,
            new,
            smoothed(&before, 0.1, new),
            smoothed(&earlier, 0.1, new),
            smoothed(&this, 0.1, new),
        ];
        p = std::array::from_fn(|i| p[i] * (0.9 * f[i] + 0.1 * g0));
        let total: f64 = p.iter().sum();
        p = p.map(|part| part / total);
    }
    let mine = p[4] + p[5];
    if found.branches > 0 && !found.is_known && mine < 0.1 {
        p = p.map(|part| part * 0.9 / (1.0 - mine));
        p[5] = 0.1 - p[4];
    }
    [p[0], p[1] + p[2], p[3], p[4], p[5]]
}

fn compare(causes: &[FailureCause], history: &History, rows: &[Row]) -> Result<(), TestCaseError> {
    let learned = stable_branch(rows);
    let mut known: BTreeMap<(u32, bool), (Vec<Six>, Vec<usize>)> = BTreeMap::new();
    for cause in causes {
        let run = &history.runs[cause.run_index].run;
        let is_run = |row: &&Row| row.number == run.number && *row.variant == *run.variant;
        let row = rows.iter().find(is_run).unwrap();
        let stable = chain_of(rows, row).1.as_deref() == Some("main");
        let (six, order) = known
            .entry((cause.test, stable))
            .or_insert_with(|| six_of_test(rows, cause.test, stable.then_some(&learned)));
        let index = order.iter().position(|i| is_run(&&rows[*i])).unwrap();
        let plain = five(rows, six, order, cause.test, index);
        let p = cause.probabilities;
        let engine = [
            p.flake,
            p.environment,
            p.broken_before,
            p.earlier_on_branch,
            p.this_change,
        ];
        for (engine, plain) in engine.iter().zip(plain) {
            prop_assert!((engine - plain).abs() < 1e-9, "{cause:?} is not {plain:?}");
        }
        prop_assert!((engine.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
    Ok(())
}

fn failures(rows: &[Row], number: Option<i32>) -> usize {
    let wanted = rows
        .iter()
        .filter(|row| number.is_none_or(|number| row.number == number));
    wanted
        .map(|row| row.results.values().filter(|(letter, _)| *letter != 'P').count())
        .sum()
}

fn check(history: &History, now: Timestamp) -> Result<(), TestCaseError> {
    let mut texts = ErrorTexts::new();
    for (place, observed) in history.runs.iter().enumerate() {
        for failure in &observed.failures {
            if let Some(text) = text(observed.run.number, failure.test) {
                texts.insert(place, failure.test, text);
            }
        }
    }
    let (window, _) = rows(history, now);
    let causes = Engine::default().causes(history, &texts, Knowledge::Hindsight, now);
    prop_assert_eq!(causes.len(), failures(&window, None));
    compare(&causes, history, &window)?;
    let at_the_time = Engine::default().causes(history, &texts, Knowledge::AtTheTime, now);
    prop_assert_eq!(at_the_time.len(), failures(&window, None));
    for observed in history.runs.iter().step_by(7) {
        let run = &observed.run;
        let causes = Engine::default().causes_of_run(history, &texts, run.number, Knowledge::AtTheTime, now);
        let (until, _) = rows(history, run.started_at);
        prop_assert_eq!(causes.len(), failures(&until, Some(run.number)));
        compare(&causes, history, &until)?;
        if (now.plus_days(-14)..=now).contains(&run.started_at) {
            let of_window = at_the_time
                .iter()
                .filter(|cause| history.runs[cause.run_index].run.number == run.number);
            prop_assert_eq!(of_window.cloned().collect::<Vec<_>>(), causes);
        }
    }
    Ok(())
}

/// Regression test: times in days as floating-point numbers did not count two results that are exactly two days apart.
#[test]
fn a_failure_of_another_branch_counts_for_exactly_two_days() {
    for hour in 25..=35 {
        let mut runs = Vec::new();
        let mut add_run = |branch: &str, hour: i64, letter: char| {
            let number = i32::try_from(runs.len()).unwrap() + 1;
            let revision = format!("{branch} {hour}");
            let at = history::START_MS + hour * 3_600_000;
            let mut run = history::run(number, at, Some(branch), Some(revision));
            history::add(&mut run, 0, letter);
            runs.push(run);
        };
        for hour in 30..50 {
            add_run("main", hour, 'P');
        }
        add_run("one", 50 + hour, 'F');
        add_run("two", 50 + hour + 48, 'F');
        let history = History {
            stable_branch: "main".into(),
            tests: 1,
            runs,
        };
        check(&history, history::end()).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn the_causes_agree_with_the_plain_model(history in history::arbitrary()) {
        check(&history, history::end())?;
    }

    #[test]
    fn the_causes_agree_over_long_histories(history in history::long()) {
        check(&history, history::end())?;
    }

    #[test]
    fn the_causes_agree_over_runs_of_several_variants(history in history::matrix()) {
        check(&history, history::end())?;
    }
}
