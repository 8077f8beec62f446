//! The simulated populations: their size, frequency of runs and flakiness.

use clap::ValueEnum;

/// A population by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// No retries.
    #[value(name = "S1")]
    S1,
    /// Two retries.
    #[value(name = "S2")]
    S2,
    /// 1,500 tests, 3 % flaky, few runs, one retry.
    #[value(name = "S3")]
    S3,
    /// S1 without revisions.
    #[value(name = "S4")]
    S4,
    /// S1 with clusters of 15 tests that fail together.
    #[value(name = "S5")]
    S5,
    /// Hundreds of branches with one run each. Some break a test. A breakage of the stable branch fails first on the
    /// branch that is merged.
    PullRequests,
    /// Three variants: breakages on all of them, flakes on one.
    Variants,
}

/// The parameters of a simulated project.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Population {
    /// The number of tests.
    pub(crate) tests: u32,
    /// The share of flaky tests of all kinds.
    pub(crate) flaky: f64,
    /// The share of tests that break and are fixed.
    pub(crate) regressing: f64,
    /// The share of tests that break permanently, some of them flaky before.
    pub(crate) broken: f64,
    /// The share of tests that only a branch breaks.
    pub(crate) branch_broken: f64,
    /// Runs of the stable branch per day.
    pub(crate) stable_runs: f64,
    /// New branches per day.
    pub(crate) branches: f64,
    /// The maximum number of runs of a branch; the minimum is one.
    pub(crate) branch_runs: u32,
    /// Whether a branch fails before each breakage of the stable branch, as if its merge brought the breakage.
    pub(crate) merges: bool,
    /// The variants of each run. With several, a flaky test is flaky on one of them only.
    pub(crate) variants: u32,
    /// The number of retries of a failed attempt.
    pub(crate) retries: u32,
    /// Whether runs have a revision.
    pub(crate) revisions: bool,
    /// The number of clusters of co-failing tests.
    pub(crate) clusters: u32,
}

/// The number of tests of a cluster that fail together.
pub(crate) const CLUSTER: u32 = 15;

impl Name {
    /// The population.
    pub(crate) const fn population(self) -> Population {
        let s1 = Population {
            tests: 600,
            flaky: 0.14,
            regressing: 0.06,
            broken: 0.03,
            branch_broken: 0.02,
            stable_runs: 5.0,
            branches: 1.2,
            branch_runs: 6,
            merges: false,
            variants: 1,
            retries: 0,
            revisions: true,
            clusters: 0,
        };
        match self {
            Self::S1 => s1,
            Self::S2 => Population { retries: 2, ..s1 },
            Self::S3 => Population {
                tests: 1_500,
                flaky: 0.03,
                regressing: 0.04,
                broken: 0.02,
                stable_runs: 2.5,
                branches: 0.6,
                retries: 1,
                ..s1
            },
            Self::S4 => Population {
                revisions: false,
                ..s1
            },
            Self::S5 => Population { clusters: 3, ..s1 },
            Self::PullRequests => Population {
                branch_broken: 0.05,
                stable_runs: 2.0,
                branches: 14.0,
                branch_runs: 1,
                merges: true,
                ..s1
            },
            Self::Variants => Population {
                tests: 400,
                stable_runs: 3.0,
                variants: 3,
                ..s1
            },
        }
    }
}
