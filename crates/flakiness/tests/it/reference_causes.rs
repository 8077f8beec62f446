//! A reference implementation of the causes: one rate and one result at a time, every share by name. It shares no code
//! with the engine.

mod one_rate;
mod stable_branch;

use std::collections::{BTreeMap, BTreeSet};

use assay_flakiness::{
    Diagnose as _, Engine, ErrorTexts, FailureCause,
    domain::{cause::Knowledge, observation::History, timestamp::Timestamp},
};
use proptest::prelude::*;

use crate::{
    history,
    reference::{
        HYPOTHESES, Row, THETA, calendar, chain_of, is_queue, is_same_crowd, name_of, next_of_crowd,
        of_branches, prior_of_reliable, rows, stable_chains, touchy,
    },
};

use self::{
    one_rate::one_rate,
    stable_branch::{StableBranch, stable_branch},
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
    /// The rate at which the calendar fails the test at this time.
    calendar: f64,
    witnesses: Witnesses,
    /// The revision of the stable branch at which its code left it.
    base: Option<&'r String>,
    /// Whether its branch has had no run for a day.
    is_over: bool,
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
            .filter(|i| rows[order[*i]].variant == rows[order[index]].variant)
            .collect();
        before.sort_by_key(|i| (rows[order[*i]].at, *i));
        before
    };
    let letter = |i: usize| rows[order[i]].results[&test].0;
    let branch = |i: usize| name_of(&chain_of(rows, &rows[order[i]])).map(str::to_owned);
    let tested = |i: usize| &rows[order[i]].pull_requests;
    let is_same_change = |i: usize, j: usize| branch(i) == branch(j) || !tested(i).is_disjoint(tested(j));
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
    let agree = |one: usize, other: usize| {
        let both = (text_of(one), text_of(other));
        !matches!(both, (Some(one), Some(other)) if one != other)
    };
    let is_main = |i: usize| branch(i).as_deref() == Some("main");
    // A branch that inherited the failure of the stable one did not begin to fail.
    let began = |place: usize| {
        let here = since[place];
        is_main(here) || !since[..place].iter().any(|i| is_main(*i) && agree(*i, here))
    };
    let by_calendar = calendar(rows, test);
    let is_explained = |i: usize| {
        let hour = rows[order[i]].at.div_euclid(3_600_000);
        by_calendar
            .as_ref()
            .is_some_and(|(hours, _)| hours.contains(&hour))
    };
    let others: Vec<usize> = (0..since.len())
        .filter(|place| began(*place))
        .map(|place| since[place])
        .filter(|i| !is_explained(*i) && !is_queue(branch(*i).as_ref()))
        .filter(|i| rows[order[index]].at - rows[order[*i]].at <= 2 * 86_400_000)
        .filter(|i| agree(*i, index))
        .filter(|i| !is_same_change(*i, index))
        .collect();
    let several = others.iter().any(|other| !is_same_change(*other, others[0]));
    let counted = |i: &&usize| {
        let row = &rows[order[**i]];
        letter(**i) != 'P' && row.beta < 0.1 && !row.is_row(test)
    };
    Witnesses {
        branches: others.len().min(1) + usize::from(several),
        is_known: earlier.iter().any(|i| counted(&i))
            || since.iter().any(|i| branch(*i).as_deref() == Some("main")),
        passed_at,
    }
}

/// The merge base of a branch's row, if the stable branch has that revision.
fn base_of<'r>(rows: &'r [Row], row: &Row) -> Option<&'r String> {
    let is_main = |row: &Row| chain_of(rows, row).1.as_deref() == Some("main");
    let base = row.merge_base.as_ref().filter(|_| !is_main(row))?;
    let found = rows
        .iter()
        .find(|other| other.revision == *base && is_main(other));
    found.map(|other| &other.revision)
}

impl RowOfTest<'_> {
    fn is_stable(&self) -> bool {
        self.branch.as_deref() == Some("main")
    }
}

