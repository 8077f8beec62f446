//! A reference implementation of the model: one test, one rate and one result at a time, without shortcuts. It shares
//! no code with the engine. It is slow and simple, and the engine must agree with it.

use std::collections::{BTreeMap, BTreeSet};

use assay_flakiness::{
    Engine,
    domain::{
        observation::History,
        timestamp::Timestamp,
        verdict::{Judge as _, Verdict},
    },
};
use proptest::prelude::*;

use crate::history;

pub(crate) const THETA: [f64; 11] = [2e-5, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 0.85];
/// The hypotheses about a test: the rates, and two of a reliable test that changes break often.
pub(crate) const HYPOTHESES: usize = 13;
const DAY_MS: f64 = 86_400_000.0;

/// The probability that a branch breaks a test at first that changes break often.
pub(crate) fn touchy(k: usize) -> Option<f64> {
    [(11, 0.2), (12, 0.05)]
        .into_iter()
        .find(|(of, _)| *of == k)
        .map(|(_, first)| first)
}

/// The prior of a reliable test, and of such tests among them; `frequent` is the share of the more frequent ones.
pub(crate) fn prior_of_reliable(k: usize, frequent: f64, other: f64) -> f64 {
    let seldom = 0.5 * f64::min(1.0, other / 0.05);
    match k {
        11 => frequent,
        12 => (1.0 - frequent) * seldom,
        _ => (1.0 - frequent) * (1.0 - seldom),
    }
}

/// A variant run of the window. Revision, branch and variant are names.
#[derive(Clone)]
pub(crate) struct Row {
    run: String,
    pub(crate) number: i32,
    pub(crate) at: i64,
    pub(crate) branch: Option<String>,
    /// The place of its revision's pull request among those of the branch.
    change: usize,
    pub(crate) variant: String,
    pub(crate) revision: String,
    /// The revision at which its code left the stable branch.
    pub(crate) merge_base: Option<String>,
    /// The pull requests that its chain tests.
    pub(crate) pull_requests: BTreeSet<i64>,
    /// Whether the run is complete. A test that is missing in an incomplete one did not leave.
    is_complete: bool,
    /// P, R or F and the failed attempts, by test.
    pub(crate) results: BTreeMap<u32, (char, u32)>,
    /// The executions and the failed ones, of tests with several.
    pub(crate) executions: BTreeMap<u32, (u32, u32)>,
    pub(crate) beta: f64,
    /// The tests that count although the row is a mass failure.
    pub(crate) lasting: BTreeSet<u32>,
    /// How often the revision breaks a test, and mends one, if the chain is a stable one.
    pub(crate) stable_rates: (f64, f64),
}

impl Row {
    /// The background of a test.
    pub(crate) fn beta_of(&self, test: u32) -> f64 {
        if self.lasting.contains(&test) {
            0.0
        } else {
            self.beta
        }
    }

    fn counts(&self, test: u32) -> bool {
        self.beta_of(test) < 0.1
    }

    /// Whether the test failed in some executions and passed in others.
    fn is_mixed(&self, test: u32) -> bool {
        let executions = self.executions.get(&test);
        executions.is_some_and(|(all, failed)| self.results[&test].0 == 'F' && failed < all)
    }

    /// Whether the test failed four times or more, retries among them.
    pub(crate) fn is_row(&self, test: u32) -> bool {
        let (letter, attempts) = self.results[&test];
        let failed = self.executions.get(&test).map_or(1, |(_, failed)| *failed);
        letter == 'F' && attempts - 1 + failed >= 4
    }

    /// The same without executions that passed beside failed ones.
    pub(crate) fn likelihood_of_failed(&self, test: u32, p1: f64) -> (f64, f64) {
        let mut row = self.clone();
        if let Some((all, failed)) = row
            .executions
            .get_mut(&test)
            .filter(|_| self.results[&test].0 == 'F')
        {
            *all = *failed;
        }
        row.likelihood(test, p1)
    }

    /// The probability of the test's result on good and on broken code.
    pub(crate) fn likelihood(&self, test: u32, p1: f64) -> (f64, f64) {
        let (letter, attempts) = self.results[&test];
        let s = p1.max(0.5);
        let (all, failed) = self
            .executions
            .get(&test)
            .copied()
            .unwrap_or((1, u32::from(letter == 'F')));
        match letter {
            'P' => ((1.0 - p1).powi(all as i32), 0.002),
            'R' => {
                let others = (1.0 - p1).powi(all as i32 - 1);
                (p1 * (1.0 - s.min(0.95)) * others, 0.002)
            }
            _ => {
                let further = (attempts as i32 - 1 + failed as i32 - 1).min(50);
                let again = s.powi(further.min(2)) * s.max(0.81).powi((further - 2).max(0));
                let good = p1 * again * (1.0 - p1).powi((all - failed) as i32);
                (good, if failed == all { 0.998 } else { 0.002 })
            }
        }
    }

    fn failing(&self) -> BTreeSet<u32> {
        let failing = self.results.iter().filter(|(_, (letter, _))| *letter != 'P');
        failing.map(|(test, _)| *test).collect()
    }
}

/// The figures that are compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plain {
    pub(crate) status: &'static str,
    pub(crate) score: f64,
    pub(crate) rate: f64,
    pub(crate) broken: Option<f64>,
    pub(crate) considered: u32,
    pub(crate) seen: u32,
    pub(crate) failure_rate: Option<f64>,
    pub(crate) flip_rate: f64,
    pub(crate) streak: u32,
    pub(crate) impact: f64,
    /// Branch, streak and first run.
    pub(crate) failing_on: Vec<(Option<String>, u32, i32)>,
}

pub(crate) fn rows(history: &History, now: Timestamp) -> (Vec<Row>, BTreeSet<u32>) {
    rows_of_days(history, now, 14)
}

