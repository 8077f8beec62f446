//! Edges: changes of a project that may be worth a message.

use crate::{
    id::RunId, settings::ChatEvent, test::TestOrdinal, timestamp::Timestamp, verdict::VerdictStatus,
};

/// How many days an edge and its messages are kept after they settled. A weekly digest reads them.
pub const KEPT_DAYS: i64 = 8;
/// How many days the last edge of a test is kept if it calls the test broken or flaky. Its end is only sent to a target that
/// knows of it.
pub const PROBLEM_KEPT_DAYS: i64 = 90;
/// After how many days an edge or a message that was not delivered is dropped.
pub const DROPPED_AFTER_DAYS: i64 = 3;

/// A change between two judgements of a project, on its stable branch or on a release branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Its number within the project, from 0 in the order of judgements.
    pub number: i32,
    /// The time of the judgement that showed it.
    pub judged_at: Timestamp,
    /// The event.
    pub event: ChatEvent,
    /// The release branch of the suite; none for the stable branch, as of every edge that is not a suite's.
    pub release_branch: Option<String>,
    /// The suite of the run; empty for the default one.
    pub suite: String,
    /// What changed.
    pub subject: EdgeSubject,
    /// The newest run on the branch that shows it; none for a test without a run there.
    pub run: Option<EdgeRun>,
    /// The number of the run since which a test fails on the stable branch; none if it passes.
    pub since_run: Option<i32>,
    /// Whether the newest run of the suite on the branch shows it as a failure.
    pub is_red: bool,
    /// When it became certain; none while a later judgement may take it back.
    pub settled: Option<Settled>,
}

impl Edge {
    /// Its suite with its release branch.
    pub fn line(&self) -> (Option<&str>, &str) {
        (self.release_branch.as_deref(), &self.suite)
    }

    /// The test that it is about.
    pub const fn test(&self) -> Option<TestOrdinal> {
        match self.subject {
            EdgeSubject::Test { test, .. } | EdgeSubject::Fix { test } => Some(test),
            EdgeSubject::Suite
            | EdgeSubject::Breakage
            | EdgeSubject::Error { .. }
            | EdgeSubject::Budget { .. } => None,
        }
    }

    /// The verdict on its test before.
    pub const fn verdict_before(&self) -> Option<VerdictStatus> {
        match self.subject {
            EdgeSubject::Test { from, .. } => Some(from),
            EdgeSubject::Suite
            | EdgeSubject::Breakage
            | EdgeSubject::Error { .. }
            | EdgeSubject::Budget { .. }
            | EdgeSubject::Fix { .. } => None,
        }
    }
}

/// What an edge is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EdgeSubject {
    /// The edge's suite.
    Suite,
    /// What fails in the edge's suite, which failed before.
    Breakage,
    /// A test, with its verdicts before and after.
    Test {
        /// The test.
        test: TestOrdinal,
        /// The verdict before.
        from: VerdictStatus,
        /// The verdict after.
        to: VerdictStatus,
    },
    /// An error signature, by its number within the project.
    Error {
        /// Its number.
        signature: i32,
    },
    /// The flake budget.
    Budget {
        /// The number of flaky tests.
        flaky: i32,
    },
    /// A fix of a test.
    Fix {
        /// The test.
        test: TestOrdinal,
    },
}

/// A run that shows an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeRun {
    /// Its id.
    pub id: RunId,
    /// Its number within the project.
    pub number: i32,
}

/// When an edge became certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// The batch of edges that settled together, from 1 within the project.
    pub batch: i32,
    /// The time.
    pub at: Timestamp,
}
