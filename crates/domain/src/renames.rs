//! The renames file of a checkout: former names of tests, so that their histories continue under the present names.
//!
//! Each line has a date, `test` or `file`, the old and the new name:
//!
//! ```text
//! 2026-11-20 test cart > pays -> cart > pays by card
//! 2026-11-27 file src/old/ -> src/new/
//! ```
//!
//! Lines apply in the order of their dates, and of the file within one date. A line counts for runs before and after its
//! date, because branches report old names for a while. Only lines of one date that exchange names count for earlier runs
//! alone.

mod cycles;
mod line;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cycles::{Cycles, without_repetitions};
pub use line::quoted;
use line::{Kind, Line};

use crate::{
    test::{TestName, TestOrdinal},
    test_names::TestNameRef,
    timestamp::Timestamp,
};

/// The renames file of a checkout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenamesFile {
    /// Its text. Empty if the checkout has none.
    pub text: String,
}

impl RenamesFile {
    /// Its place in a checkout.
    pub const PATH: &str = ".assay/renames";
    /// The most bytes of its text.
    pub const MOST_TEXT_BYTES: usize = 256 << 10;
}

/// Most lines. A larger file renames nothing.
const MOST_LINES: usize = 4_000;
/// A line that is left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct RenameProblem {
    /// Its number, from 1.
    pub line: usize,
    /// Why it is left out.
    pub reason: String,
}

/// A line that is ignored for a run, because the run has both tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("line {line} is ignored for this run, because it has both {} and {}", shown(.old), shown(.new))]
pub struct Contradiction {
    /// Its number, from 1.
    pub line: usize,
    /// The test under the old name.
    pub old: TestName,
    /// The test under the new name.
    pub new: TestName,
}

/// A test on one line.
fn shown(test: &TestName) -> String {
    match &test.file_path {
        Some(file) => format!("{:?} in {file:?}", test.name),
        None => format!("{:?}", test.name),
    }
}

/// A line in the order of application.
#[derive(Debug, Clone)]
struct Step {
    line: Line,
    /// Lines of one exchange have the same place.
    place: usize,
    /// Whether it exchanges names, so that it counts only for runs before its date.
    exchanges: bool,
}

/// The lines of a renames file.
#[derive(Debug, Default)]
pub struct Renames {
    steps: Vec<Step>,
    problems: Vec<RenameProblem>,
    /// The steps by their old names.
    tests: HashMap<String, usize>,
    /// The same of files and folders.
    files: HashMap<String, usize>,
    /// The dates of exchanges, ascending.
    exchanges: BTreeSet<Timestamp>,
}

impl Renames {
    /// Reads a renames file. Lines that cannot be applied are problems.
    pub fn parse(text: &str) -> Self {
        let (mut lines, mut problems) = (Vec::new(), Vec::new());
        for (index, text) in text.lines().enumerate() {
            let number = index + 1;
            match Line::parse(number, text) {
                Ok(line) => lines.extend(line),
                Err(reason) => problems.push(RenameProblem { line: number, reason }),
            }
        }
        if lines.len() > MOST_LINES {
            let reason = format!("expected at most {MOST_LINES} lines; the whole file is left out");
            return Self {
                problems: vec![RenameProblem {
                    line: MOST_LINES + 1,
                    reason,
                }],
                ..Self::default()
            };
        }
        let lines = without_repetitions(lines, &mut problems);
        let mut cycles = Cycles::of(&lines);
        cycles.refuse_beyond_most_dates();
        let mut steps = Vec::with_capacity(lines.len());
        for line in lines {
            match cycles.refused.remove(&line.number) {
                Some(reason) => problems.push(RenameProblem {
                    line: line.number,
                    reason,
                }),
                None => steps.push(line),
            }
        }
        problems.sort();
        Self::of_lines(steps, &cycles.exchanges, problems)
    }

    fn of_lines(
        mut lines: Vec<Line>,
        exchanges: &BTreeMap<usize, usize>,
        problems: Vec<RenameProblem>,
    ) -> Self {
        lines.sort_by_key(|line| {
            // The lines of an exchange stand together, at the first of them.
            let first = exchanges.get(&line.number).copied();
            (line.date, first.unwrap_or(line.number), line.number)
        });
        let mut renames = Self {
            problems,
            ..Self::default()
        };
        for (index, line) in lines.into_iter().enumerate() {
            let first = exchanges.get(&line.number).copied();
            let before = renames.steps.last();
            let same =
                before.filter(|step| first.is_some() && exchanges.get(&step.line.number).copied() == first);
            let place = same.map_or(index, |step| step.place);
            let by_old = match line.kind {
                Kind::Test => &mut renames.tests,
                Kind::File => &mut renames.files,
            };
            by_old.insert(line.old.clone(), index);
            if first.is_some() {
                renames.exchanges.insert(line.date);
            }
            renames.steps.push(Step {
                line,
                place,
                exchanges: first.is_some(),
            });
        }
        renames
    }

    /// Whether nothing is renamed.
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The number of lines that are applied.
    pub const fn count(&self) -> usize {
        self.steps.len()
    }

    /// The lines that are left out.
    pub fn problems(&self) -> &[RenameProblem] {
        &self.problems
    }

