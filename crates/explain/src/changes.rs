//! What a run changed in its suite, against the stable branch: broken, repaired, skipped, missing, renamed and new tests.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_domain::{
    cause::{FailedRun, Knowledge},
    id::RunId,
    observation::{Bitmap, History, RunObservations},
    project::{Project, ProjectTag},
    revision::StableBranch,
    run::{MissingNotJudged, RunTag},
    store::{Snapshot, Store, StoreError, in_snapshot},
    test::{TestName, TestOrdinal},
    test_names::{TestNameRef, TestNames},
    timestamp::Timestamp,
    verdict::FailingSince,
};
use assay_flakiness::Diagnose;
use serde::Serialize;

use self::base::{last_complete, stable_before};
use crate::{failures::window_with, stable_branch::since};

mod base;
mod slower;

/// Most tests of a list.
const MOST_LISTED: usize = 50;
/// A missing test ran in at least this many of the last [`LAST_RUNS`] complete runs of the stable branch.
const RAN_IN: usize = 9;
const LAST_RUNS: usize = 10;
/// A run is partial if it lacks more than one of this many files of the base.
const PARTIAL_FROM: usize = 10;

/// What a run changed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunChanges {
    /// The project.
    pub project: ProjectTag,
    /// The run.
    pub run: RunTag,
    /// The run of the stable branch with which it is compared: the newest complete one of the same suite that started
    /// before it, and that is at or before its merge base if a run of the stable branch tested that. Null without such a
    /// run in the last 14 days; then every list is empty.
    pub base: Option<FailingSince>,
    /// Why missing tests are not judged; null if they are.
    pub missing_not_judged: Option<MissingNotJudged>,
    /// Tests that passed in the base and fail.
    pub broken: ChangedTests,
    /// Tests that failed in the base and pass.
    pub repaired: ChangedTests,
    /// Tests that ran in the base and are skipped.
    pub newly_skipped: ChangedTests,
    /// Tests of the base that the run does not report, although other tests of their files ran.
    pub no_longer_reported: ChangedTests,
    /// Tests of the base under another name or file.
    pub renamed: RenamedTests,
    /// Tests that no run of the stable branch has reported.
    pub added: ChangedTests,
    /// Tests that passed and became slower than in the last ten runs of the stable branch, whatever the speed of the
    /// machine.
    pub slower: SlowerTests,
}

/// Tests that became slower.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SlowerTests {
    /// Their number.
    pub total: u64,
    /// The first 50, those that take the most additional time first.
    #[cfg_attr(feature = "openapi", schema(max_items = 50))]
    pub tests: Vec<SlowerTest>,
}

/// A test that became slower.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlowerTest {
    /// The test.
    pub test: TestName,
    /// How many times as long it takes as usually on a machine of this speed.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub factor: f64,
    /// P(it became slower).
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub probability: f64,
    /// Its usual duration on a machine of this speed in milliseconds.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub usual_ms: i64,
    /// Its duration in the run in milliseconds.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub duration_ms: u64,
}

/// Tests with one change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangedTests {
    /// Their number.
    pub total: u64,
    /// The first 50 by file and name.
    #[cfg_attr(feature = "openapi", schema(max_items = 50))]
    pub tests: Vec<TestName>,
}

impl ChangedTests {
    /// Their number, and the first 50 by file and name.
    pub(crate) fn of(mut tests: Vec<TestName>) -> Self {
        tests.sort_unstable_by(|left, right| {
            (&left.file_path, &left.name).cmp(&(&right.file_path, &right.name))
        });
        let total = count(tests.len());
        tests.truncate(MOST_LISTED);
        Self { total, tests }
    }
}

/// Tests with another name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenamedTests {
    /// Their number.
    pub total: u64,
    /// The first 50 by file and name.
    #[cfg_attr(feature = "openapi", schema(max_items = 50))]
    pub tests: Vec<RenamedTest>,
}

/// A test with another name or file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenamedTest {
    /// The test in the base.
    pub from: TestName,
    /// The test in the run; of a test that became several, the first.
    pub to: TestName,
}

