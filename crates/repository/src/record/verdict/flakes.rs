//! Which flaky tests are worth a message.

use std::{collections::HashMap, sync::Arc};

use assay_domain::observation::{History, RunObservations};

/// The most failed tests of a run that are no crowd, where usually none fails.
const FEW: usize = 3;

/// The most failed tests of a run that are no crowd, by variant.
pub(super) struct Crowds<'a>(HashMap<&'a str, usize>);

impl<'a> Crowds<'a> {
    pub(super) fn of(history: &'a History) -> Self {
        let mut failures: HashMap<&str, Vec<usize>> = HashMap::new();
        for observed in &history.runs {
            let of_variant = failures.entry(&*observed.run.variant).or_default();
            of_variant.push(observed.failures.len());
        }
        let limit = |mut failures: Vec<usize>| {
            failures.sort_unstable();
            let median = failures.get(failures.len() / 2).copied().unwrap_or(0);
            FEW + 2 * median
        };
        let limits = failures.into_iter();
        Self(
            limits
                .map(|(variant, failures)| (variant, limit(failures)))
                .collect(),
        )
    }

    fn has(&self, observed: &RunObservations) -> bool {
        let limit = self.0.get(&*observed.run.variant);
        limit.is_some_and(|limit| observed.failures.len() > *limit)
    }

    /// Whether the failures of a flaky test have no other explanation than the test: at least two streaks of failures
    /// ended, without those in a crowd of failures, and without the first of each branch, which its own change explains.
    pub(super) fn leave_evidence(&self, history: &History, test: i32) -> bool {
        let Ok(test) = u32::try_from(test) else {
            return false;
        };
        let mut chains: HashMap<(&Option<Arc<str>>, &str), Vec<&RunObservations>> = HashMap::new();
        for observed in history.runs.iter().filter(|observed| observed.ran(test)) {
            let chain = (&observed.run.branch, &*observed.run.variant);
            chains.entry(chain).or_default().push(observed);
        }
        let stable = history.stable();
        let mut streaks = 0;
        for ((branch, _), mut runs) in chains {
            runs.sort_unstable_by_key(|observed| (observed.run.started_at, observed.run.number));
            let mut failed: Option<&RunObservations> = None;
            let mut may_be_own_change = !stable.is(branch.as_deref());
            for run in runs {
                if run.failed(test) {
                    failed = Some(run);
                    continue;
                }
                let has_recovered = run.failures.iter().any(|failure| failure.test == test);
                let before = failed.take();
                let Some(streak) = has_recovered.then_some(run).or(before) else {
                    continue;
                };
                if self.has(streak) {
                    continue;
                }
                let revision = &run.run.revision;
                let is_one_revision = has_recovered || revision.is_some() && *revision == streak.run.revision;
                if is_one_revision || !std::mem::take(&mut may_be_own_change) {
                    streaks += 1;
                }
            }
        }
        streaks >= 2
    }
}