fn rows_of_days(history: &History, now: Timestamp, days: i64) -> (Vec<Row>, BTreeSet<u32>) {
    let mut tests = BTreeSet::new();
    let mut rows = Vec::new();
    for observed in &history.runs {
        let facts = &observed.run;
        if facts.started_at > now || facts.started_at < now.plus_days(-days) {
            continue;
        }
        let mut results = BTreeMap::new();
        for test in observed.present.iter() {
            tests.insert(test);
            if !observed.skipped.contains(test) {
                results.insert(test, ('P', 0));
            }
        }
        for failure in &observed.failures {
            let letter = if failure.recovered { 'R' } else { 'F' };
            results.insert(failure.test, (letter, failure.failed_attempts));
        }
        if results.is_empty() {
            continue;
        }
        rows.push(Row {
            run: facts.id.to_string(),
            number: facts.number,
            at: facts.started_at.unix_ms(),
            branch: facts.branch.as_deref().map(str::to_owned),
            change: 0,
            variant: facts.variant.to_string(),
            revision: facts
                .revision
                .as_deref()
                .map_or(format!("own {}", facts.number), |r| format!("named {r}")),
            merge_base: facts.merge_base.as_deref().map(|r| format!("named {r}")),
            pull_requests: facts.pull_requests.iter().copied().collect(),
            is_complete: observed.ending.complete,
            results,
            executions: observed
                .repeated
                .iter()
                .map(|repetition| (repetition.test, (repetition.executions, repetition.failed)))
                .collect(),
            beta: 0.0,
            lasting: BTreeSet::new(),
            stable_rates: (0.0, 0.0),
        });
    }
    if rows.iter().all(|row| row.branch.is_none()) {
        for row in &mut rows {
            row.branch = Some("main".to_owned());
        }
    }
    let first: BTreeMap<String, (i64, i32)> = rows.iter().fold(BTreeMap::new(), |mut first, row| {
        let entry = first.entry(row.revision.clone()).or_insert((row.at, row.number));
        *entry = (*entry).min((row.at, row.number));
        first
    });
    rows.sort_by_key(|row| (first[&row.revision], row.revision.clone(), row.at, row.number));
    separate_changes(&mut rows);
    backgrounds(&mut rows);
    separate_rows(&mut rows, &tests);
    mark_lasting_crowds(&mut rows);
    set_stable_rates(&mut rows);
    share_pull_requests(&mut rows);
    (rows, tests)
}

/// Separates the pull requests of one branch name. A revision belongs to the first one that its branch named for it, else
/// to that of the branch's revision before.
fn separate_changes(rows: &mut [Row]) {
    let mut known: BTreeMap<String, (Vec<i64>, usize)> = BTreeMap::new();
    for of_revision in rows.chunk_by_mut(|one, other| one.revision == other.revision) {
        let (_, branch) = chain_of(of_revision, &of_revision[0]);
        let Some(branch) = branch.filter(|branch| branch != "main" && !is_queue(Some(branch))) else {
            continue;
        };
        let mut own = of_revision
            .iter()
            .filter(|row| row.branch.as_ref() == Some(&branch));
        let number = own.find_map(|row| row.pull_requests.first().copied());
        let (numbers, last) = known.entry(branch).or_default();
        if let Some(number) = number {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
            *last = numbers.iter().position(|known| *known == number).unwrap();
        }
        let change = *last;
        of_revision.iter_mut().for_each(|row| row.change = change);
    }
}

/// Gives each row the pull requests of its chain, and those of the run ahead in a queue.
fn share_pull_requests(rows: &mut [Row]) {
    let chains: Vec<Chain> = rows.iter().map(|row| chain_of(rows, row)).collect();
    let mut of_chains: BTreeMap<&Chain, BTreeSet<i64>> = BTreeMap::new();
    let mut queued: BTreeMap<&String, BTreeSet<i64>> = BTreeMap::new();
    for (row, chain) in rows.iter().zip(&chains) {
        let tested = of_chains.entry(chain).or_default();
        let Some(branch) = chain.1.as_deref().filter(|branch| *branch != "main") else {
            continue;
        };
        tested.extend(&row.pull_requests);
        if is_queue(chain.1.as_ref()) {
            let ahead = branch
                .rsplit_once("/pr-")
                .and_then(|(_, change)| change.split_once('-'));
            let ahead = ahead.and_then(|(_, revision)| queued.get(&format!("named {revision}")));
            tested.extend(ahead.into_iter().flatten());
            queued.insert(&row.revision, tested.clone());
        }
    }
    let of_rows: Vec<BTreeSet<i64>> = chains.iter().map(|chain| of_chains[chain].clone()).collect();
    for (row, tested) in rows.iter_mut().zip(of_rows) {
        row.pull_requests = tested;
    }
}

/// Tests with three failing streaks that began outside of large crowds, by variant.
fn recurring(rows: &[Row]) -> BTreeSet<(String, u32)> {
    let mut streaks: BTreeMap<(String, u32), u32> = BTreeMap::new();
    for (row, (beta, began)) in rows.iter().zip(measured(rows, &BTreeSet::new())) {
        for test in began.into_iter().filter(|_| beta < 0.5) {
            *streaks.entry((row.variant.clone(), test)).or_default() += 1;
        }
    }
    streaks
        .into_iter()
        .filter(|(_, streaks)| *streaks >= 3)
        .map(|(test, _)| test)
        .collect()
}

/// The share of unreliable tests in a project.
fn unreliable(rows: &[Row]) -> f64 {
    let tests: BTreeSet<u32> = rows.iter().flat_map(|row| row.results.keys().copied()).collect();
    let recurring: BTreeSet<u32> = recurring(rows).into_iter().map(|(_, test)| test).collect();
    let unreliable = 500.0 * 0.06 + 1.25 * recurring.len() as f64;
    (unreliable / (500.0 + tests.len() as f64)).clamp(0.03, 0.15)
}

/// Whether a merge queue tests what it merges on this branch.
pub(crate) fn is_queue(branch: Option<&String>) -> bool {
    branch.is_some_and(|branch| branch.starts_with("gh-readonly-queue/") || branch.starts_with("bors/pr-"))
}

/// The probability that a new revision off the stable branch breaks a test.
pub(crate) fn of_branches(rows: &[Row], chains: &[(String, Option<String>)]) -> (f64, f64) {
    let tests: BTreeSet<u32> = rows.iter().flat_map(|row| row.results.keys().copied()).collect();
    let counted = || {
        let each = rows.iter().zip(chains);
        each.filter(|(row, chain)| row.beta < 0.1 && !is_queue(chain.1.as_ref()))
    };
    let usual = 20.0 * tests.len() as f64;
    let is_stable = |chain: &(String, Option<String>)| chain.1.as_deref() == Some("main");
    let mut chain_revisions = BTreeSet::new();
    let mut results = 0;
    for (row, chain) in rows.iter().zip(chains) {
        let is_new = chain_revisions.insert((chain, &row.revision));
        if is_new && row.beta < 0.1 && !is_stable(chain) && !is_queue(chain.1.as_ref()) {
            results += row.results.len();
        }
    }
    // Of the tests that failed on one branch only: those that ran there again, and those that did not.
    let (mut confirmed, mut alone, mut censored) = (0.0, 0.0, 0.0);
    for test in &tests {
        let of_test: Vec<_> = counted()
            .filter_map(|(row, chain)| Some((row, chain, *row.results.get(test)?)))
            .collect();
        let failed: Vec<_> = of_test
            .iter()
            .filter(|(_, _, (letter, _))| *letter != 'P')
            .collect();
        let branches: BTreeSet<_> = failed.iter().map(|(_, chain, _)| name_of(chain)).collect();
        let is_on_one = branches.len() == 1
            && failed
                .iter()
                .all(|(_, chain, (letter, _))| !is_stable(chain) && *letter == 'F');
        if !is_on_one {
            continue;
        }
        // The first failure of each streak, by chain, and the pass that ended it.
        let (mut passed_again, mut mended) = (false, false);
        for chain in failed.iter().map(|(_, chain, _)| *chain).collect::<BTreeSet<_>>() {
            let mut red: Option<&str> = None;
            for (row, _, (letter, _)) in of_test.iter().filter(|(_, of, _)| *of == chain) {
                match (letter, red) {
                    ('F', None) => red = Some(&row.revision),
                    ('F', Some(_)) | (_, None) => {}
                    (_, Some(revision)) => {
                        passed_again |= revision == row.revision;
                        mended |= revision != row.revision;
                        red = None;
                    }
                }
            }
        }
        let failed_again = failed.len() > 1 || failed.iter().any(|(_, _, (_, attempts))| *attempts > 1);
        if passed_again {
            continue;
        }
        if failed_again || mended {
            confirmed += 1.0;
            let failures = |row: &Row| row.results.values().filter(|(letter, _)| *letter != 'P').count();
            if failed.iter().all(|(row, ..)| failures(row) == 1) {
                alone += 1.0;
            }
        } else {
            censored += 1.0;
        }
    }
    let usually = f64::min(0.0015, 0.4 / tests.len() as f64);
    let rate = (usual * usually + confirmed) / (usual + results as f64 - censored);
    (rate, (2.0 + alone) / (2.0 + confirmed))
}

