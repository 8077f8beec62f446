//! Arguments that several tools share, and what a look-up by name found.

use assay_domain::{
    id::RunId,
    project::Project,
    test::{FileSelector, TestLookup, TestSelector},
    window::Days,
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

    /// The period, `default` days unless the call says otherwise.
    pub(super) fn days(&self, default: i64) -> Result<Days, ToolError> {
        let asked = self.arguments.number("days", 1..=90)?.unwrap_or(default);
        Days::within(self.caller.plan, asked).ok_or_else(|| {
            let longest = self.caller.plan.retention_days();
            ToolError::new(format!(
                "`days` must be 7, 30 or 90, and at most {longest} on this plan."
            ))
        })
    }

    /// The run that the call names.
    pub(super) fn run_id(&self) -> Result<RunId, ToolError> {
        self.arguments.needed("run")?.parse().map_err(|_| {
            ToolError::new("`run` must be a run's id.")
                .with_call(json!({"tool": "list_runs", "arguments": {}}))
        })
    }

    /// The test that the call names.
    pub(super) fn test(&self) -> Result<TestSelector, ToolError> {
        Ok(TestSelector {
            name: self.arguments.needed("test")?,
            file: match self.arguments.text("file")? {
                Some(file) => FileSelector::Exactly(Some(file)),
                None => FileSelector::Any,
            },
        })
    }

    /// What a look-up by name found, else an error that names what may have been meant.
    pub(super) fn found<T>(
        &self,
        project: &Project,
        selector: &TestSelector,
        lookup: TestLookup<T>,
    ) -> Result<T, ToolError> {
        match lookup {
            TestLookup::Found(found) => Ok(found),
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
            .with_call(json!({"tool": "list_flaky", "arguments": {"search": selector.name}}))),
        }
    }
}
