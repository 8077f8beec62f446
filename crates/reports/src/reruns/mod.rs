//! Files of one import that ran again what failed in another file of it.
//!
//! `pytest --last-failed`, `--retry-failed-tests` of .NET, Bazel's `test_attempts` and the `-rerun_1` folders of
//! Firebase Test Lab write each attempt into a file of its own. Such results continue the failed executions of the
//! earlier file, if both ran on one host, the browsers of the later file are among those of the earlier one, and one of
//! these is true: the path of the later file says that it is a retry; or it is in the same folder, it began after the
//! results of the earlier file ended, and it has failed tests of the earlier file and no others
//! ([`is_selection_of_failed`]). Otherwise the results are executions of their own, because a leg of a matrix looks the
//! same.

mod numbers;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::BuildHasher as _,
};

use assay_domain::{
    execution::Executions,
    rerun::{is_selection_of_failed, may_repeat},
    test::TestName,
    timestamp::Timestamp,
};

pub(crate) use self::numbers::without_number;

use self::numbers::Numbers;
use crate::{
    piece::Piece,
    report::{Format, Report, ReportedTest},
    retries::{failed, has_failed},
};

/// How the files of an import relate, as warnings.
#[derive(Default)]
pub(crate) struct Relations {
    /// The files that were read as retries of others.
    pub(crate) retries: Option<String>,
    /// The files that have failed tests of other files, and are no retries.
    pub(crate) beside: Option<String>,
}

/// Moves the results of files that repeat failed tests into the file whose tests they repeat. The emptied reports keep
/// their times and errors.
pub(crate) fn join(pieces: &mut [Piece]) -> Relations {
    if pieces.len() < 2 || !pieces.iter().any(Piece::has_failed) {
        return Relations::default();
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
    let mut beside: Vec<String> = Vec::new();
    for index in order {
        match chains.repeated_by(pieces, index) {
            Some(chain) => joined.extend(chains.continue_with(pieces, chain, index)),
            None => {
                beside.extend(chains.beside(pieces, index));
                chains.begin(pieces, index);
            }
        }
    }
    let list = |mut names: Vec<String>| {
        let more = match names.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        names.truncate(MOST_NAMED);
        (!names.is_empty()).then(|| names.join(", ") + &more)
    };
    let retries = list(joined).map(|joined| {
        format!(
            "These files ran failed tests of other files again, and were read as their retries: {joined}."
        )
    });
    let beside = list(beside).map(|beside| {
        format!(
            "These files have tests that failed in other files: {beside}. Both results count, and such a test is failed. \
             If a file is a retry, send it by itself, with --attempt 2; if it is a leg of a matrix, send it with a --suite \
             of its own."
        )
    });
    Relations { retries, beside }
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
        let file = pieces.get(index)?;
        let later = &file.report;
        let is_repeated = |chain: &usize| {
            let chain = self.all.get(*chain)?;
            let first = pieces.get(chain.first)?;
            let earlier = &first.report;
            if earlier.format != later.format || later.format == Format::Allure {
                return None;
            }
            let begins_after = || {
                let (end, start) = (chain.end?, later.started_at?);
                (start > earlier.started_at? && start.plus_ms(CLOCK_MS) > end).then_some(())
            };
            let tests = || earlier.tests.iter().map(|test| (&test.test, has_failed(test)));
            let is_of_one_machine =
                earlier.host == later.host && browsers(later).is_subset(&browsers(earlier));
            let is_rerun = self.numbers.follows(chain.latest, index)
                || may_repeat(&first.name, &file.name)
                    && begins_after().is_some()
                    && is_selection_of_failed(tests(), later.tests.iter().map(|test| &test.test));
            (is_of_one_machine && is_rerun).then_some(())
        };
        self.candidates(later)
            .into_iter()
            .rev()
            .find(|chain| is_repeated(chain).is_some())
    }

    /// The chains in which some test of the report failed.
    fn candidates(&self, report: &Report) -> BTreeSet<usize> {
        let hashes = report.tests.iter().map(|test| self.hash(test));
        hashes
            .filter_map(|hash| self.by_failed_test.get(&hash))
            .flatten()
            .copied()
            .collect()
    }

    /// The names of this file and of one with failed tests that passed in this one.
    fn beside(&self, pieces: &[Piece], index: usize) -> Option<String> {
        // Allure writes each result into a file of its own.
        let file = pieces
            .get(index)
            .filter(|file| file.report.format != Format::Allure)?;
        let passed = file.report.tests.iter().filter(|test| !has_failed(test));
        let chains = passed
            .filter_map(|test| self.by_failed_test.get(&self.hash(test)))
            .flatten();
        let others = chains.filter_map(|chain| pieces.get(self.all.get(*chain)?.first));
        let other = others.take(MOST_NAMED).find(|other| {
            // A later file may have mended what failed in the chain at first.
            let failed: HashSet<&TestName> = other
                .report
                .tests
                .iter()
                .filter(|test| has_failed(test))
                .map(|test| &test.test)
                .collect();
            file.report.tests.iter().any(|test| failed.contains(&test.test))
        });
        Some(format!("{} beside {}", file.name, other?.name))
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
        let first = pieces.get_mut(chain.first)?;
        let places: HashMap<TestName, usize> = first
            .report
            .tests
            .iter()
            .zip(0..)
            .map(|(test, place)| (test.test.clone(), place))
            .collect();
        let mut others = Vec::new();
        for test in tests {
            match places
                .get(&test.test)
                .and_then(|place| first.report.tests.get_mut(*place))
            {
                Some(earlier) => {
                    let attempts = std::mem::replace(&mut earlier.attempts, Executions::from(Vec::new()));
                    earlier.attempts = attempts.continued_by(test.attempts, failed);
                }
                None => others.push(test),
            }
        }
        pieces.get_mut(index)?.report.tests = others;
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

/// The browsers or projects in which the report's tests ran.
fn browsers(report: &Report) -> BTreeSet<&str> {
    let attempts = report.tests.iter().flat_map(|test| &test.attempts);
    attempts
        .filter_map(|attempt| attempt.browser.as_deref())
        .collect()
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
