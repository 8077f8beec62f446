//! What the stable branch's results teach about its failures, by its plain definition.

use super::*;

/// What the stable branch's rows teach about its failures.
pub(super) struct StableBranch {
    pub(super) breaks: f64,
    pub(super) crowds: f64,
    /// The odds of an outage against a breakage on several variants.
    pub(super) outages: f64,
    /// The same for a test that never failed before.
    pub(super) first_outages: f64,
    /// The probability of each flake rate.
    pub(super) rates: [f64; 10],
}

pub(super) fn stable_branch(rows: &[Row]) -> StableBranch {
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
        outages: outages(rows, &short, &long, false),
        first_outages: outages(rows, &short, &long, true),
        rates,
    }
}

/// The odds of an outage against a breakage on several variants; of the first streak of each test only, if asked for.
fn outages(
    rows: &[Row],
    short: &BTreeMap<(&str, u32), u32>,
    long: &BTreeMap<(&str, u32), u32>,
    only_first: bool,
) -> f64 {
    if stable_chains(rows).len() < 2 {
        return 0.0;
    }
    let begun: BTreeSet<&(&str, u32)> = short.keys().chain(long.keys()).collect();
    let rank = |revision: &str| rows.iter().position(|row| row.revision == revision);
    // The tests that failed on several variants, and those of them that kept failing, by revision.
    let mut revisions: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for of_test in &begun {
        let [short, long] = [short, long].map(|of| of.get(of_test).copied().unwrap_or(0));
        let is_later = |other: &&&(&str, u32)| other.1 == of_test.1 && rank(other.0) < rank(of_test.0);
        if short + long > 1 && !(only_first && begun.iter().any(|other| is_later(&other))) {
            let (tests, kept_failing) = revisions.entry(of_test.0).or_default();
            *tests += 1;
            *kept_failing += u32::from(long >= short);
        }
    }
    let lasting = revisions
        .values()
        .filter(|(tests, kept_failing)| 2 * kept_failing >= *tests)
        .count() as f64;
    (0.15 + revisions.len() as f64 - lasting) / (0.5 + lasting)
}
