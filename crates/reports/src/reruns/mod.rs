//! Files of one import that ran again what failed in another file of it.
//!
//! `pytest --last-failed`, `--retry-failed-tests` of .NET, Bazel's `test_attempts` and the `-rerun_1` folders of
//! Firebase Test Lab write each attempt into a file of its own. Such results continue the failed executions of the
//! earlier file. Two conditions must hold. The later file has only tests of the earlier one, among them all that failed
//! there ([`Rerun`]). And the order is known: the later file began after the results of the earlier one ended, or the
//! tool numbered both. A file with all tests of another one needs the numbers, because a leg of a matrix looks the same.

mod numbers;

use std::{
    collections::{BTreeSet, HashMap},
    hash::BuildHasher as _,
};

use assay_domain::{
    attempt::Attempt, execution::Executions, rerun::Rerun, test::TestName, timestamp::Timestamp,
};

pub(crate) use self::numbers::without_number;

use self::numbers::Numbers;
use crate::{
    piece::Piece,
    report::{Format, Report, ReportedTest},
};

/// Moves the results of files that repeat failed tests into the file whose tests they repeat, and returns a warning
/// that names them. The emptied reports keep their times and errors.
pub(crate) fn join(pieces: &mut [Piece]) -> Option<String> {
    if pieces.len() < 2
        || !pieces
            .iter()
            .any(|piece| piece.report.tests.iter().any(has_failed))
    {
        return None;
    }
    let numbers = Numbers::of(pieces.iter().map(|piece| &*piece.name));
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|index| {
        let started_at = pieces.get(*index).and_then(|piece| piece.report.started_at);
        (started_at, numbers.number(*index), *index)
    });
    let mut chains = Chains {
        numbers,
        hasher: foldhash::fast::RandomState::default(),
        all: Vec::new(),
        by_failed_test: HashMap::new(),
    };
    let mut joined: Vec<String> = Vec::new();
    for index in order {
        match chains.repeated_by(pieces, index) {
            Some(chain) => joined.extend(chains.continue_with(pieces, chain, index)),
            None => chains.begin(pieces, index),
        }
    }
    let more = match joined.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    joined.truncate(MOST_NAMED);
    (!joined.is_empty()).then(|| {
        format!(
            "These files ran failed tests of other files again, and were read as their retries: {}{more}.",
            joined.join(", ")
        )
    })
}

/// Most files that the warning names.
const MOST_NAMED: usize = 5;
/// Milliseconds by which a file may begin before the earlier one ended: many tools write whole seconds.
const CLOCK_MS: i64 = 1_000;

/// A file and those that ran its failed tests again.
struct Chain {
    /// The file that has the results of all.
    first: usize,
    latest: usize,
    /// The end of the latest results, if known.
    end: Option<Timestamp>,
}

struct Chains {
    numbers: Numbers,
    hasher: foldhash::fast::RandomState,
    all: Vec<Chain>,
    /// The chains in which a test failed, by the test's hash. Other chains cannot be repeated.
    by_failed_test: HashMap<u64, BTreeSet<usize>>,
}

impl Chains {
    /// The latest chain whose failed tests this file ran again.
    fn repeated_by(&self, pieces: &[Piece], index: usize) -> Option<usize> {
        let later = &pieces.get(index)?.report;
        let hashes = later.tests.iter().map(|test| self.hash(test));
        let candidates: BTreeSet<usize> = hashes
            .filter_map(|hash| self.by_failed_test.get(&hash))
            .flatten()
            .copied()
            .collect();
        let is_repeated = |chain: &usize| {
            let chain = self.all.get(*chain)?;
            let earlier = &pieces.get(chain.first)?.report;
            if earlier.format != later.format || later.format == Format::Allure {
                return None;
            }
            let tests = earlier.tests.iter().map(|test| (&test.test, has_failed(test)));
            let rerun = Rerun::of(tests, later.tests.iter().map(|test| &test.test))?;
            let is_numbered = self.numbers.follows(chain.latest, index);
            let begins_after = || {
                let (end, start) = (chain.end?, later.started_at?);
                (start > earlier.started_at? && start.plus_ms(CLOCK_MS) > end).then_some(())
            };
            match rerun {
                Rerun::OfFailed => is_numbered || begins_after().is_some(),
                Rerun::OfAll => is_numbered,
            }
            .then_some(())
        };
        candidates
            .into_iter()
            .rev()
            .find(|chain| is_repeated(chain).is_some())
    }

    fn begin(&mut self, pieces: &[Piece], index: usize) {
        let Some(piece) = pieces.get(index) else { return };
        let chain = self.all.len();
        self.all.push(Chain {
            first: index,
            latest: index,
            end: end(&piece.report),
        });
        self.add_failed(&piece.report.tests, chain);
    }

    /// Moves the results of a file into the first one of the chain. Returns the names of both.
    fn continue_with(&mut self, pieces: &mut [Piece], chain: usize, index: usize) -> Option<String> {
        let later = pieces.get_mut(index)?;
        let name = later.name.clone();
        let end = end(&later.report);
        let tests = std::mem::take(&mut later.report.tests);
        self.add_failed(&tests, chain);
        let chain = self.all.get_mut(chain)?;
        let earlier = pieces
            .get(chain.latest)
            .map_or("", |piece| &*piece.name)
            .to_owned();
        chain.latest = index;
        chain.end = chain.end.max(end);
        let mut later: HashMap<TestName, Executions<Attempt>> =
            tests.into_iter().map(|test| (test.test, test.attempts)).collect();
        for test in &mut pieces.get_mut(chain.first)?.report.tests {
            if let Some(again) = later.remove(&test.test) {
                let attempts = std::mem::replace(&mut test.attempts, Executions::from(Vec::new()));
                test.attempts = attempts.continued_by(again, ends_in_failure);
            }
        }
        Some(format!("{name} of {earlier}"))
    }

    fn add_failed(&mut self, tests: &[ReportedTest], chain: usize) {
        for test in tests.iter().filter(|test| has_failed(test)) {
            let hash = self.hash(test);
            self.by_failed_test.entry(hash).or_default().insert(chain);
        }
    }

    fn hash(&self, test: &ReportedTest) -> u64 {
        self.hasher.hash_one(&test.test)
    }
}

/// Whether the last attempt of an execution failed.
fn has_failed(test: &ReportedTest) -> bool {
    test.attempts.executions().any(ends_in_failure)
}

fn ends_in_failure(attempts: &[Attempt]) -> bool {
    attempts.last().is_some_and(|last| last.status.is_failure())
}

/// The end of the last result. A report's own end may be that of the whole job.
fn end(report: &Report) -> Option<Timestamp> {
    let attempts = report.tests.iter().flat_map(|test| &test.attempts);
    let ends = attempts.filter_map(|attempt| {
        let duration = i64::try_from(attempt.duration_ms.unwrap_or(0)).unwrap_or(i64::MAX);
        Some(attempt.started_at?.plus_ms(duration))
    });
    ends.max().or(report.finished_at).or(report.started_at)
}