fn backgrounds(rows: &mut [Row]) {
    let with_all = measured(rows, &BTreeSet::new());
    let without = measured(rows, &recurring(rows));
    for (row, ((all, _), (without, _))) in rows.iter_mut().zip(with_all.into_iter().zip(without)) {
        row.beta = all.min(without);
    }
}

/// Whether the tests that failed in a row are those that fail in another one.
pub(crate) fn is_same_crowd(one: &Row, other: &Row, required: f64) -> bool {
    let (failing, failing_later) = (one.failing(), other.failing());
    let in_both: Vec<u32> = one
        .results
        .keys()
        .copied()
        .filter(|test| other.results.contains_key(test))
        .collect();
    let (ran, others): (Vec<u32>, Vec<u32>) = in_both.iter().partition(|test| failing.contains(*test));
    if ran.is_empty() {
        return false;
    }
    let share = |tests: &[u32]| {
        tests.iter().filter(|test| failing_later.contains(*test)).count() as f64 / tests.len() as f64
    };
    let q = share(&ran);
    let f = if others.is_empty() { 1.0 } else { share(&others) };
    if f > 0.5 {
        q >= 0.98
    } else {
        (q - f) / (1.0 - f) >= required
    }
}

/// The background of each row without the excess of `recurring` tests, and the tests whose failing streak began there.
fn measured(rows: &[Row], recurring: &BTreeSet<(String, u32)>) -> Vec<(f64, Vec<u32>)> {
    type Kind = (bool, String);
    let mut streaks: BTreeMap<(Kind, u32), u32> = BTreeMap::new();
    let mut earlier: BTreeMap<Kind, Vec<f64>> = BTreeMap::new();
    let mut crowd_before: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut measured = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        let kind = (row.branch.as_deref() == Some("main"), row.variant.clone());
        let (mut fresh, mut excess, mut began) = (0, 0, Vec::new());
        let streaks_before = streaks.clone();
        for (test, (letter, _)) in &row.results {
            let streak = streaks.entry((kind.clone(), *test)).or_default();
            *streak = if *letter == 'P' { 0 } else { *streak + 1 };
            let recurs = recurring.contains(&(row.variant.clone(), *test));
            fresh += u32::from((1..=3).contains(streak));
            excess += u32::from((1..=3).contains(streak) && !recurs);
            if *streak == 1 {
                began.push(*test);
            }
        }
        let before = earlier.entry(kind.clone()).or_default();
        let mut last: Vec<f64> = before.iter().rev().take(20).copied().collect();
        last.sort_by(f64::total_cmp);
        let median = match last.len() {
            0 => 0.0,
            n if n % 2 == 1 => last[n / 2],
            n => (last[n / 2 - 1] + last[n / 2]) / 2.0,
        };
        let limit = 1.0 + median + 2.0 * (median + 1.0).sqrt();
        let e = f64::max(0.0, f64::from(excess) - limit);
        let beta = f64::min(
            0.95,
            f64::max(e / row.results.len() as f64, (e / (e + 10.0)).powi(3)),
        );
        measured.push((beta, began));
        let habit = if kind.0 { fresh } else { excess };
        before.push(f64::from(habit).min(limit + 10.0));
        let former = crowd_before.remove(&kind);
        if beta >= 0.1 {
            let is_same = former.is_some_and(|former| is_same_crowd(&rows[former], row, 0.9));
            if !is_same || 2 * fresh as usize > row.results.len() {
                for test in row.failing() {
                    let key = (kind.clone(), test);
                    let streak = streaks_before.get(&key).copied().unwrap_or(0);
                    streaks.insert(key, streak);
                }
            }
            crowd_before.insert(kind, place);
        }
    }
    measured
}

/// The rows of each stable chain, in their order.
pub(crate) fn stable_chains(rows: &[Row]) -> BTreeMap<String, Vec<usize>> {
    let mut chains: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        let (variant, branch) = chain_of(rows, row);
        if branch.as_deref() == Some("main") {
            chains.entry(variant).or_default().push(place);
        }
    }
    chains
}

/// The next row of a chain in which at least half of a crowd's tests ran.
pub(crate) fn next_of_crowd(rows: &[Row], chain: &[usize], place: usize) -> Option<usize> {
    let crowd = rows[chain[place]].failing();
    let ran = |later: &usize| {
        let ran = crowd
            .iter()
            .filter(|test| rows[*later].results.contains_key(test));
        2 * ran.count() >= crowd.len()
    };
    chain[place + 1..].iter().copied().find(ran)
}

/// Finds the crowds of stable chains whose tests fail since.
/// Rows of a table with one name: six failures or more, each with the same numbers of failed and of all executions.
fn separate_rows(rows: &mut [Row], tests: &BTreeSet<u32>) {
    for test in tests {
        let has_failed = |row: &&Row| row.results.get(test).is_some_and(|(letter, _)| *letter != 'P');
        let kinds: Vec<Option<(u32, u32)>> = rows
            .iter()
            .filter(has_failed)
            .map(|row| match row.results[test].0 {
                'F' => Some(row.executions.get(test).copied().unwrap_or((1, 1))),
                _ => None,
            })
            .collect();
        if kinds.len() >= 6 && kinds.iter().all(|kind| kind.is_some() && *kind == kinds[0]) {
            for row in rows
                .iter_mut()
                .filter(|row| row.results.get(test).is_some_and(|(letter, _)| *letter == 'F'))
            {
                if let Some((all, failed)) = row.executions.get_mut(test) {
                    *all = *failed;
                }
            }
        }
    }
}

