//! What the flaky list is made of.

use assay_domain::verdict::Verdict;

/// The tests of a window that somebody should look at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Suspects {
    /// The verdicts on the flaky and broken tests, ascending by test.
    pub verdicts: Vec<Verdict>,
    /// How many tests fail now without being flaky or broken.
    pub failing: u64,
    /// How many tests have too few runs for a verdict.
    pub gathering: u64,
}

impl Suspects {
    /// Both, those of the later tests last.
    pub(crate) fn and(mut self, mut more: Self) -> Self {
        self.verdicts.append(&mut more.verdicts);
        self.failing += more.failing;
        self.gathering += more.gathering;
        self
    }
}
