//! The moment from which on a test takes longer, in the runs of a suite.
//!
//! The factor of each run is removed first. A change point divides the rest into runs before and after it, in which the
//! duration is a constant plus noise. All runs after it count, so a small factor is found that one run does not show.

use assay_domain::test::TestOrdinal;

use super::{
    Durations, FEWEST_TESTS, LEAST, Usual, UsualTest, log_densities, logs_without_factors, median,
    over_factors,
};

/// The fewest runs before a change point, and after it.
const FEWEST_BEFORE: usize = 5;
const FEWEST_AFTER: usize = 3;
/// The prior probability that a test became slower within the runs.
const PRIOR: f64 = 0.02;
/// The places of the usual logarithm of a duration around its estimate, in standard errors, with their weights.
const PLACES: [(f64, f64); 5] = [
    (-2.0, 0.054),
    (-1.0, 0.242),
    (0.0, 0.399),
    (1.0, 0.242),
    (2.0, 0.054),
];
/// A place counts only if the durations after it are this many times as probable around their own median as around the
/// usual one. Most places have less. Even at all places that is a probability of about .35, so leaving them out changes no
/// list of tests from .95 on.
const LEAST_GAIN: f64 = 10.0;
/// The standard error of a median in relation to that of a mean.
const MEDIAN_ERROR: f64 = 1.25;

/// A test that became slower and stayed so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The test.
    pub test: TestOrdinal,
    /// The index of the first run in which it was slower.
    pub run: usize,
    /// How many times as long it takes since then, without the factors of the runs.
    pub factor: f64,
    /// P(it became slower within the runs), from 0 to 1.
    pub probability: f64,
    /// The milliseconds that it takes longer in a run of usual speed.
    pub extra_ms: f64,
    /// The runs since then in which it has a duration.
    pub runs: u32,
}

/// The tests that became slower within these runs of one suite, oldest first. A test has at most one change point.
pub fn change_points(runs: &[Durations]) -> Vec<ChangePoint> {
    let logs = logs_without_factors(runs);
    if logs.len() < FEWEST_TESTS {
        return Vec::new();
    }
    let noise = Usual::of(&logs).noise;
    let points = logs
        .into_iter()
        .filter_map(|(test, of_test)| change_point(test, &of_test, noise));
    points.collect()
}

/// The change point of a test, by its runs with their logarithms; none if its durations do not rise.
fn change_point(test: TestOrdinal, of_test: &[(usize, f64)], noise: f64) -> Option<ChangePoint> {
    let places = FEWEST_BEFORE..=of_test.len().checked_sub(FEWEST_AFTER)?;
    let number = places.clone().count();
    let mut best: Option<(f64, usize, f64, f64)> = None;
    // The sum of P(results after it, if slower) / P(the same, if not), over the places that count.
    let mut ratios = 0.0;
    for place in places {
        let (before, after) = of_test.split_at_checked(place)?;
        let usual = UsualTest::of(before.iter().map(|(_, log)| *log));
        let mut later: Vec<f64> = after.iter().map(|(_, log)| *log).collect();
        let center = median(&mut later)?;
        let difference = center - usual.center;
        if difference < LEAST || gain(&usual, &later, center, noise) < LEAST_GAIN.ln() {
            continue;
        }
        let ratio = ratio(&usual, &later, noise);
        ratios += ratio;
        if best.is_none_or(|(most, ..)| ratio > most) {
            best = Some((ratio, place, difference, usual.center));
        }
    }
    let (_, place, difference, center) = best?;
    let slower = PRIOR * ratios / f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let runs = of_test.len() - place;
    Some(ChangePoint {
        test,
        run: of_test.get(place)?.0,
        factor: difference.exp(),
        probability: match slower.is_finite() {
            true => slower / (slower + 1.0 - PRIOR),
            false => 1.0,
        },
        extra_ms: center.exp() * (difference.exp() - 1.0),
        runs: u32::try_from(runs).unwrap_or(u32::MAX),
    })
}

/// The logarithm of: how many times as probable later durations are around this center as around the usual one.
fn gain(usual: &UsualTest, later: &[f64], center: f64, noise: f64) -> f64 {
    let scale = usual.scale(noise);
    let around = |center: f64| log_densities(later.iter().map(|log| (log - center) / scale));
    around(center) - around(usual.center)
}

/// P(later durations if the test became slower) / P(the same if it did not).
fn ratio(usual: &UsualTest, later: &[f64], noise: f64) -> f64 {
    let scale = usual.scale(noise);
    let error = MEDIAN_ERROR * scale / usual.runs.sqrt();
    // The logarithm of the probability of all later durations at a shift, for an error of the usual one.
    let log = |shift: f64| -> f64 {
        let at = PLACES.map(|(place, weight)| {
            let center = usual.center + place * error + shift;
            weight.ln() + log_densities(later.iter().map(|log| (log - center) / scale))
        });
        let largest = at.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        largest + at.iter().map(|at| (at - largest).exp()).sum::<f64>().ln()
    };
    let unchanged = log(0.0);
    over_factors(|factor| (log(factor) - unchanged).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of 20 tests on machines of different speeds. Test 7 takes longer from a run on.
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "durations are positive and small"
    )]
    fn runs(count: u32, slower: impl Fn(u32) -> f64) -> Vec<Durations> {
        let run = |run: u32| {
            (0..20)
                .map(|test| {
                    let noise = 0.9 + f64::from((test * 7 + run * 13) % 11) * 0.02;
                    let machine = 1.0 + f64::from(run % 5) * 0.2;
                    let factor = if test == 7 { slower(run) } else { 1.0 };
                    (
                        test,
                        (f64::from((test + 1) * 1_000) * noise * machine * factor).round() as u64,
                    )
                })
                .collect()
        };
        (0..count).map(run).collect()
    }

    fn found(runs: &[Durations]) -> Vec<ChangePoint> {
        let points = change_points(runs).into_iter();
        points.filter(|point| point.probability >= 0.95).collect()
    }

    #[test]
    fn the_first_slower_run_is_named_with_what_it_costs() {
        let points = found(&runs(22, |run| if run >= 10 { 1.5 } else { 1.0 }));
        let [point] = points.as_slice() else {
            panic!("{points:?}")
        };
        assert_eq!((point.test, point.run, point.runs), (7, 10, 12));
        assert!((1.4..1.6).contains(&point.factor), "{point:?}");
        // Half of 8 s, on machines that differ.
        assert!((3_500.0..6_500.0).contains(&point.extra_ms), "{point:?}");
    }

    #[test]
    fn a_faster_test_and_one_slow_run_are_no_change() {
        assert_eq!(found(&runs(22, |_| 1.0)), []);
        assert_eq!(found(&runs(22, |run| if run >= 10 { 0.5 } else { 1.0 })), []);
        assert_eq!(found(&runs(22, |run| if run == 10 { 3.0 } else { 1.0 })), []);
        assert_eq!(found(&runs(7, |run| if run >= 5 { 3.0 } else { 1.0 })), []);
        assert_eq!(change_points(&[]), []);
    }
}