fn mark_lasting_crowds(rows: &mut [Row]) {
    for chain in stable_chains(rows).into_values() {
        let newest = *chain.last().unwrap();
        let mut links: Vec<(usize, usize)> = Vec::new();
        for (place, at) in chain.iter().enumerate().filter(|(_, at)| rows[**at].beta >= 0.1) {
            let next = next_of_crowd(rows, &chain, place);
            links.extend(
                next.filter(|next| is_same_crowd(&rows[*at], &rows[*next], 0.5))
                    .map(|next| (*at, next)),
            );
        }
        let mut marks = Vec::new();
        for at in &chain {
            let next = links.iter().find(|(from, _)| from == at).map(|(_, to)| *to);
            let before = links.iter().rfind(|(_, to)| to == at).map(|(from, _)| *from);
            if next.is_none() && before.is_none() {
                continue;
            }
            let mut end = *at;
            while let Some((_, to)) = links.iter().find(|(from, _)| *from == end) {
                end = *to;
            }
            let crowd = rows[*at].failing();
            let ran: Vec<&u32> = crowd
                .iter()
                .filter(|test| rows[newest].results.contains_key(test))
                .collect();
            let red = ran.iter().filter(|test| rows[newest].failing().contains(**test));
            if end == newest || (!ran.is_empty() && red.count() as f64 >= 0.5 * ran.len() as f64) {
                let neighbours: Vec<BTreeSet<u32>> = next
                    .iter()
                    .chain(&before)
                    .map(|row| rows[*row].failing())
                    .collect();
                let tests = crowd
                    .into_iter()
                    .filter(|test| neighbours.iter().any(|failing| failing.contains(test)));
                marks.push((*at, tests.collect::<BTreeSet<u32>>()));
            }
        }
        for (at, tests) in marks {
            rows[at].lasting = tests;
        }
    }
}

/// How often each revision of a stable chain breaks a test, and mends one.
fn set_stable_rates(rows: &mut [Row]) {
    let chains = stable_chains(rows);
    for chain in chains.values() {
        // The start of the current revision, and the days since the one before.
        let (mut revision, mut began, mut days) = ("", 0, 0.0);
        let revisions: Vec<String> = chain.iter().map(|at| rows[*at].revision.clone()).collect();
        for (at, name) in chain.iter().zip(&revisions) {
            if revision != name {
                days = if revision.is_empty() {
                    0.0
                } else {
                    f64::max(0.0, (rows[*at].at - began) as f64 / DAY_MS)
                };
                (revision, began) = (name, rows[*at].at);
            }
            let breaks = (0.005 * days).clamp(0.0005, 0.01);
            rows[*at].stable_rates = (breaks, (1.0 - f64::exp(-0.2 * days)).clamp(0.05, 0.3));
        }
    }
}

/// The chain of a row: its variant, and the branch that its revision belongs to.
pub(crate) fn chain_of(rows: &[Row], row: &Row) -> (String, Option<String>) {
    let same = || rows.iter().filter(|other| other.revision == row.revision);
    let branch = if same().any(|other| other.branch.as_deref() == Some("main")) {
        Some("main".to_owned())
    } else {
        same()
            .min_by_key(|other| (other.at, other.number))
            .unwrap()
            .branch
            .clone()
    };
    let branch = branch.map(|branch| match row.change {
        0 => branch,
        change => format!("{branch} #{change}"),
    });
    (row.variant.clone(), branch)
}

/// The branch of a chain, whatever its pull request.
pub(crate) fn name_of((_, branch): &Chain) -> Option<&str> {
    branch.as_deref()?.split(" #").next()
}

