//! A test's results in the order of time, the input of the rivals.

use std::sync::Arc;

use assay_flakiness::domain::{observation::History, timestamp::Timestamp};

/// One result.
#[derive(Debug, Clone)]
pub(crate) struct TestResult {
    /// The run's index in the history.
    pub(crate) run: usize,
    /// The branch and the variant.
    pub(crate) chain: (Option<Arc<str>>, Arc<str>),
    /// Whether the chain is the stable branch's.
    pub(crate) stable: bool,
    /// The revision, if known.
    pub(crate) revision: Option<Arc<str>>,
    /// Whether its final attempt failed.
    pub(crate) failed: bool,
    /// Whether it passed on retry.
    pub(crate) recovered: bool,
}

/// The results of every test within a period, by test, oldest first.
pub(crate) fn by_test(history: &History, from: Timestamp, to: Timestamp) -> Vec<Vec<TestResult>> {
    let mut runs: Vec<usize> = (0..history.runs.len()).collect();
    runs.sort_by_key(|run| {
        history
            .runs
            .get(*run)
            .map(|run| (run.run.started_at, run.run.number))
    });
    let named = history.runs.iter().any(|run| run.run.branch.is_some());
    let mut results = vec![Vec::new(); usize::try_from(history.tests).unwrap_or(0)];
    for run in runs {
        let Some(observed) = history.runs.get(run) else {
            continue;
        };
        let facts = &observed.run;
        if !(from..=to).contains(&facts.started_at) {
            continue;
        }
        let mut failures = observed.failures.iter().peekable();
        for test in observed
            .present
            .iter()
            .filter(|test| !observed.skipped.contains(*test))
        {
            while failures.next_if(|failure| failure.test < test).is_some() {}
            let failure = failures.next_if(|failure| failure.test == test);
            let Some(of_test) = usize::try_from(test).ok().and_then(|test| results.get_mut(test)) else {
                continue;
            };
            of_test.push(TestResult {
                run,
                chain: (facts.branch.clone(), Arc::clone(&facts.variant)),
                stable: !named || facts.branch.as_deref() == Some(&*history.stable_branch),
                revision: facts.revision.clone(),
                failed: failure.is_some_and(|failure| !failure.recovered),
                recovered: failure.is_some_and(|failure| failure.recovered),
            });
        }
    }
    results
}