/// The parts of a test's results, their rows, and the factor for the parts of the branch if no other test failed in a run.
type OfTest = (Vec<Six>, Vec<usize>, f64);

/// The parts of a test, for the failures of the stable branch or for others.
fn six_of_test(rows: &[Row], test: u32, (learned, of_stable): (&StableBranch, bool)) -> OfTest {
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
    let by_calendar = calendar(rows, test);
    let rate_at = |at: i64| match &by_calendar {
        Some((hours, rate)) if hours.contains(&at.div_euclid(3_600_000)) => *rate,
        _ => 0.0,
    };
    let results: Vec<RowOfTest<'_>> = order
        .iter()
        .map(|i| {
            let (variant, branch) = chain_of(rows, &rows[*i]);
            let mut of_chain = rows
                .iter()
                .filter(|row| chain_of(rows, row) == (variant.clone(), branch.clone()));
            let newest = rows.iter().map(|row| row.at).max().unwrap();
            let is_over = newest - of_chain.next_back().unwrap().at > 86_400_000;
            RowOfTest {
                row: &rows[*i],
                variant,
                branch,
                test,
                chi: chi(&rows[*i]),
                calendar: rate_at(rows[*i].at),
                witnesses: Witnesses::default(),
                base: base_of(rows, &rows[*i]),
                is_over,
            }
        })
        .collect();
    let mut results = results;
    for (index, result) in results.iter_mut().enumerate() {
        result.witnesses = witnesses(rows, &order, test, index);
    }
    let chains: Vec<_> = rows.iter().map(|row| chain_of(rows, row)).collect();
    let runs: BTreeSet<_> = results
        .iter()
        .map(|s| {
            let name = name_of(&chain_of(rows, s.row)).map(str::to_owned);
            (name, s.is_stable().then_some(s.row.number))
        })
        .collect();
    let at_least = if runs.len() < 6 { 0.0006 } else { 0.0 };
    let (rate, broken_alone) = of_branches(rows, &chains);
    let other = rate.max(at_least);
    let alone = if runs.len() < 6 || of_stable {
        1.0
    } else {
        broken_alone
    };
    // The rates hold on all variants, or on one of the two with the most failures, while the test is reliable elsewhere.
    let mut failures: BTreeMap<&String, usize> = BTreeMap::new();
    for result in &results {
        *failures.entry(&result.variant).or_default() += usize::from(result.row.results[&test].0 != 'P');
    }
    let variants = failures.len() as f64;
    let mut most: Vec<(&String, usize)> = failures.into_iter().filter(|(_, failed)| *failed > 0).collect();
    most.sort_by_key(|(_, failed)| std::cmp::Reverse(*failed));
    let one_variant = most.iter().take(2).map(|(variant, _)| Some(*variant));
    let hypotheses: Vec<Option<&String>> = match variants > 1.0 {
        true => [None].into_iter().chain(one_variant).collect(),
        false => vec![None],
    };
    let mut passes: Vec<(f64, (f64, Vec<Six>))> = Vec::new();
    for only in hypotheses {
        for k in (0..HYPOTHESES).filter(|k| ![10, 11].contains(k)) {
            let is_reliable = k == 0 || touchy(k).is_some();
            let (theta, prior) = match is_reliable {
                true => (THETA[0], learned.rates[0] * prior_of_reliable(k, 0.0, rate)),
                false => (THETA[k], learned.rates[k]),
            };
            let share = match only {
                Some(_) if is_reliable => continue,
                Some(_) => 0.3 / variants,
                None if !is_reliable && variants > 1.0 => 0.7,
                None => 1.0,
            };
            let rates = (theta, touchy(k), other);
            let pass = one_rate(&results, rates, only, of_stable.then_some(learned));
            passes.push((prior * share, pass));
        }
    }
    let top = passes
        .iter()
        .map(|(_, (log, _))| *log)
        .fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = passes
        .iter()
        .map(|(prior, (log, _))| prior * (log - top).exp())
        .collect();
    let total: f64 = weights.iter().sum();
    let mixed = (0..results.len())
        .map(|i| {
            let each = weights.iter().zip(&passes);
            let each = each.map(|(weight, (_, (_, parts)))| parts[i].map(|part| weight / total * part));
            each.fold([0.0; 6], |sum, parts| {
                std::array::from_fn(|part| sum[part] + parts[part])
            })
        })
        .collect();
    (mixed, order, alone)
}

