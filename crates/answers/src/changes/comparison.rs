//! A run beside its base, test by test.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_domain::{
    observation::{Bitmap, History, RunObservations},
    run::MissingNotJudged,
    test::TestOrdinal,
    test_names::{TestNameRef, TestNames},
};

use super::base::{LAST_RUNS, stable_before};

/// A missing test ran in at least this many of the last [`LAST_RUNS`] complete runs of the stable branch.
const RAN_IN: usize = 9;
/// A run is partial if it lacks more than one of this many files of the base.
const PARTIAL_FROM: usize = 10;

/// The changes of a run, by test numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Compared {
    /// The index of the base among the runs.
    pub(super) base: Option<usize>,
    pub(super) missing_not_judged: Option<MissingNotJudged>,
    pub(super) broken: Vec<TestOrdinal>,
    pub(super) repaired: Vec<TestOrdinal>,
    pub(super) newly_skipped: Vec<TestOrdinal>,
    pub(super) missing: Vec<TestOrdinal>,
    /// Former and new test, and whether the renames file does not have the pair.
    pub(super) renamed: Vec<(TestOrdinal, TestOrdinal, bool)>,
    pub(super) added: Vec<TestOrdinal>,
}

impl Compared {
    /// Compares the run of this number. A run of several variants is compared in each of them.
    pub(super) fn of(history: &History, number: i32, names: &TestNames) -> Self {
        let stable = history.stable();
        let mut compared = Self::default();
        for run in history
            .runs
            .iter()
            .filter(|observed| observed.run.number == number)
        {
            let before = stable_before(history, run, stable);
            let oldest = before.last().map(|(_, observed)| *observed);
            let complete: Vec<_> = before
                .iter()
                .copied()
                .filter(|(_, observed)| observed.ending.complete)
                .collect();
            compared.add(Comparison::new(history, run, (&complete, oldest), names));
        }
        if compared.base.is_none() {
            compared.missing_not_judged = Some(MissingNotJudged::NoBase);
        }
        compared
    }

    fn add(&mut self, comparison: Option<Comparison<'_>>) {
        let Some(comparison) = comparison else { return };
        self.base = Some(comparison.base_index);
        comparison.compare(self);
    }
}

