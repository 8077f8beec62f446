//! The table of a simulated population.

use std::{collections::BTreeSet, fmt::Write as _};

use assay_flakiness::{
    Engine,
    domain::{
        observation::History,
        timestamp::Timestamp,
        verdict::{Judge, VerdictStatus},
    },
};

use crate::{
    breakdown::Breakdown,
    population::Name,
    results::{TestResult, by_test},
    rival::{Rival, is_broken},
    runs::time,
    score::Calls,
    truth::{Nature, RATES, Test, Truth},
    world::World,
};

/// Each project is judged at the end of these days.
const JUDGED_DAYS: [f64; 3] = [14.0, 21.0, 28.0];

/// The calls of one rule.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    flaky: Calls,
    broken: Calls,
    sparse: Calls,
}

impl Row {
    fn add(&mut self, test: &Test, truth: Truth, called: Option<VerdictStatus>) {
        let was_flaky = truth == Truth::Broken && test.nature != Nature::Stable;
        let flaky = called == Some(VerdictStatus::Flaky);
        let broken = called == Some(VerdictStatus::Broken);
        if truth == Truth::Ambiguous {
            return;
        }
        // Both verdicts are correct for a flaky test that broke. A missing `broken` counts below.
        if !(flaky && was_flaky) {
            self.flaky.add(flaky, truth == Truth::Flaky);
        }
        self.broken.add(broken, truth == Truth::Broken);
        if test.sparse {
            self.sparse.add(flaky, truth == Truth::Flaky);
        }
    }
}

/// Simulates a population and judges it.
pub(crate) fn table(name: Name, seeds: &[u64], rates: bool) -> String {
    let mut rows: Vec<(&str, Row)> = vec![("engine", Row::default())];
    rows.extend(Rival::ALL.iter().map(|rival| (rival.name(), Row::default())));
    let mut by_rate = RATES.map(|rate| (rate, Calls::default()));
    let mut bands = [(0_u32, 0_u32); 4];
    let mut breakdown = Breakdown::default();
    for seed in seeds {
        let world = World::new(&name.population(), *seed);
        let stable_runs: Vec<f64> = world
            .runs
            .iter()
            .filter(|run| run.branch == 0)
            .map(|run| run.at)
            .collect();
        for day in JUDGED_DAYS {
            let now = time(day);
            let called = statuses(&world.history, now);
            let outages = outages(&world.history, now);
            let results = by_test(&world.history, now.plus_days(-14), now);
            for (ordinal, (test, results)) in world.tests.iter().zip(&results).enumerate() {
                let truth = test.truth_at(day, &stable_runs);
                let judged = called.get(ordinal).copied().flatten();
                let call = judged.map(|(status, _)| status);
                let rivals = Rival::ALL
                    .iter()
                    .map(|rival| Some(rival_status(*rival, results, &outages)));
                for ((_, row), call) in rows.iter_mut().zip(std::iter::once(call).chain(rivals)) {
                    row.add(test, truth, call);
                }
                let visible = results
                    .iter()
                    .filter(|result| (result.failed || result.recovered) && !outages.contains(&result.run));
                breakdown.add(test, truth, call, visible.count());
                if let Nature::Flaky { rate, from: 0.0, .. } = test.nature
                    && truth == Truth::Flaky
                    && !test.sparse
                    && let Some((_, calls)) = by_rate.iter_mut().find(|(true_rate, _)| *true_rate == rate)
                {
                    calls.add(call == Some(VerdictStatus::Flaky), true);
                }
                if let Some((_, score)) =
                    judged.filter(|_| truth != Truth::Ambiguous && truth != Truth::Broken)
                {
                    let band = [0.5, 0.7, 0.9].iter().filter(|bound| score >= **bound).count();
                    if let Some(band) = bands.get_mut(band) {
                        band.0 += u32::from(truth == Truth::Flaky);
                        band.1 += 1;
                    }
                }
            }
        }
    }
    render(name, &rows, rates.then_some((by_rate, bands, breakdown)))
}

fn statuses(history: &History, now: Timestamp) -> Vec<Option<(VerdictStatus, f64)>> {
    let mut statuses = vec![None; usize::try_from(history.tests).unwrap_or(0)];
    for verdict in Engine::default().verdicts(history, now) {
        let place = usize::try_from(verdict.test)
            .ok()
            .and_then(|test| statuses.get_mut(test));
        if let Some(status) = place {
            *status = Some((verdict.status, verdict.figures.flake_score));
        }
    }
    statuses
}

/// The runs that the engine excluded for any test, by index in the history.
pub(crate) fn outages(history: &History, now: Timestamp) -> BTreeSet<usize> {
    let judged = Engine::default().judge(history, now);
    let dropped: BTreeSet<String> = judged
        .into_iter()
        .flat_map(|judgement| judgement.evidence.dropped)
        .map(|run| run.run_id)
        .collect();
    let runs = history.runs.iter().enumerate();
    runs.filter(|(_, run)| dropped.contains(&*run.run.id))
        .map(|(run, _)| run)
        .collect()
}

fn rival_status(rival: Rival, results: &[TestResult], outages: &BTreeSet<usize>) -> VerdictStatus {
    if is_broken(results) {
        VerdictStatus::Broken
    } else if rival.is_flaky(results, outages) {
        VerdictStatus::Flaky
    } else {
        VerdictStatus::Healthy
    }
}

type Details = ([(f64, Calls); RATES.len()], [(u32, u32); 4], Breakdown);

fn render(name: Name, rows: &[(&str, Row)], details: Option<Details>) -> String {
    let mut table = format!(
        "{name:?}                                 flaky P/R/F1        broken P/R/F1       sparse flaky\n"
    );
    for (rule, row) in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "  {rule:<32} {}   {}   {}",
            row.flaky, row.broken, row.sparse
        );
    }
    if let Some((by_rate, bands, breakdown)) = details {
        let recalls: Vec<String> = by_rate
            .iter()
            .map(|(rate, calls)| format!("{:.1} % {:.2}", rate * 100.0, calls.recall()))
            .collect();
        let _ = writeln!(table, "  recall by true rate: {}", recalls.join(", "));
        let shares: Vec<String> = ["< 0.5", "0.5-0.7", "0.7-0.9", ">= 0.9"]
            .iter()
            .zip(bands)
            .map(|(band, (flaky, all))| {
                format!("{band}: {:.2} of {all}", f64::from(flaky) / f64::from(all.max(1)))
            })
            .collect();
        let _ = writeln!(table, "  truly flaky by score: {}", shares.join(", "));
        let _ = write!(table, "{breakdown}");
    }
    table
}