fn judge(
    rows: &[Row],
    chains: &[(String, Option<String>)],
    test: u32,
    (unreliable, other): (f64, f64),
    (of_calendar, now): (&[Row], Timestamp),
) -> Plain {
    let is_stable = |chain: &Chain| chain.1.as_deref() == Some("main");
    // The filter.
    let theta = |k: usize| THETA[if touchy(k).is_some() { 0 } else { k }];
    let mut log_by_variant: BTreeMap<&str, [f64; HYPOTHESES]> = BTreeMap::new();
    let mut b: BTreeMap<Chain, [f64; HYPOTHESES]> = BTreeMap::new();
    let mut latest: BTreeMap<Chain, (&str, i64, char)> = BTreeMap::new();
    // P(the revision broke the test) by variant and revision; none after the test passed there.
    let mut broke: BTreeMap<(&str, &str), Option<[f64; HYPOTHESES]>> = BTreeMap::new();
    let mut rank: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        let next = rank.len();
        rank.entry(&row.revision).or_insert(next);
    }
    let own: Vec<(&Row, &Chain, char, u32)> = rows
        .iter()
        .zip(chains)
        .filter_map(|(row, chain)| {
            row.results
                .get(&test)
                .map(|(letter, a)| (row, chain, *letter, *a))
        })
        .collect();
    let prior = |k: usize| match k {
        0 | 11 | 12 => (1.0 - unreliable) * prior_of_reliable(k, 0.05, other),
        8 => unreliable * 0.5 / 7.7,
        9 => unreliable * 0.2 / 7.7,
        10 => 0.0,
        _ => unreliable / 7.7,
    };
    // On one of several variants, some tests fail in most runs.
    let on_variant = |k: usize| match k {
        9 => unreliable * 0.15 / 7.7,
        10 => unreliable * 0.05 / 7.7,
        _ => prior(k),
    };
    let mut by_variant: Vec<_> = own.iter().collect();
    by_variant.sort_by_key(|(row, ..)| &row.variant);
    for (row, chain, letter, _) in by_variant {
        let is_new = latest
            .get(*chain)
            .is_none_or(|(revision, ..)| *revision != row.revision);
        let days_since = latest
            .get(*chain)
            .map_or(0.0, |(_, at, _)| ((row.at - at) as f64 / DAY_MS).clamp(0.0, 1.0));
        // The evidence of another variant or branch about this revision.
        let sibling = own
            .iter()
            .filter(|(other, ..)| other.revision == row.revision && other.variant < row.variant)
            .map(|(other, ..)| &*other.variant)
            .max();
        // Where a rate explains the results on the sibling badly, the sibling has another one.
        let by_sibling =
            sibling.and_then(|sibling| broke[&(sibling, &*row.revision)].map(|broke| (sibling, broke)));
        let by_sibling: Option<[f64; HYPOTHESES]> = by_sibling.map(|(sibling, broke)| {
            let log = &log_by_variant[sibling];
            let top = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let likelihood = log.map(|log| f64::exp(log - top));
            let mean: f64 = (0..HYPOTHESES).map(|k| on_variant(k) * likelihood[k]).sum();
            let broke_there: f64 = (0..HYPOTHESES)
                .map(|k| on_variant(k) * likelihood[k] / mean * broke[k])
                .sum();
            std::array::from_fn(|k| {
                let shared = 0.99 * likelihood[k] / (0.99 * likelihood[k] + 0.01 * mean);
                shared * broke[k] + (1.0 - shared) * broke_there
            })
        });
        let begins = is_new && latest.get(*chain).is_some_and(|(_, _, letter)| *letter != 'F');
        let may_be_merged = begins && is_stable(chain) && *letter == 'F';
        let branches: BTreeSet<_> = own
            .iter()
            .map(|(_, other, ..)| *other)
            .filter(|other| may_be_merged && other.0 == chain.0 && !is_stable(other))
            .collect();
        let branch_streak = branches
            .into_iter()
            .map(|other| {
                let runs_on = rows
                    .iter()
                    .zip(chains)
                    .any(|(later, of)| of == other && rank[&*later.revision] > rank[&*row.revision]);
                if runs_on {
                    return 0;
                }
                let before = own
                    .iter()
                    .rev()
                    .filter(|(row_of_other, of, ..)| *of == other && row_of_other.counts(test));
                let mut before = before.peekable();
                let is_near = |last: &&(&Row, &Chain, char, u32)| row.at - last.0.at <= 86_400_000;
                if !before.peek().is_some_and(is_near) {
                    return 0;
                }
                before.take_while(|(_, _, letter, _)| *letter == 'F').count()
            })
            .max()
            .filter(|streak| *streak > 0);
        let of_branch = |k: usize| touchy(k).map_or(other, |first| other.max(0.1 * first));
        let of_first = |k: usize| {
            let first = f64::min(0.5, 2.0 * of_branch(k));
            touchy(k).map_or(first, |touchy| first.max(touchy))
        };
        let of_stable = |k: usize| {
            let breaks = row.stable_rates.0;
            touchy(k).map_or(breaks, |first| (150.0 * first * breaks).min(0.5 * first))
        };
        let breaks = |k: usize, usual: f64| {
            let alone = if is_stable(chain) {
                of_stable(k)
            } else {
                of_branch(k)
            };
            if let Some(broke) = by_sibling {
                0.85 * broke[k] + 0.15 * alone * (1.0 - broke[k])
            } else if let Some(streak) = branch_streak {
                alone + (1.0 - alone) * 0.2 * of_branch(k) / (of_branch(k) + theta(k).powi(streak as i32))
            } else if sibling.is_some() && *letter == 'F' {
                0.15 * alone
            } else {
                usual
            }
        };
        // The revisions of the chain since the last result there, if they matter and nothing else is known.
        let revisions = match latest.get(*chain) {
            Some((before, _, was))
                if is_new
                    && (*letter == 'F' || *was == 'F')
                    && by_sibling.is_none()
                    && branch_streak.is_none()
                    && !(sibling.is_some() && *letter == 'F') =>
            {
                let between = rows.iter().zip(chains).filter(|(_, of)| of == chain);
                let ranks = between.map(|(row, _)| rank[&*row.revision]);
                let since = ranks.filter(|of| *of > rank[*before] && *of <= rank[&*row.revision]);
                since.collect::<BTreeSet<_>>().len()
            }
            _ => 1,
        };
        let mut own_broke = [0.0; HYPOTHESES];
        let stable_chain = (chain.0.clone(), Some("main".to_owned()));
        let mut next = [0.0; HYPOTHESES];
        for k in 0..HYPOTHESES {
            let m = b.get(&stable_chain).map_or(0.0, |stable| 0.7 * stable[k]);
            // P(Broken) by this revision, and by anything.
            let (by_this, predicted) = match b.get(*chain) {
                None if is_stable(chain) => (0.0, 0.015),
                None => {
                    let h = breaks(k, of_first(k));
                    (h * (1.0 - m), h + (1.0 - h) * m)
                }
                Some(b) if !is_new => {
                    let (breaks, fixes) = (0.0003 + 0.0012 * days_since, 0.002);
                    let broke_before = broke[&(&*row.variant, &*row.revision)].map_or(0.0, |broke| broke[k]);
                    (
                        broke_before * (1.0 - fixes),
                        b[k] * (1.0 - fixes) + (1.0 - b[k]) * breaks,
                    )
                }
                Some(b) => {
                    let (breaks, fixes, own) = if is_stable(chain) {
                        (breaks(k, of_stable(k)), row.stable_rates.1, 1.0)
                    } else {
                        let h = breaks(k, of_branch(k));
                        let either = h + (1.0 - h) * 0.3 * m;
                        let mends = if k == 12 { 0.8 } else { 0.2 };
                        (either, mends * (1.0 - m), h * (1.0 - 0.3 * m) / either)
                    };
                    // Revision by revision, from broken code and from good code.
                    let (mut still_broken, mut broken) = (1.0, 0.0);
                    for _ in 0..revisions {
                        still_broken = still_broken * (1.0 - fixes) + (1.0 - still_broken) * breaks;
                        broken = broken * (1.0 - fixes) + (1.0 - broken) * breaks;
                    }
                    (
                        (1.0 - b[k]) * broken * own,
                        b[k] * still_broken + (1.0 - b[k]) * broken,
                    )
                }
            };
            let p1 = 1.0 - (1.0 - theta(k)) * (1.0 - row.beta_of(test));
            let (good, broken) = row.likelihood(test, p1);
            let z = (1.0 - predicted) * good + predicted * broken;
            log_by_variant.entry(&row.variant).or_default()[k] += f64::ln(z);
            next[k] = predicted * broken / z;
            own_broke[k] = by_this * broken / z;
        }
        b.insert((*chain).clone(), next);
        latest.insert((*chain).clone(), (&row.revision, row.at, *letter));
        let entry = broke
            .entry((&*row.variant, &*row.revision))
            .or_insert(Some([0.0; HYPOTHESES]));
        *entry = entry.filter(|_| *letter == 'F').map(|_| own_broke);
        // What fails at the end of a branch that is over was not mended.
        let last_result = own.iter().rfind(|(_, of, ..)| of == chain).unwrap().0;
        let last_run = rows.iter().zip(chains).rfind(|(_, of)| of == chain).unwrap().0;
        let newest = rows.iter().map(|row| row.at).max().unwrap();
        let is_over = newest - last_run.at > 86_400_000;
        if std::ptr::eq(last_result, *row) && *letter == 'F' && is_over && !is_stable(chain) {
            log_by_variant.get_mut(&*row.variant).unwrap()[12] += f64::ln(1.0 - 0.7 * next[12]);
        }
    }
    // The posterior over the variants for which a condition holds, and the logarithm of their marginal likelihood.
    let prior_on_variant = |k: usize| {
        if log_by_variant.len() > 1 {
            on_variant(k)
        } else {
            prior(k)
        }
    };
    let posterior = |counts: &dyn Fn(&str) -> bool, prior: &dyn Fn(usize) -> f64| -> (Vec<f64>, f64) {
        let of_variants = log_by_variant.iter().filter(|(variant, _)| counts(variant));
        let mut log = [0.0; HYPOTHESES];
        for (_, of_variant) in of_variants {
            (0..HYPOTHESES).for_each(|k| log[k] += of_variant[k]);
        }
        let top = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weight = |k: usize| prior(k) * f64::exp(log[k] - top);
        let total: f64 = (0..HYPOTHESES).map(weight).sum();
        let weights = (0..HYPOTHESES).map(|k| weight(k) / total).collect();
        (weights, total.ln() + top)
    };
    let (w, log_of_all) = posterior(&|_| true, &prior);
    let failed_ever = own.iter().any(|(_, _, letter, _)| *letter != 'P');
    // The test is reliable, unreliable everywhere, or unreliable on one variant and reliable on all others.
    let variants: Vec<&str> = log_by_variant.keys().copied().collect();
    let is_reliable = |k: usize| k == 0 || touchy(k).is_some();
    let mut explanations: Vec<(f64, bool, f64)> = Vec::new();
    for (k, weight) in w.iter().enumerate() {
        let everywhere = if is_reliable(k) || variants.len() == 1 {
            1.0
        } else {
            0.7
        };
        explanations.push((
            f64::ln(everywhere * weight) + log_of_all,
            is_reliable(k),
            theta(k),
        ));
    }
    for variant in variants.iter().filter(|_| variants.len() > 1) {
        let (here, log_here) = posterior(&|other| other == *variant, &prior_on_variant);
        let (elsewhere, log_elsewhere) = posterior(&|other| other != *variant, &prior);
        let failed_on = |variant: &str| -> BTreeSet<&str> {
            let failed = own
                .iter()
                .filter(|(row, _, letter, _)| *letter == 'F' && row.variant == variant);
            failed.map(|(row, ..)| &*row.revision).collect()
        };
        let others = variants.iter().filter(|other| *other != variant);
        let elsewhere_too: BTreeSet<&str> = others.flat_map(|other| failed_on(other)).collect();
        let shared = failed_on(variant).intersection(&elsewhere_too).count();
        let breakages = f64::powi(0.0015, shared as i32);
        let share = 0.3 / variants.len() as f64 * (elsewhere[0] + elsewhere[11] + elsewhere[12])
            / (1.0 - unreliable)
            * breakages;
        for k in (0..HYPOTHESES).filter(|k| !is_reliable(*k)) {
            explanations.push((
                f64::ln(share * here[k]) + log_here + log_elsewhere,
                false,
                theta(k),
            ));
        }
    }
    let top = explanations
        .iter()
        .map(|(log, ..)| *log)
        .fold(f64::NEG_INFINITY, f64::max);
    let mean = |value: &dyn Fn(bool, f64) -> f64| -> f64 {
        let weights = explanations.iter().map(|(log, ..)| f64::exp(log - top));
        let sum: f64 = explanations
            .iter()
            .map(|(log, reliable, rate)| f64::exp(log - top) * value(*reliable, *rate))
            .sum();
        sum / weights.sum::<f64>()
    };
    let score = if failed_ever {
        mean(&|reliable, _| if reliable { 0.0 } else { 1.0 })
    } else {
        0.0
    };
    let rate = if failed_ever { mean(&|_, rate| rate) } else { 0.0 };

    // By chain.
    let newest_stable = own
        .iter()
        .filter(|(_, c, ..)| is_stable(c))
        .map(|(row, ..)| row.at)
        .max();
    let (mut contradictions, mut episodes, mut flips, mut pairs) = (0, 0, 0, 0);
    let (mut broken, mut is_broken) = (None, false);
    let (mut open, mut fails_now) = (0, false);
    let mut failed_before: BTreeSet<(&str, &str)> = BTreeSet::new();
    let newest_of_all = own.iter().map(|(row, ..)| row.at).max();
    let mut failing_on: BTreeMap<Option<String>, (u32, i32)> = BTreeMap::new();
    for chain in own.iter().map(|(_, chain, ..)| *chain).collect::<BTreeSet<_>>() {
        let here: Vec<_> = own
            .iter()
            .filter(|(row, c, ..)| *c == chain && row.counts(test))
            .collect();
        for revision in here
            .iter()
            .map(|(row, ..)| &row.revision)
            .collect::<BTreeSet<_>>()
        {
            let has_result = |failed: bool| {
                here.iter()
                    .any(|(row, _, l, _)| row.revision == *revision && (*l == 'F') == failed)
            };
            let is_mixed = here
                .iter()
                .any(|(row, ..)| row.revision == *revision && row.is_mixed(test));
            contradictions += u32::from(is_mixed || (has_result(true) && has_result(false)));
        }
        let counts = |revision: &str| {
            !failed_before
                .iter()
                .any(|(variant, failed)| *variant < &*chain.0 && *failed == revision)
        };
        episodes += (0..here.len())
            .filter(|i| here[*i].2 == 'F' && (*i == 0 || here[i - 1].2 != 'F'))
            .filter(|i| counts(&here[*i].0.revision))
            .count();
        flips += here
            .windows(2)
            .filter(|pair| (pair[0].2 == 'P') != (pair[1].2 == 'P'))
            .count();
        pairs += here.len().saturating_sub(1);
        let newest = own
            .iter()
            .filter(|(_, c, ..)| *c == chain)
            .map(|(row, ..)| row.at)
            .max();
        let streak = here
            .iter()
            .rev()
            .take_while(|(_, _, letter, _)| *letter == 'F')
            .count();
        let is_live = |newest_of_kind: Option<i64>| {
            newest_of_kind.unwrap() - newest.unwrap() <= 3 * 86_400_000
                // A test that never failed cannot be broken, whether or not it left its suite.
                && (!failed_ever || !has_left(rows, chains, chain, test))
        };
        let gone = is_gone(rows, chains, chain, test);
        let is_red = own.iter().rfind(|(_, c, ..)| *c == chain).unwrap().2 == 'F';
        if is_stable(chain) && is_live(newest_stable) || newest_stable.is_none() && newest == newest_of_all {
            fails_now |= !gone && (streak > 0 || is_red);
            open += usize::from(streak > 0 && counts(&here[here.len() - streak].0.revision));
        }
        for (row, ..) in here.iter().filter(|(_, _, letter, _)| *letter == 'F') {
            failed_before.insert((&row.variant, &row.revision));
        }
        if !is_stable(chain) && is_live(newest_of_all) && !gone && streak > 0 {
            let since = here[here.len() - streak].0.number;
            let longest = failing_on.entry(chain.1.clone()).or_insert((0, 0));
            if streak as u32 > longest.0 {
                *longest = (streak as u32, since);
            }
        }
        if is_stable(chain) && is_live(newest_stable) {
            let p: f64 = if failed_ever {
                let (own, log_of_own) = posterior(&|variant| variant == chain.0, &prior_on_variant);
                let (_, log_of_others) = posterior(&|variant| variant != chain.0, &prior);
                let apart = 1.0 / (1.0 + f64::exp(log_of_all - log_of_own - log_of_others));
                let weight = |k: usize| apart * own[k] + (1.0 - apart) * w[k];
                (0..HYPOTHESES).map(|k| weight(k) * b[chain][k]).sum()
            } else {
                0.0
            };
            broken = Some(broken.map_or(p, |other: f64| other.max(p)));
            let of_crowd = streak > 0 && here[here.len() - streak].0.beta >= 0.1;
            is_broken |= streak >= if of_crowd { 3 } else { 2 } && p >= 0.75;
        }
    }

    // By run, in the order of time.
    type Results<'r> = Vec<(&'r Row, char)>;
    let mut runs: BTreeMap<(i64, i32, &str), Results<'_>> = BTreeMap::new();
    for (row, _, letter, _) in &own {
        runs.entry((row.at, row.number, &row.run))
            .or_default()
            .push((row, *letter));
    }
    let counted = |rows: &[(&Row, char)], letters: &str| {
        rows.iter()
            .any(|(row, letter)| row.counts(test) && letters.contains(*letter))
    };
    let considered: Vec<_> = runs.values().filter(|rows| counted(rows, "PRF")).collect();
    let n = considered.len() as u32;
    let failing = considered.iter().filter(|rows| counted(rows, "RF")).count() as u32;
    let recovered = considered.iter().filter(|rows| counted(rows, "R")).count() as u32;
    let passes = considered
        .iter()
        .rev()
        .take_while(|rows| !counted(rows, "RF"))
        .count() as u32;
    let on_main = |rows: &[(&Row, char)]| rows.iter().any(|(row, _)| row.branch.as_deref() == Some("main"));
    let ran_on_main = runs.values().any(|rows| on_main(rows));
    let streak = runs
        .values()
        .rev()
        .filter(|rows| !ran_on_main || on_main(rows))
        .take_while(|rows| rows.iter().any(|(_, letter)| *letter == 'F'))
        .count() as u32;
    let mut impact = 0.0;
    for mine in considered.iter().filter(|rows| on_main(rows)) {
        if counted(mine, "F") {
            let name = &mine[0].0.run;
            let failed_tests: BTreeSet<u32> = rows
                .iter()
                .filter(|row| row.run == *name)
                .flat_map(|row| {
                    row.results
                        .iter()
                        .filter(|(_, (letter, _))| *letter == 'F')
                        .map(|(test, _)| *test)
                })
                .collect();
            impact += 1.0 / failed_tests.len() as f64;
        } else if counted(mine, "R") {
            impact += 0.1;
        }
    }

    let times: Vec<i64> = considered.iter().map(|rows| rows[0].0.at).collect();
    // Five runs, or three at a pace with which the test ran before the window and five times in it.
    let enough = n >= 5
        || n >= 3 && {
            let (oldest, newest) = (times[0], times[times.len() - 1]);
            let pace = (newest - oldest) as f64 / f64::from(n - 1);
            let from = (now.unix_ms() - 14 * 86_400_000) as f64;
            oldest as f64 - pace <= from && 4.0 * pace <= 14.0 * 86_400_000.0
        };
    let incidents = recovered + contradictions;
    let is_flaky = (incidents >= 1 && score >= 0.4) || (episodes > open && score >= 0.5);
    let r = f64::max(0.0, f64::from(failing) - 0.5) / (f64::from(n - passes) + 1.0);
    let is_resolved = failing > 0 && passes >= 30 && (1.0 - r).powi(passes as i32) < 0.0001;
    let status = if failed_ever && calendar(of_calendar, test).is_some() {
        "flaky"
    } else if is_broken {
        "broken"
    } else if !enough && incidents == 0 && !fails_now {
        "insufficient_data"
    } else if is_flaky && !is_resolved && (enough || incidents > 0) {
        "flaky"
    } else if fails_now {
        "failing"
    } else {
        "healthy"
    };
    Plain {
        status,
        score,
        rate,
        broken,
        considered: n,
        seen: runs.len() as u32,
        failure_rate: (n > 0).then(|| f64::from(failing) / f64::from(n)),
        flip_rate: if pairs > 0 {
            flips as f64 / pairs as f64
        } else {
            0.0
        },
        streak,
        impact,
        failing_on: {
            let mut entries: Vec<_> = failing_on
                .into_iter()
                .map(|(branch, (streak, since))| (branch, streak, since))
                .collect();
            entries.sort_by_key(|(_, streak, _)| std::cmp::Reverse(*streak));
            entries
        },
    }
}