    /// The lines whose old and new test are both among the tests of one run.
    pub fn contradictions(&self, tests: &HashSet<TestNameRef<'_>>) -> Vec<Contradiction> {
        let mut found = Vec::new();
        for test in tests {
            let mut changes = Vec::new();
            changes.extend(self.tests.get(test.name).copied());
            changes.extend(test.file_path.and_then(|file| self.file_step(file, 0)));
            for step in changes.into_iter().filter_map(|index| self.steps.get(index)) {
                if step.exchanges {
                    continue;
                }
                let mut new = test.owned();
                match step.line.kind {
                    Kind::Test => new.name.clone_from(&step.line.new),
                    Kind::File => new.file_path = new.file_path.map(|file| step.line.renamed_file(&file)),
                }
                if tests.contains(&new.borrowed()) {
                    found.push(Contradiction {
                        line: step.line.number,
                        old: test.owned(),
                        new,
                    });
                }
            }
        }
        found.sort();
        found
    }

    /// The starts of the periods in which names mean the same, the first of which has none.
    fn periods(&self) -> impl Iterator<Item = Option<Timestamp>> {
        std::iter::once(None).chain(self.exchanges.iter().map(|date| Some(*date)))
    }

    /// The present name of a test that a run of the period with this start reported: the last one on the way that exists.
    fn present(
        &self,
        test: TestNameRef<'_>,
        period: Option<Timestamp>,
        files: &mut FileWays,
        exists: &impl Fn(TestNameRef<'_>) -> Option<TestOrdinal>,
    ) -> Option<TestOrdinal> {
        let names = self.way(test.name, period, |name, _| self.tests.get(name).copied());
        let mut changes: BTreeMap<usize, (Option<&str>, Option<&str>)> = BTreeMap::new();
        for (place, name) in &names {
            changes.entry(*place).or_default().0 = Some(name);
        }
        if let Some(file) = test.file_path
            && !self.files.is_empty()
        {
            let way = files
                .0
                .entry((file.to_owned(), period))
                .or_insert_with(|| self.way(file, period, |file, from| self.file_step(file, from)));
            for (place, file) in &*way {
                changes.entry(*place).or_default().1 = Some(file);
            }
        }
        let (mut current, mut last) = (test, None);
        for (name, file) in changes.into_values() {
            current.name = name.unwrap_or(current.name);
            current.file_path = file.or(current.file_path);
            last = exists(current).or(last);
        }
        last
    }

    /// The names that a name gets, each with the place of its step.
    fn way(
        &self,
        name: &str,
        period: Option<Timestamp>,
        step_of: impl Fn(&str, usize) -> Option<usize>,
    ) -> Way {
        let mut way = Way::new();
        let mut from = 0;
        loop {
            let current = way.last().map_or(name, |(_, name)| name.as_str());
            let Some(index) = step_of(current, from).filter(|index| *index >= from) else {
                return way;
            };
            let Some(step) = self.steps.get(index) else {
                return way;
            };
            // The other lines of an exchange do not follow.
            let next = self
                .steps
                .iter()
                .skip(index)
                .position(|other| other.place != step.place);
            from = next.map_or(self.steps.len(), |distance| index + distance);
            let is_past = step.exchanges && period.is_some_and(|start| start >= step.line.date);
            let renamed = match (step.line.kind, is_past) {
                (_, true) => current.to_owned(),
                (Kind::Test, false) => step.line.new.clone(),
                (Kind::File, false) => step.line.renamed_file(current),
            };
            way.push((step.place, renamed));
        }
    }

    /// The first step from this one on that renames a file, by the file itself or the innermost of its folders.
    fn file_step(&self, file: &str, from: usize) -> Option<usize> {
        let folders = file.match_indices('/').map(|(index, _)| file.get(..=index));
        let names = folders.flatten().chain([file]);
        names
            .filter_map(|name| self.files.get(name).copied())
            .filter(|index| *index >= from)
            .min_by_key(|index| {
                let step = self.steps.get(*index);
                step.map(|step| (step.place, std::cmp::Reverse(step.line.old.len())))
            })
    }
}

/// The ways of files, each found once.
#[derive(Default)]
struct FileWays(HashMap<(String, Option<Timestamp>), Way>);

/// The names that a name gets, each with the place of its step.
type Way = Vec<(usize, String)>;

/// The present name of a test in some runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Join {
    /// The test under its former name.
    pub old: TestOrdinal,
    /// The test under its present name.
    pub new: TestOrdinal,
    /// The earliest start of these runs; none without a bound.
    pub from: Option<Timestamp>,
    /// The start from which runs are others; none without a bound.
    pub until: Option<Timestamp>,
}

impl Join {
    pub(crate) fn holds(&self, start: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= start) && self.until.is_none_or(|until| start < until)
    }
}

impl Renames {
    /// The joins between the tests of a project.
    pub fn joins<'a>(&self, tests: impl Iterator<Item = (TestOrdinal, TestNameRef<'a>)>) -> Vec<Join> {
        if self.is_empty() {
            return Vec::new();
        }
        let numbers: HashMap<TestNameRef<'a>, TestOrdinal> =
            tests.map(|(number, name)| (name, number)).collect();
        let exists = |name: TestNameRef<'_>| numbers.get(&name).copied();
        let mut files = FileWays::default();
        let mut joins: Vec<Join> = Vec::new();
        for (test, old) in &numbers {
            let mut last: Option<Join> = None;
            for period in self.periods() {
                let new = self
                    .present(*test, period, &mut files, &exists)
                    .filter(|new| new != old);
                if let Some(open) = last.take_if(|open| Some(open.new) != new) {
                    joins.push(Join {
                        until: period,
                        ..open
                    });
                }
                if let (Some(new), None) = (new, &last) {
                    last = Some(Join {
                        old: *old,
                        new,
                        from: period,
                        until: None,
                    });
                }
            }
            joins.extend(last);
        }
        joins.sort_by_key(|join| (join.old, join.from));
        joins
    }
}
