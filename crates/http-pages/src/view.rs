//! One request for a page by a signed-in user: the user, the parameters and the data sources.

use assay_access::directory::ReadDirectory;
use assay_answers::{links::PublicPages, test_list::JudgedTests};
use assay_domain::{
    id::ProjectId,
    page::PerPage,
    period::{Days, Period},
    project::{Caller, NAME_CHARS, Project},
    store::{Snapshot, Store, StoreError, in_snapshot},
    test::{FileSelector, TestSelector},
    timestamp::Timestamp,
};
use assay_flakiness::Diagnose;
use assay_http::{Pairs, Unanswerable};

use crate::error::FrontError;

/// Longest name of a test, in characters, with space for the mark of a cut name.
const TEST_NAME_CHARS: usize = 20_000;

/// One request for a page.
pub(crate) struct View<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) directory: &'a ReadDirectory,
    pub(crate) engine: &'a dyn Diagnose,
    /// The pages, if the server has a public address.
    pub(crate) pages: Option<&'a PublicPages>,
    pub(crate) caller: Caller,
    /// The time of the request, the same for the whole page.
    pub(crate) now: Timestamp,
    /// Parts of the path by name.
    pub(crate) path: &'a [(String, String)],
    pub(crate) query: &'a Pairs,
    /// The address to which CI sends reports, if the server knows it.
    pub(crate) reports_url: Option<&'a str>,
}

impl View<'_> {
    /// A part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        let mut parts = self.path.iter();
        parts
            .find(|(part, _)| part == name)
            .map_or("", |(_, value)| value.as_str())
    }

    /// The project of the path, if the caller may see it.
    pub(crate) fn project(&self) -> Result<Project, FrontError> {
        let id: ProjectId = self
            .part("project")
            .parse()
            .map_err(|_| Unanswerable::ProjectNotFound)?;
        let project = self.directory.project(&self.caller, id, self.now)?;
        Ok(project.ok_or(Unanswerable::ProjectNotFound)?)
    }

    /// A text of at most 200 characters.
    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, Unanswerable> {
        self.query.text(name, NAME_CHARS)
    }

    /// `days`: 7, 30 (the default) or 90, within the plan's retention.
    pub(crate) fn period(&self) -> Result<Period, Unanswerable> {
        let days = self
            .query
            .parse("days", "must be one of 7, 30, 90 that the plan keeps", |days| {
                Days::within(self.caller.plan, days.parse().ok()?)
            })?;
        let longest = Days::within(self.caller.plan, 30).unwrap_or(Days::Seven);
        Ok(Period::ending(self.now, days.unwrap_or(longest)))
    }

    /// The periods within the plan's retention.
    pub(crate) fn periods(&self) -> impl Iterator<Item = i64> {
        Days::of_plan(self.caller.plan).map(Days::count)
    }

    /// The test in `name` and `file`.
    pub(crate) fn test(&self) -> Result<TestSelector, Unanswerable> {
        let name = self.query.single("name")?.unwrap_or_default();
        if name.chars().count() > TEST_NAME_CHARS {
            return Err(Unanswerable::TestNotFound);
        }
        Ok(TestSelector {
            name: name.to_owned(),
            file: match self.query.single("file")? {
                None => FileSelector::Any,
                Some("") => FileSelector::Exactly(None),
                Some(file) => FileSelector::Exactly(Some(file.to_owned())),
            },
        })
    }

    /// The verdicts on the tests of the engine's window.
    pub(crate) fn verdicts(&self, project: &Project) -> Result<JudgedTests, FrontError> {
        Ok(in_snapshot(self.store, project, |snapshot| {
            self.judged(snapshot)
        })?)
    }

    /// The same within a snapshot.
    pub(crate) fn judged(&self, snapshot: &mut dyn Snapshot) -> Result<JudgedTests, StoreError> {
        JudgedTests::in_snapshot(
            snapshot,
            |history| self.engine.verdicts(history, self.now),
            self.now,
        )
    }
}

/// The page size of the read API's list for the same data.
pub(crate) const PER_PAGE: PerPage = PerPage::Fifty;