/// A variant and a branch.
pub(crate) type Chain = (String, Option<String>);

/// The hours in which the test fails by the calendar, and its rate there: on all branches, else on the stable one alone if
/// others failed it, too.
pub(crate) fn calendar(rows: &[Row], test: u32) -> Option<(BTreeSet<i64>, f64)> {
    let is_stable = |row: &Row| chain_of(rows, row).1.as_deref() == Some("main");
    let failed = |row: &Row| row.results.get(&test).is_some_and(|(letter, _)| *letter != 'P');
    period(rows, test, |_| true).or_else(|| {
        let others_failed = rows.iter().any(|row| failed(row) && !is_stable(row));
        others_failed.then(|| period(rows, test, is_stable)).flatten()
    })
}

/// The hours of the days of the calendar, or of a time of the day, in most of which the test fails, on three days or more,
/// and at no other time, which is unlikely by chance; and its rate there.
fn period(rows: &[Row], test: u32, is_read: impl Fn(&Row) -> bool) -> Option<(BTreeSet<i64>, f64)> {
    let counted = rows.iter().filter(|row| row.counts(test) && is_read(row));
    let hours = |failed: bool| -> BTreeSet<i64> {
        let rows = counted.clone().filter(|row| {
            let letter = row.results.get(&test).map(|(letter, _)| *letter);
            letter.is_some_and(|letter| !failed || letter != 'P')
        });
        rows.map(|row| row.at.div_euclid(3_600_000)).collect()
    };
    let days =
        |hours: &BTreeSet<i64>| -> BTreeSet<i64> { hours.iter().map(|hour| hour.div_euclid(24)).collect() };
    let (all, failed) = (hours(false), hours(true));
    let first = failed.first()?;
    // All of the failed ones, drawn from all, are among given ones.
    let chance = |failed: usize, given: usize, all: usize| -> f64 {
        (0..failed)
            .map(|i| given.saturating_sub(i) as f64 / (all - i) as f64)
            .product()
    };
    let failed_days = days(&failed);
    let weekday = |hour: &i64| (hour.div_euclid(24) + 4).rem_euclid(7);
    // The date, as text: 2026-01-31.
    let date = |hour: i64| Timestamp::from_unix_ms(hour * 3_600_000).to_string()[..10].to_owned();
    let is_last = |hour: i64, days: i64| date(hour)[..7] != date(hour + 24 * days)[..7];
    let (of_day, of_week) = (first.rem_euclid(24), weekday(first));
    let apart = failed_days.last()? - failed_days.first()?;
    let months: BTreeSet<String> = failed.iter().map(|hour| date(*hour)[..7].to_owned()).collect();
    let of_months = months.len();
    type IsIn<'a> = Box<dyn Fn(&i64) -> bool + 'a>;
    let three_days = failed_days.len() >= 3;
    // Two hours around midnight are of one day.
    let two_hours = |first: i64| -> (IsIn<'_>, f64, bool) {
        let nights = failed.iter().map(|hour| (hour - first).div_euclid(24));
        let three_nights = nights.collect::<BTreeSet<_>>().len() >= 3;
        let is_in = move |hour: &i64| three_nights && (hour - first).rem_euclid(24) < 2;
        (Box::new(is_in), 0.005 / 48.0, false)
    };
    let periods: [(IsIn<'_>, f64, bool); 8] = [
        (
            Box::new(|hour| three_days && apart > 2 && matches!(weekday(hour), 0 | 6)),
            0.005,
            true,
        ),
        (
            Box::new(|hour| three_days && weekday(hour) == of_week),
            0.005 / 7.0,
            true,
        ),
        (
            Box::new(|hour| three_days && date(*hour).ends_with("-01")),
            0.005 / 3.0,
            true,
        ),
        (
            Box::new(|hour| three_days && is_last(*hour, 1)),
            0.005 / 3.0,
            true,
        ),
        (
            Box::new(|hour| of_months >= 3 && is_last(*hour, 3)),
            0.005 / 3.0,
            true,
        ),
        (
            Box::new(|hour| three_days && hour.rem_euclid(24) == of_day),
            0.005 / 48.0,
            false,
        ),
        two_hours(of_day),
        two_hours(of_day - 1),
    ];
    let found = periods.iter().filter_map(|(is_in, level, of_days)| {
        let given: BTreeSet<i64> = all.iter().copied().filter(|hour| is_in(hour)).collect();
        let by_hours = chance(failed.len(), given.len(), all.len());
        let by_days = chance(failed_days.len(), days(&given).len(), days(&all).len());
        let decides = failed.iter().all(is_in)
            && by_hours < *level
            && (!of_days || by_days < *level)
            && 2 * failed.len() >= given.len();
        let rate = (failed.len() as f64 + 0.5) / (given.len() as f64 + 1.0);
        decides.then_some((by_hours / level, is_in, rate))
    });
    let (_, is_in, rate) = found.min_by(|(one, ..), (other, ..)| one.total_cmp(other))?;
    let hours = rows.iter().map(|row| row.at.div_euclid(3_600_000));
    Some((hours.filter(|hour| is_in(hour)).collect(), rate))
}

/// Whether the rows of a chain after the last result of a test show that it left its suite.
fn has_left(
    rows: &[Row],
    chains: &[(String, Option<String>)],
    chain: &(String, Option<String>),
    test: u32,
) -> bool {
    let here: Vec<&Row> = rows
        .iter()
        .zip(chains)
        .filter(|(_, of)| *of == chain)
        .map(|(row, _)| row)
        .collect();
    let ran: Vec<usize> = (0..here.len())
        .filter(|place| here[*place].results.contains_key(&test))
        .collect();
    let last = *ran.last().unwrap();
    let is_complete = |row: &&&Row| {
        let of_last = here[last].results.keys();
        let shared = of_last.filter(|test| row.results.contains_key(test)).count();
        row.is_complete && shared as f64 >= 0.9 * (here[last].results.len() - 1) as f64
    };
    let missed = here[last + 1..].iter().filter(is_complete).count();
    let gaps = ran.windows(2).map(|pair| pair[1] - pair[0] - 1);
    missed >= 3 && missed > gaps.max().unwrap_or(0)
}

/// Whether the newest complete row of a chain by time lacks a test, and no later one has it.
fn is_gone(rows: &[Row], chains: &[Chain], chain: &Chain, test: u32) -> bool {
    let here = rows.iter().zip(chains).filter(|(_, of)| *of == chain);
    let deciding = here.filter(|(row, _)| row.is_complete || row.results.contains_key(&test));
    let newest = deciding.max_by_key(|(row, _)| (row.at, row.number));
    newest.is_some_and(|(row, _)| !row.results.contains_key(&test))
}

/// The same figures of the engine's verdict.
fn figures_of(verdict: &Verdict) -> Plain {
    let figures = verdict.figures;
    Plain {
        status: verdict.status.as_str(),
        score: figures.flake_score,
        rate: figures.flake_rate,
        broken: figures.broken_probability,
        considered: figures.runs_considered,
        seen: figures.runs_in_window,
        failure_rate: figures.failure_rate,
        flip_rate: figures.flip_rate,
        streak: figures.failure_streak,
        impact: figures.impact,
        failing_on: verdict
            .failing_on
            .iter()
            .map(|on| (on.branch.clone(), on.streak, on.since_run))
            .collect(),
    }
}

fn near(a: &Plain, b: &Plain) -> bool {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9;
    let option = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => close(a, b),
        (a, b) => a == b,
    };
    (a.status, a.considered, a.seen, a.streak) == (b.status, b.considered, b.seen, b.streak)
        && a.failing_on == b.failing_on
        && close(a.score, b.score)
        && close(a.rate, b.rate)
        && option(a.broken, b.broken)
        && option(a.failure_rate, b.failure_rate)
        && close(a.flip_rate, b.flip_rate)
        && close(a.impact, b.impact)
}

