//! The commits and authors of the runs that a message names.

use std::collections::{HashMap, hash_map::Entry};

use assay_answers::links;
use assay_domain::{
    edge::EdgeRun,
    id::RunId,
    project::Project,
    revision::tested_or_commit,
    run::{Run, RunDetail, SomeTests},
    store::StoreError,
    verdict::FailingSince,
};

use super::Reader;
use crate::content::bounded;

/// Characters of a commit that are shown.
const SHA_CHARS: usize = 8;
/// Longest name of an author in a message, in characters.
const AUTHOR_CHARS: usize = 40;

/// The runs that a message names, with their commits and authors.
pub(super) struct Commits<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) project: &'a Project,
    runs: HashMap<RunId, Option<RunDetail>>,
    /// The page of the first run that was named.
    page: Option<String>,
}

impl<'a> Commits<'a> {
    pub(super) fn of(reader: Reader<'a>, project: &'a Project) -> Self {
        Self {
            reader,
            project,
            runs: HashMap::new(),
            page: None,
        }
    }

    pub(super) fn run(&mut self, id: RunId) -> Result<Option<&RunDetail>, StoreError> {
        if let Entry::Vacant(unknown) = self.runs.entry(id) {
            unknown.insert(
                self.reader
                    .store
                    .run_with(self.project, id, &SomeTests::Of(Vec::new()))?,
            );
        }
        let run = self.runs.get(&id).and_then(Option::as_ref);
        if let (None, Some(detail)) = (&self.page, run) {
            self.page = Some(match revision(&detail.run) {
                Some(revision) => links::commit(self.project.id, revision),
                None => links::run(self.project.id, &id),
            });
        }
        Ok(run)
    }

    /// The commit of a run with its author, such as `3fa9c1d2 by Ada`; none if it is unknown.
    pub(super) fn commit(&mut self, id: RunId) -> Result<Option<String>, StoreError> {
        Ok(self.run(id)?.and_then(|detail| {
            let sha: String = revision(&detail.run)?.chars().take(SHA_CHARS).collect();
            let sha = bounded(&sha, SHA_CHARS);
            Some(match &detail.run.author_name {
                Some(author) => format!("{sha} by {}", bounded(author, AUTHOR_CHARS)),
                None => sha,
            })
        }))
    }

    /// A run with its commit, such as `run 12 (3fa9c1d2 by Ada)`.
    pub(super) fn run_with_commit(&mut self, run: EdgeRun) -> Result<String, StoreError> {
        Ok(match self.commit(run.id)? {
            Some(commit) => format!("run {} ({commit})", run.number),
            None => format!("run {}", run.number),
        })
    }

    pub(super) fn page(self) -> String {
        let project = || links::project(self.project.id, "");
        self.page.unwrap_or_else(project)
    }
}

fn revision(run: &Run) -> Option<&str> {
    tested_or_commit(run.tested_revision.as_deref(), run.commit_sha.as_deref())
}

/// Where failures began, as the end of a sentence.
pub(super) fn since(
    first_failed: Option<&FailingSince>,
    commits: &mut Commits<'_>,
) -> Result<String, StoreError> {
    let Some(first_failed) = first_failed else {
        return Ok(String::new());
    };
    let commit = match first_failed.run_id.parse() {
        Ok(run) => commits.commit(run)?,
        Err(_) => None,
    };
    Ok(match commit {
        Some(commit) => format!(" since {commit}"),
        None => format!(" since run {}", first_failed.run_number),
    })
}