/// A run beside its base.
pub(super) struct Comparison<'a> {
    run: &'a RunObservations,
    base_index: usize,
    base: &'a RunObservations,
    /// The complete runs of the stable branch before it, the newest first.
    stable: &'a [(usize, &'a RunObservations)],
    /// The oldest run of the stable branch, complete or not.
    oldest: &'a RunObservations,
    /// All tests that a run of the stable branch reported.
    known: Bitmap,
    names: &'a TestNames,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        history: &History,
        run: &'a RunObservations,
        (stable, oldest): (&'a [(usize, &'a RunObservations)], Option<&'a RunObservations>),
        names: &'a TestNames,
    ) -> Option<Self> {
        let (base_index, base) = stable.first()?;
        let mut known = Bitmap::default();
        let of_stable = history
            .runs
            .iter()
            .filter(|other| other.run.branch == base.run.branch);
        for other in of_stable.filter(|other| other.run.number != run.run.number) {
            known.insert_all(&other.present);
        }
        Some(Self {
            run,
            base_index: *base_index,
            base,
            stable,
            oldest: oldest?,
            known,
            names,
        })
    }

    fn compare(&self, into: &mut Compared) {
        for test in self.run.present.iter() {
            let (ran, failed) = (self.run.ran(test), self.run.failed(test));
            let (ran_before, failed_before) = (self.base.ran(test), self.base.failed(test));
            if ran && ran_before && failed != failed_before {
                if failed {
                    &mut into.broken
                } else {
                    &mut into.repaired
                }
                .push(test);
            } else if !ran && ran_before && (self.stable.len() < LAST_RUNS || self.is_steady(test)) {
                into.newly_skipped.push(test);
            }
        }
        let mut added: BTreeSet<TestOrdinal> = self
            .run
            .present
            .iter()
            .filter(|test| !self.known.contains(*test))
            .collect();
        let absent: Vec<TestOrdinal> = self
            .base
            .present
            .iter()
            .filter(|test| !self.run.present.contains(*test))
            .collect();
        let renamed = self.renamed(&absent, &mut added);
        let not_judged = self.not_judged();
        if not_judged.is_none() {
            let ran_files = self.files(|test| self.base.ran(test) && self.run.ran(test));
            // A guess may be wrong, so a test that was probably renamed is missing all the same.
            let missing = absent.iter().filter(|test| self.is_missing(**test, &ran_files));
            into.missing.extend(missing);
        } else {
            into.missing_not_judged = not_judged;
        }
        into.renamed
            .extend(renamed.into_iter().map(|(from, to)| (from, to, true)));
        into.renamed
            .extend(self.joined().map(|(from, to)| (from, to, false)));
        into.added.extend(added);
    }

    /// The reason why missing tests are not listed.
    fn not_judged(&self) -> Option<MissingNotJudged> {
        if !self.run.ending.complete {
            return Some(MissingNotJudged::Incomplete);
        }
        if self.stable.len() < LAST_RUNS {
            return Some(MissingNotJudged::FewRuns);
        }
        let of_base = self.files(|test| self.base.present.contains(test));
        let of_run = self.files(|test| self.run.present.contains(test));
        let lacking = of_base.difference(&of_run).count();
        (lacking * PARTIAL_FROM > of_base.len()).then_some(MissingNotJudged::Partial)
    }

    /// The files of the selected tests of the base and the run.
    fn files(&self, is_selected: impl Fn(TestOrdinal) -> bool) -> BTreeSet<&'a str> {
        let mut all = self.base.present.clone();
        all.insert_all(&self.run.present);
        let selected = all.iter().filter(|test| is_selected(*test));
        selected
            .filter_map(|test| self.names.get(test)?.file_path)
            .collect()
    }

    /// Whether a test ran in at least nine of the last ten runs.
    fn is_steady(&self, test: TestOrdinal) -> bool {
        let last = self.stable.iter().take(LAST_RUNS);
        last.filter(|(_, observed)| observed.ran(test)).count() >= RAN_IN
    }

    /// Whether an absent test was a steady part of the stable branch, and other tests of its file ran.
    fn is_missing(&self, test: TestOrdinal, ran_files: &BTreeSet<&str>) -> bool {
        // A test that the stable branch got after this branch began is not missing here.
        let is_old = self.oldest.present.contains(test);
        let file = self.names.get(test).and_then(|test| test.file_path);
        self.is_steady(test) && is_old && file.is_some_and(|file| ran_files.contains(file))
    }

    /// The absent tests that a new one continues: a file that moved, a title that was edited, a name that became several.
    /// Their new names are no longer `added`.
    fn renamed(
        &self,
        absent: &[TestOrdinal],
        added: &mut BTreeSet<TestOrdinal>,
    ) -> BTreeMap<TestOrdinal, TestOrdinal> {
        let mut renamed = self.parametrised(absent, added);
        self.moved(absent, added, &mut renamed);
        self.edited(absent, added, &mut renamed);
        renamed
    }

    /// The tests that the renames file joins and that have another name than in the base: both names. A branch that still
    /// has the former name of a test renamed none.
    fn joined(&self) -> impl Iterator<Item = (TestOrdinal, TestOrdinal)> {
        let of_base = self.base.other_names.iter();
        let of_both = of_base.filter(|(test, _)| self.run.present.contains(*test));
        of_both.filter_map(|(test, before)| {
            let now = self.run.reported_as(*test);
            // Tests are numbered in the order of their first reports.
            (now != *before && (now == *test || now > *before)).then_some((*before, now))
        })
    }

    /// The absent tests whose name is the beginning of new ones in the same file, with the first of these.
    pub(super) fn parametrised(
        &self,
        absent: &[TestOrdinal],
        added: &mut BTreeSet<TestOrdinal>,
    ) -> BTreeMap<TestOrdinal, TestOrdinal> {
        let name = |test: TestOrdinal| self.names.get(test);
        let old = absent
            .iter()
            .filter_map(|test| Some((name(*test)?, *test, false)));
        let new = added.iter().filter_map(|test| Some((name(*test)?, *test, true)));
        let mut named: Vec<(TestNameRef<'_>, TestOrdinal, bool)> = old.chain(new).collect();
        // A name follows all names that it begins with, so one pass with a stack of them finds the beginnings.
        named.sort_unstable_by_key(|(test, ..)| (test.file_path, test.name));
        let mut beginnings: Vec<(TestNameRef<'_>, TestOrdinal)> = Vec::new();
        let mut renamed = BTreeMap::new();
        for (test, number, is_new) in named {
            while beginnings
                .last()
                .is_some_and(|(of, _)| of.file_path != test.file_path || !test.name.starts_with(of.name))
            {
                beginnings.pop();
            }
            if !is_new {
                beginnings.push((test, number));
                continue;
            }
            let continued = beginnings
                .iter()
                .filter(|(of, _)| is_parametrised(of.name, test.name))
                .map(|(_, old)| *old)
                .min();
            if let Some(old) = continued {
                added.remove(&number);
                let first: &mut TestOrdinal = renamed.entry(old).or_insert(number);
                *first = number.min(*first);
            }
        }
        renamed
    }

    /// Adds the absent tests whose name is new in one other file.
    fn moved(
        &self,
        absent: &[TestOrdinal],
        added: &mut BTreeSet<TestOrdinal>,
        renamed: &mut BTreeMap<TestOrdinal, TestOrdinal>,
    ) {
        let new_of = self.grouped(added.iter().copied(), |test| Some(test.name));
        for old in absent {
            let name = self.names.get(*old).filter(|_| !renamed.contains_key(old));
            if let Some([new]) = name.and_then(|of| new_of.get(of.name)).map(Vec::as_slice) {
                added.remove(new);
                renamed.insert(*old, *new);
            }
        }
    }

    /// Adds the absent tests that are the only one of their file, where one test of the file is new.
    fn edited(
        &self,
        absent: &[TestOrdinal],
        added: &mut BTreeSet<TestOrdinal>,
        renamed: &mut BTreeMap<TestOrdinal, TestOrdinal>,
    ) {
        let open = absent.iter().copied().filter(|old| !renamed.contains_key(old));
        let old_of = self.grouped(open, |test| test.file_path);
        let new_of = self.grouped(added.iter().copied(), |test| test.file_path);
        for (file, old) in old_of {
            if let ([old], Some([new])) = (old.as_slice(), new_of.get(file).map(Vec::as_slice)) {
                added.remove(new);
                renamed.insert(*old, *new);
            }
        }
    }

    /// Tests by a part of their names.
    fn grouped(
        &self,
        tests: impl Iterator<Item = TestOrdinal>,
        part: impl Fn(TestNameRef<'a>) -> Option<&'a str>,
    ) -> HashMap<&'a str, Vec<TestOrdinal>> {
        let mut groups: HashMap<&str, Vec<TestOrdinal>> = HashMap::new();
        for test in tests {
            if let Some(key) = self.names.get(test).and_then(&part) {
                groups.entry(key).or_default().push(test);
            }
        }
        groups
    }
}

/// Whether a name is another one with parameters: a longer name, whose next character ends a word.
pub(super) fn is_parametrised(from: &str, to: &str) -> bool {
    let next = to.strip_prefix(from).and_then(|rest| rest.chars().next());
    next.is_some_and(|next| !next.is_alphanumeric() && next != '_')
}