/// Compares every verdict of the engine with the plain model.
pub(crate) fn compare(history: &History, now: Timestamp) -> Result<(), TestCaseError> {
    let (_, tests) = rows(history, now);
    let mut settled = history.clone();
    settled.runs.retain(|observed| observed.is_settled(now));
    let (of_calendar, _) = rows_of_days(&settled, now, 100);
    let (rows, _) = rows(&settled, now);
    let chains: Vec<_> = rows.iter().map(|row| chain_of(&rows, row)).collect();
    let verdicts = Engine::default().verdicts(history, now);
    let (unreliable, other) = (unreliable(&rows), of_branches(&rows, &chains).0);
    let judged_tests: Vec<u32> = verdicts.iter().map(|verdict| verdict.test).collect();
    prop_assert_eq!(judged_tests, tests.into_iter().collect::<Vec<_>>());
    for verdict in &verdicts {
        let (engine, plain) = (
            figures_of(verdict),
            judge(
                &rows,
                &chains,
                verdict.test,
                (unreliable, other),
                (&of_calendar, now),
            ),
        );
        prop_assert!(
            near(&engine, &plain),
            "test {}: {engine:#?} is not {plain:#?}",
            verdict.test
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_agrees_with_the_plain_model(history in history::arbitrary()) {
        compare(&history, history::end())?;
    }

    /// Long stretches of passes, which the engine skips, with absences and branches between them.
    #[test]
    fn the_engine_agrees_over_long_stretches_of_passes(history in history::long()) {
        compare(&history, history::end())?;
    }
}