/// The probabilities of a failure with its text: flake, environment, before, earlier, this.
fn five(rows: &[Row], (six, order, alone): &OfTest, test: u32, index: usize) -> [f64; 5] {
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
        // The last episode of the stable chain before, if the test has passed since.
        let mut mended_episode = Vec::new();
        let last_episode = |base: &(String, Option<String>), before: usize| {
            let last = (0..before).rfind(|i| chain(*i) == *base && letter(*i) == 'F');
            last.map_or(Vec::new(), |last| episode_around(base, last))
        };
        if chain(index).1.as_deref() != Some("main") {
            let base = (chain(index).0, Some("main".to_owned()));
            // The failures at the merge base; without any, the last ones.
            let at_base = base_of(rows, row(index)).and_then(|revision| {
                (0..index).rfind(|i| chain(*i) == base && row(*i).revision == *revision)
            });
            stable_episode = match at_base.filter(|at_base| letter(*at_base) == 'F') {
                Some(at_base) => episode_around(&base, at_base),
                None => last_episode(&base, index),
            };
            stable_episode.retain(|i| *i < index);
            let newest = (0..index).rfind(|i| chain(*i) == base);
            if newest.is_some_and(|newest| !stable_episode.contains(&newest)) {
                mended_episode = stable_episode.clone();
            }
        } else {
            let begins = episode.first().copied().unwrap_or(index);
            mended_episode = last_episode(&chain(index), begins);
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
        let broken = |i: usize| 1.0 - six[i][0] - six[i][1];
        let before = weighted_texts(&stable_episode, &broken);
        let mended = weighted_texts(&mended_episode, &broken);
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
        let own = f64::max(new, smoothed(&mended, 0.1, new));
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
            smoothed(&earlier, 0.1, own),
            smoothed(&this, 0.1, own),
        ];
        p = std::array::from_fn(|i| p[i] * (0.9 * f[i] + 0.1 * g0));
        let total: f64 = p.iter().sum();
        p = p.map(|part| part / total);
    }
    if row(index)
        .results
        .values()
        .filter(|(letter, _)| *letter != 'P')
        .count()
        == 1
    {
        p[4] *= alone;
        p[5] *= alone;
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
    let mut known: BTreeMap<(u32, bool), OfTest> = BTreeMap::new();
    for cause in causes {
        let run = &history.runs[cause.run_index].run;
        let is_run = |row: &&Row| row.number == run.number && *row.variant == *run.variant;
        let row = rows.iter().find(is_run).unwrap();
        let stable = chain_of(rows, row).1.as_deref() == Some("main");
        let of_test = known
            .entry((cause.test, stable))
            .or_insert_with(|| six_of_test(rows, cause.test, (&learned, stable)));
        let index = of_test.1.iter().position(|i| is_run(&&rows[*i])).unwrap();
        let plain = five(rows, of_test, cause.test, index);
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
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn the_causes_agree_with_the_plain_model(history in history::arbitrary()) {
        check(&history, history::end())?;
    }

    #[test]
    fn the_causes_agree_over_long_histories(history in history::long()) {
        check(&history, history::end())?;
    }

    #[test]
    fn the_causes_agree_over_merge_queues(history in history::queued()) {
        check(&history, history::end())?;
    }

    #[test]
    fn the_causes_agree_over_runs_of_several_variants(history in history::matrix()) {
        check(&history, history::end())?;
    }
}