/// The numbers of the changes of several runs, such as `2 newly failing, 1 slower`; none without a change.
pub fn summary(changes: &[RunChanges]) -> Option<String> {
    type Total = fn(&RunChanges) -> u64;
    let totals: [(&str, Total); 7] = [
        ("newly failing", |changes| changes.broken.total),
        ("repaired", |changes| changes.repaired.total),
        ("newly skipped", |changes| changes.newly_skipped.total),
        ("no longer reported", |changes| changes.no_longer_reported.total),
        ("new", |changes| changes.added.total),
        ("renamed", |changes| changes.renamed.total),
        ("slower", |changes| changes.slower.total),
    ];
    let sums = totals.map(|(words, total)| (words, changes.iter().map(total).sum::<u64>()));
    let parts: Vec<String> = sums
        .into_iter()
        .filter(|(_, total)| *total > 0)
        .map(|(words, total)| format!("{total} {words}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What a run changed; none if the project has no such run.
pub fn run_changes(
    store: &dyn Store,
    engine: &dyn Diagnose,
    project: &Project,
    run: RunId,
    now: Timestamp,
) -> Result<Option<RunChanges>, StoreError> {
    let mut changes = changes_of_runs(store, engine, project, &[run], now)?;
    Ok(changes.pop())
}

/// What each of several runs changed, as of one state of the project. Runs that do not exist are left out.
pub fn changes_of_runs(
    store: &dyn Store,
    engine: &dyn Diagnose,
    project: &Project,
    runs: &[RunId],
    now: Timestamp,
) -> Result<Vec<RunChanges>, StoreError> {
    in_snapshot(store, project, |snapshot| {
        let mut changes = Vec::with_capacity(runs.len());
        for id in runs {
            if let Some(run) = snapshot.failed_run(*id)? {
                changes.push(of_run(snapshot, engine, project, &run, now)?);
            }
        }
        Ok(changes)
    })
}

fn of_run(
    snapshot: &mut dyn Snapshot,
    engine: &dyn Diagnose,
    project: &Project,
    run: &FailedRun,
    now: Timestamp,
) -> Result<RunChanges, StoreError> {
    let window = engine.causes_window(run.started_at, Knowledge::AtTheTime, now);
    let (history, _) = window_with(snapshot, run, window)?;
    let names = snapshot.all_test_names()?;
    let of = (run.run_number, run.merge_base.as_deref());
    let compared = Compared::of(&history, of, &names);
    let last = last_complete(&history, of);
    let slower = slower::of(snapshot, &history, run, &last, &names)?;
    Ok(compared.answer(project.tag(), run, (&history, &names), slower))
}

/// The changes of a run, by test numbers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Compared {
    /// The index of the base among the runs.
    base: Option<usize>,
    missing_not_judged: Option<MissingNotJudged>,
    broken: Vec<TestOrdinal>,
    repaired: Vec<TestOrdinal>,
    newly_skipped: Vec<TestOrdinal>,
    missing: Vec<TestOrdinal>,
    renamed: Vec<(TestOrdinal, TestOrdinal)>,
    added: Vec<TestOrdinal>,
}

impl Compared {
    /// Compares the run of this number, with this merge base. A run of several variants is compared in each of them.
    fn of(history: &History, (number, merge_base): (i32, Option<&str>), names: &TestNames) -> Self {
        let branches = history.runs.iter().map(|observed| observed.run.branch.as_deref());
        let stable = StableBranch::among(&history.stable_branch, branches);
        let mut compared = Self::default();
        for run in history
            .runs
            .iter()
            .filter(|observed| observed.run.number == number)
        {
            let before = stable_before(history, run, stable, merge_base);
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

    fn answer(
        self,
        project: ProjectTag,
        run: &FailedRun,
        (history, names): (&History, &TestNames),
        slower: SlowerTests,
    ) -> RunChanges {
        let listed = |tests: Vec<TestOrdinal>| {
            let mut tests: Vec<TestNameRef<'_>> =
                tests.into_iter().filter_map(|test| names.get(test)).collect();
            tests.sort_unstable_by_key(|test| (test.file_path, test.name));
            ChangedTests {
                total: count(tests.len()),
                tests: tests.into_iter().take(MOST_LISTED).map(owned).collect(),
            }
        };
        let mut renamed: Vec<(TestNameRef<'_>, TestNameRef<'_>)> = self
            .renamed
            .into_iter()
            .filter_map(|(from, to)| Some((names.get(from)?, names.get(to)?)))
            .collect();
        renamed.sort_unstable_by_key(|(from, _)| (from.file_path, from.name));
        let pair = |(from, to)| RenamedTest {
            from: owned(from),
            to: owned(to),
        };
        RunChanges {
            project,
            run: RunTag {
                id: run.id,
                run_number: run.run_number,
                branch: run.branch.clone(),
            },
            base: self.base.and_then(|index| since(history, index)),
            missing_not_judged: self.missing_not_judged,
            broken: listed(self.broken),
            repaired: listed(self.repaired),
            newly_skipped: listed(self.newly_skipped),
            no_longer_reported: listed(self.missing),
            renamed: RenamedTests {
                total: count(renamed.len()),
                tests: renamed.into_iter().take(MOST_LISTED).map(pair).collect(),
            },
            added: listed(self.added),
            slower,
        }
    }
}

/// A run beside its base.
struct Comparison<'a> {
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
    fn new(
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
            let is_missing =
                |test: &&TestOrdinal| !renamed.contains_key(test) && self.is_missing(**test, &ran_files);
            into.missing.extend(absent.iter().filter(is_missing));
        } else {
            into.missing_not_judged = not_judged;
        }
        into.renamed.extend(renamed);
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

    /// The absent tests whose name is the beginning of new ones in the same file, with the first of these.
    fn parametrised(
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
fn is_parametrised(from: &str, to: &str) -> bool {
    let next = to.strip_prefix(from).and_then(|rest| rest.chars().next());
    next.is_some_and(|next| !next.is_alphanumeric() && next != '_')
}

fn owned(test: TestNameRef<'_>) -> TestName {
    TestName {
        name: test.name.to_owned(),
        file_path: test.file_path.map(str::to_owned),
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
