//! What a run changed in its suite, against the stable branch: broken, repaired, skipped, missing, renamed and new tests.

use assay_domain::{
    cause::{FailedRun, Knowledge},
    id::RunId,
    observation::History,
    project::{Project, ProjectTag},
    run::{MissingNotJudged, RunTag},
    store::{SharedKey, Snapshot, Store, StoreError, in_snapshot, shared},
    test::{TestName, TestOrdinal},
    test_names::{TestNameRef, TestNames},
    timestamp::Timestamp,
    verdict::FailingSince,
};
use assay_flakiness::Diagnose;
use serde::Serialize;

use self::{base::last_complete, comparison::Compared};
use crate::{failures::window_with, numbers::count, stable_branch::since};

mod base;
mod comparison;
mod not_run;
mod slower;

pub use not_run::NotRun;

/// Most tests of a list.
const MOST_LISTED: usize = 50;

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
    /// Tests of the base that the run does not report, although other tests of their files ran. A test that was probably
    /// renamed is one of them.
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
    pub(crate) fn of(mut tests: Vec<TestNameRef<'_>>) -> Self {
        tests.sort_unstable_by_key(|test| (test.file_path, test.name));
        Self {
            total: count(tests.len()),
            tests: tests
                .into_iter()
                .take(MOST_LISTED)
                .map(TestNameRef::owned)
                .collect(),
        }
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
    /// Whether only the names suggest it. Then `noLongerReported` has the test, too, until the renames file joins both.
    pub guessed: bool,
}

impl RenamedTest {
    /// The names of both, with their files where these alone differ.
    pub fn in_words(&self) -> [String; 2] {
        let is_moved = self.from.name == self.to.name;
        [&self.from, &self.to].map(|test| match (is_moved, &test.file_path) {
            (false, _) => test.name.clone(),
            (true, Some(file)) => format!("{} in {file}", test.name),
            (true, None) => format!("{} without a file", test.name),
        })
    }

    /// Whether a line in the renames file can join both: it names a test or a file.
    pub fn can_be_joined(&self) -> bool {
        self.from.name != self.to.name || self.from.file_path.is_some() && self.to.file_path.is_some()
    }
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
    let (history, is_added) = window_with(snapshot, run, window)?;
    let tag = || project.tag();
    if is_added {
        return compared(snapshot, tag(), run, &history);
    }
    let key = SharedKey {
        kind: "changes",
        of: run.run_number,
    };
    let changes = shared(snapshot, key, window, |snapshot| {
        let changes = compared(snapshot, tag(), run, &history)?;
        let bytes = changes.bytes();
        Ok((changes, bytes))
    })?;
    // The project may have got another name since.
    Ok(RunChanges {
        project: tag(),
        ..RunChanges::clone(&changes)
    })
}

/// What a run changed, by the runs of its window.
fn compared(
    snapshot: &mut dyn Snapshot,
    project: ProjectTag,
    run: &FailedRun,
    history: &History,
) -> Result<RunChanges, StoreError> {
    let names = snapshot.all_test_names()?;
    let compared = Compared::of(history, run.run_number, &names);
    let last = last_complete(history, run.run_number);
    let slower = slower::of(snapshot, history, run, &last, &names)?;
    Ok(compared.answer(project, run, (history, &names), slower))
}

impl RunChanges {
    /// Why no test is listed as no longer reported, if the run is a selection of the suite.
    pub fn selection(&self) -> Option<String> {
        (self.missing_not_judged == Some(MissingNotJudged::Partial)).then(|| {
            format!(
                "Run {} lacks more than a tenth of the files of the stable branch, so tests that are no longer reported \
                 were not looked for",
                self.run.run_number
            )
        })
    }

    /// About the memory that they take.
    fn bytes(&self) -> usize {
        let lists = [
            &self.broken,
            &self.repaired,
            &self.newly_skipped,
            &self.no_longer_reported,
            &self.added,
        ];
        let changed = lists.into_iter().flat_map(|list| &list.tests);
        let renamed = self.renamed.tests.iter().flat_map(|pair| [&pair.from, &pair.to]);
        let slower = self.slower.tests.iter().map(|slower| &slower.test);
        let tests = changed.chain(renamed).chain(slower);
        size_of::<Self>()
            + tests
                .map(|test| size_of::<SlowerTest>() + test.text_bytes())
                .sum::<usize>()
    }
}

impl Compared {
    fn answer(
        self,
        project: ProjectTag,
        run: &FailedRun,
        (history, names): (&History, &TestNames),
        slower: SlowerTests,
    ) -> RunChanges {
        let listed = |tests: Vec<TestOrdinal>| {
            ChangedTests::of(tests.into_iter().filter_map(|test| names.get(test)).collect())
        };
        let mut renamed: Vec<(TestNameRef<'_>, TestNameRef<'_>, bool)> = self
            .renamed
            .into_iter()
            .filter_map(|(from, to, guessed)| Some((names.get(from)?, names.get(to)?, guessed)))
            .collect();
        renamed.sort_unstable_by_key(|(from, ..)| (from.file_path, from.name));
        let pair = |(from, to, guessed): (TestNameRef<'_>, TestNameRef<'_>, bool)| RenamedTest {
            from: from.owned(),
            to: to.owned(),
            guessed,
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

#[cfg(test)]
mod tests;
