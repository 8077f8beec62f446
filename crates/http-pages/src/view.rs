//! One request for a page by a signed-in user: the user, the parameters and the data sources.

use std::{cmp::Ordering, str::FromStr, sync::Arc};

use assay_access::directory::ReadDirectory;
use assay_answers::{
    links::PublicPages,
    owners::{Owners, owners},
    stable_branch::StableBranchState,
};
use assay_domain::{
    id::ProjectId,
    observation::History,
    page::PerPage,
    period::{Days, Period},
    project::{Caller, NAME_CHARS, Project},
    store::{Snapshot, Store, StoreError, in_snapshot},
    test::{FileSelector, TestLookup, TestSelector},
    test_names::{TestNameRef, TestNames},
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Verdict, VerdictStatus},
    vocabulary::UnknownWord,
};
use assay_flakiness::Diagnose;
use assay_http::{BadPair, Pairs};

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
            .map_err(|_| FrontError::ProjectNotFound)?;
        self.directory
            .project(&self.caller, id, self.now)?
            .ok_or(FrontError::ProjectNotFound)
    }

    /// A parameter that may occur once. An empty value counts as absent, because forms send empty fields.
    fn single(&self, name: &'static str) -> Result<Option<&str>, FrontError> {
        self.query
            .single(name)
            .map_err(|BadPair { rule }| FrontError::BadParameter {
                name,
                rule: rule.to_owned(),
            })
    }

    /// A parameter, parsed by `read`.
    pub(crate) fn parse<T>(
        &self,
        name: &'static str,
        rule: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, FrontError> {
        match self.single(name)?.filter(|value| !value.is_empty()) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| FrontError::BadParameter {
                name,
                rule: rule.to_owned(),
            }),
        }
    }

    /// A text of at most 200 characters.
    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, FrontError> {
        self.parse(name, "must be 1 to 200 characters long", |text| {
            (text.chars().count() <= NAME_CHARS).then(|| text.to_owned())
        })
    }

    /// A word from a closed set.
    pub(crate) fn word<T: FromStr<Err = UnknownWord>>(
        &self,
        name: &'static str,
    ) -> Result<Option<T>, FrontError> {
        match self.single(name)?.filter(|value| !value.is_empty()) {
            None => Ok(None),
            Some(word) => word.parse().map(Some).map_err(|UnknownWord { allowed }| {
                let rule = format!("must be one of {}", allowed.join(", "));
                FrontError::BadParameter { name, rule }
            }),
        }
    }

    /// `page`: a whole number from 1.
    pub(crate) fn page(&self) -> Result<u64, FrontError> {
        let page = self.parse("page", "must be a whole number from 1", |page| {
            page.parse().ok().filter(|page| *page >= 1)
        })?;
        Ok(page.unwrap_or(1))
    }

    /// `days`: 7, 30 (the default) or 90, within the plan's retention.
    pub(crate) fn period(&self) -> Result<Period, FrontError> {
        let days = self.parse("days", "must be one of 7, 30, 90 that the plan keeps", |days| {
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
    pub(crate) fn test(&self) -> Result<TestSelector, FrontError> {
        let name = self.single("name")?.unwrap_or_default();
        if name.chars().count() > TEST_NAME_CHARS {
            return Err(FrontError::TestNotFound);
        }
        Ok(TestSelector {
            name: name.to_owned(),
            file: match self.single("file")? {
                None => FileSelector::Any,
                Some("") => FileSelector::Exactly(None),
                Some(file) => FileSelector::Exactly(Some(file.to_owned())),
            },
        })
    }

    /// The verdicts on the tests of the engine's window.
    pub(crate) fn verdicts(&self, project: &Project) -> Result<Verdicts, FrontError> {
        Ok(in_snapshot(self.store, project, |snapshot| {
            self.judged(snapshot)
        })?)
    }

    /// The same with the names of all tests, as of one state of the project.
    pub(crate) fn named_verdicts(&self, project: &Project) -> Result<(Verdicts, Arc<TestNames>), FrontError> {
        Ok(in_snapshot(self.store, project, |snapshot| {
            let verdicts = self.judged(snapshot)?;
            Ok((verdicts, snapshot.all_test_names()?))
        })?)
    }

    /// The same within a snapshot.
    pub(crate) fn judged(&self, snapshot: &mut dyn Snapshot) -> Result<Verdicts, StoreError> {
        let from = self.now.plus_days(-ENGINE_WINDOW_DAYS);
        let history = snapshot.observations(from, self.now)?;
        let stable = StableBranchState::in_snapshot(snapshot, &history, (from, self.now))?;
        let owners = owners(snapshot, self.now)?;
        let verdicts = self.engine.verdicts(&history, self.now);
        Ok(Verdicts {
            history,
            stable,
            owners,
            verdicts,
        })
    }
}

/// The verdicts on the tests of the engine's window.
pub(crate) struct Verdicts {
    pub(crate) history: Arc<History>,
    /// What fails on the stable branch now.
    pub(crate) stable: Arc<StableBranchState>,
    /// The owners of the tests.
    pub(crate) owners: Arc<Owners>,
    verdicts: Vec<Verdict>,
}

/// A verdict with the name of its test.
pub(crate) type NamedVerdict<'a> = (TestNameRef<'a>, &'a Verdict);

impl Verdicts {
    /// The number of tests with a status.
    pub(crate) fn count(&self, status: VerdictStatus) -> usize {
        self.verdicts
            .iter()
            .filter(|verdict| verdict.status == status)
            .count()
    }

    /// The number of tests.
    pub(crate) const fn total(&self) -> usize {
        self.verdicts.len()
    }

    /// The verdicts that `is_included` selects, with the names of their tests.
    pub(crate) fn entries<'a>(
        &'a self,
        names: &'a TestNames,
        is_included: impl Fn(&NamedVerdict<'a>) -> bool,
    ) -> Result<Vec<NamedVerdict<'a>>, StoreError> {
        let mut entries = Vec::new();
        for verdict in &self.verdicts {
            let name = names.get(verdict.test).ok_or_else(|| StoreError::Corrupt {
                what: "result of an unknown test",
                value: verdict.test.to_string(),
            })?;
            if is_included(&(name, verdict)) {
                entries.push((name, verdict));
            }
        }
        Ok(entries)
    }
}

/// At most `most` items from index `first` on, in the order of `compare`. Only these are sorted.
pub(crate) fn sorted_part<T>(
    mut items: Vec<T>,
    (first, most): (usize, usize),
    compare: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let end = first.saturating_add(most);
    if end < items.len() {
        items.select_nth_unstable_by(end, &compare);
        items.truncate(end);
    }
    if first >= items.len() {
        return Vec::new();
    }
    items.select_nth_unstable_by(first, &compare);
    let mut part = items.split_off(first);
    part.sort_unstable_by(compare);
    part
}

/// The test of a look-up.
pub(crate) fn single_test<T>(lookup: TestLookup<T>) -> Result<T, FrontError> {
    match lookup {
        TestLookup::Found(test) => Ok(test),
        TestLookup::Missing => Err(FrontError::TestNotFound),
        TestLookup::Ambiguous(files) => Err(FrontError::AmbiguousTest(files)),
    }
}

/// The page size of the read API's list for the same data.
pub(crate) const PER_PAGE: PerPage = PerPage::Fifty;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sorted_part_is_that_part_of_the_sorted_whole() {
        let items: Vec<u32> = (0..100).map(|item| item * 37 % 100).collect();
        for (first, most) in [
            (0, 10),
            (95, 10),
            (40, 50),
            (0, 1_000),
            (100, 5),
            (usize::MAX, 2),
            (7, 0),
        ] {
            let expected: Vec<u32> = (0..100).skip(first).take(most).collect();
            assert_eq!(
                sorted_part(items.clone(), (first, most), u32::cmp),
                expected,
                "{first} {most}"
            );
        }
        assert_eq!(sorted_part(Vec::<u32>::new(), (0, 5), u32::cmp), [0_u32; 0]);
    }
}
