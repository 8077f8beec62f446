//! Arguments that several tools share, and the results of look-ups by name.

use std::collections::BTreeSet;

use assay_domain::{
    folding::{contains_folded, fold},
    id::RunId,
    project::Project,
    store::in_snapshot,
    test::{FileSelector, TestLookup, TestName, TestSelector},
    verdict::ENGINE_WINDOW_DAYS,
    window::{Days, Window},
};
use serde_json::json;

use super::Call;
use crate::error::ToolError;

impl Call<'_> {
    /// The beginning of a commit, in lower case.
    pub(super) fn commit(&self) -> Result<Option<String>, ToolError> {
        let Some(commit) = self.arguments.text("commit")? else {
            return Ok(None);
        };
        let is_commit =
            (4..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_commit {
            Ok(Some(commit.to_ascii_lowercase()))
        } else {
            Err(ToolError::new("`commit` must be 4 to 64 hexadecimal digits."))
        }
    }

    /// The period, `default` unless the call says otherwise.
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
    pub(super) fn longest_window(&self) -> Window {
        let days = Days::within(self.caller.plan, 90).unwrap_or(Days::Thirty);
        Window::ending(self.now, days)
    }

    /// The run in the arguments.
    pub(super) fn run_id(&self) -> Result<RunId, ToolError> {
        self.arguments.needed("run")?.parse().map_err(|_| {
            ToolError::new("`run` must be a run's id.")
                .with_call(json!({"tool": "list_runs", "arguments": {}}))
        })
    }

    /// The test in the arguments.
    pub(super) fn test(&self) -> Result<TestSelector, ToolError> {
        Ok(TestSelector {
            name: self.arguments.needed("test")?,
            file: match self.arguments.text("file")? {
                Some(file) => FileSelector::Exactly(Some(file)),
                None => FileSelector::Any,
            },
        })
    }

    /// The tests of the engine's window whose name contains `part`, ignoring case.
    pub(super) fn tests_with(&self, project: &Project, part: &str) -> Result<Vec<TestName>, ToolError> {
        let part = fold(part);
        let named = in_snapshot(self.store, project, |snapshot| {
            let from = self.now.plus_days(-ENGINE_WINDOW_DAYS);
            let history = snapshot.observations(from, self.now)?;
            let tests: BTreeSet<_> = history.runs.iter().flat_map(|run| run.present.iter()).collect();
            snapshot.test_names(&Vec::from_iter(tests))
        })?;
        let matches = |test: &TestName| contains_folded(&test.name, &part);
        Ok(named.into_iter().filter(matches).collect())
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
            TestLookup::Missing => Err(ToolError::new(format!(
                "The project {:?} has no test of the whole name {:?}.",
                project.name, selector.name
            ))
            .with_call(json!({"tool": "explain_test", "arguments": {"test": "a part of the name"}}))),
        }
    }
}
