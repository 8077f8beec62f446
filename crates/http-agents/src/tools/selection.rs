//! Arguments that several tools share, and the results of look-ups by name.

use std::sync::Arc;

use assay_answers::commit::{longest_period, sha_of};
use assay_domain::{
    folding::{contains_folded, fold},
    id::RunId,
    observation::Bitmap,
    page::PerPage,
    period::{Days, Period},
    project::Project,
    run::RunQuery,
    store::in_snapshot,
    test::{TestLookup, TestSelector},
    test_names::{TestNameRef, TestNames},
    verdict::ENGINE_WINDOW_DAYS,
};
use serde_json::json;

use super::call::Call;
use crate::{
    arguments::RunSelector,
    error::{CANDIDATES, ToolError},
};

/// Most tests whose names are compared with a misspelt one.
const COMPARED: usize = 20_000;
/// Most words of a misspelt name that are compared.
const WORDS: usize = 12;
/// The least similarity of a candidate that shares no word with the name, from 0 to 1.
const SIMILAR: f64 = 0.7;

impl Call<'_> {
    /// The beginning of a commit, in lower case.
    pub(super) fn commit(&self) -> Result<Option<String>, ToolError> {
        let Some(commit) = self.arguments.text("commit")? else {
            return Ok(None);
        };
        let sha = sha_of(&commit);
        sha.map(Some)
            .ok_or_else(|| ToolError::new("`commit` must be 4 to 64 hexadecimal digits."))
    }

    /// The period, `default` unless the call names one.
    pub(super) fn days(&self, default: Days) -> Result<Days, ToolError> {
        let days = self.arguments.number("days", 1..=90)?.unwrap_or(default.count());
        Days::within(self.caller.plan, days).ok_or_else(|| {
            let longest = self.caller.plan.retention_days();
            ToolError::new(format!(
                "`days` must be 7, 30 or 90, and at most {longest} on this plan."
            ))
        })
    }

    /// The longest period of the caller's plan, until now.
    pub(super) fn longest_period(&self) -> Period {
        longest_period(self.caller.plan, self.now)
    }

    /// The run in the arguments, by its id or its number.
    pub(super) fn run_id(&self, project: &Project) -> Result<RunId, ToolError> {
        let list = || self.arguments.other_call("list_runs", &[]);
        let number = match self.arguments.run() {
            Some(RunSelector::Id(id)) => return Ok(id),
            Some(RunSelector::Number(number)) => number,
            None => return Err(ToolError::new("`run` must be a run's id or number.").with_call(list())),
        };
        let query = RunQuery {
            number: Some(number),
            ..RunQuery::newest(self.longest_period(), PerPage::Ten)
        };
        let page = self.store.runs(project, &query)?;
        let run = page.runs.first().map(|run| run.id);
        run.ok_or_else(|| {
            ToolError::new(format!("There is no run {number} in this project.")).with_call(list())
        })
    }

    /// The tests that ran in the engine's window.
    pub(super) fn window_tests(&self, project: &Project) -> Result<WindowTests, ToolError> {
        let window_tests = in_snapshot(self.store, project, |snapshot| {
            let from = self.now.plus_days(-ENGINE_WINDOW_DAYS);
            let history = snapshot.observations(from, self.now)?;
            let mut ordinals = Bitmap::default();
            for run in &history.runs {
                ordinals.insert_all(&run.present);
            }
            let names = snapshot.all_test_names()?;
            Ok(WindowTests { names, ordinals })
        })?;
        Ok(window_tests)
    }

    /// The result of a look-up by name, or an error with candidates for the intended name.
    pub(super) fn single_test<T>(
        &self,
        project: &Project,
        selector: &TestSelector,
        lookup: TestLookup<T>,
    ) -> Result<T, ToolError> {
        match lookup {
            TestLookup::Found(test) => Ok(test),
            TestLookup::Ambiguous(files) => {
                let files = files.named.into_iter().map(Option::unwrap_or_default).collect();
                Err(
                    ToolError::new("Several files have a test of this name: name one with `file`.")
                        .with_candidates(files),
                )
            }
            TestLookup::Missing => {
                let message = format!(
                    "The project {:?} has no test of the whole name {:?}.",
                    project.name, selector.name
                );
                let nearest = self.window_tests(project)?.nearest(&selector.name);
                let by_part = [("test", json!("a part of the name"))];
                Err(ToolError::new(message)
                    .with_candidates(nearest)
                    .with_call(self.arguments.other_call("explain_test", &by_part)))
            }
        }
    }
}

/// The tests that ran in the engine's window.
pub(super) struct WindowTests {
    /// The names of all tests.
    names: Arc<TestNames>,
    ordinals: Bitmap,
}

impl WindowTests {
    pub(super) fn iter(&self) -> impl Iterator<Item = TestNameRef<'_>> {
        self.ordinals.iter().filter_map(|test| self.names.get(test))
    }

    /// The names that are most similar to this one, the most similar first.
    pub(super) fn nearest(&self, name: &str) -> Vec<String> {
        let name = fold(name);
        let words: Vec<&str> = words(&name).collect();
        let shared_words = |test: &str| words.iter().filter(|word| contains_folded(test, word)).count();
        let compared = self.iter().map(|test| (shared_words(test.name), test.name));
        let compared: Vec<(usize, &str)> = compared.take(COMPARED).collect();
        let most_shared = compared.iter().map(|(shared, _)| *shared).max().unwrap_or(0);
        let compared = compared.into_iter().filter(|(shared, _)| *shared == most_shared);
        let mut similar: Vec<(f64, &str)> = compared
            .map(|(_, test)| (strsim::jaro_winkler(&fold(test), &name), test))
            .filter(|(similarity, _)| most_shared > 0 || *similarity >= SIMILAR)
            .collect();
        similar.sort_by(|(left, left_name), (right, right_name)| {
            right.total_cmp(left).then_with(|| left_name.cmp(right_name))
        });
        similar.dedup_by(|(_, left), (_, right)| left == right);
        let names = similar.into_iter().take(CANDIDATES);
        names.map(|(_, test)| test.to_owned()).collect()
    }
}

/// The words of a name that can distinguish it.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| word.chars().count() >= 3).take(WORDS)
}
