//! The breakages and the flaky tests of a simulated history.

use std::collections::BTreeMap;

use rand::{RngExt, rngs::StdRng};

/// The largest breakage, in tests.
const LARGEST: f64 = 60.0;

/// The breakage of a change.
#[derive(Debug, Clone)]
pub(crate) struct Breakage {
    /// The tests, each with its failure rate and its text.
    pub(crate) tests: BTreeMap<u32, (f64, u32)>,
    /// The revision that broke them.
    pub(crate) revision: u32,
}

impl Breakage {
    /// Breaks some tests of a suite, numbered from 0 to `suite`: some of them only sometimes, and most with one text.
    pub(crate) fn new(revision: u32, suite: u32, texts: &mut Texts, random: &mut StdRng) -> Self {
        // There are as many breakages of 1 to 4 tests as of 15 to 60.
        let size = LARGEST.powf(random.random_range(0.0..1.0_f64)).round();
        let shared = texts.next();
        let mut tests = BTreeMap::new();
        for _ in 0..count(size) {
            let rate = if random.random_bool(0.15) {
                random.random_range(0.3..0.9)
            } else {
                0.998
            };
            let text = if random.random_bool(0.6) {
                shared
            } else {
                texts.next()
            };
            tests.insert(random.random_range(0..suite), (rate, text));
        }
        Self { tests, revision }
    }

    /// Breaks the same tests again, with errors of its own.
    pub(crate) fn again(&self, revision: u32, texts: &mut Texts) -> Self {
        let shared = texts.next();
        let tests = self
            .tests
            .iter()
            .map(|(test, (rate, _))| (*test, (*rate, shared)));
        Self {
            tests: tests.collect(),
            revision,
        }
    }
}

/// The texts from here on are of flaky tests, one for each test.
const FLAKE_TEXTS: u32 = 1 << 20;

/// Flaky tests, each with its rate.
#[derive(Debug)]
pub(crate) struct Flakes(BTreeMap<u32, f64>);

impl Flakes {
    /// Draws this share of the tests, with rates between two powers of ten.
    pub(crate) fn draw(tests: u32, share: f64, exponents: (f64, f64), random: &mut StdRng) -> Self {
        let flaky: Vec<u32> = (0..tests).filter(|_| random.random_bool(share)).collect();
        let rate = |test| (test, 10.0_f64.powf(random.random_range(exponents.0..exponents.1)));
        Self(flaky.into_iter().map(rate).collect())
    }

    /// The text of a test that fails now.
    pub(crate) fn text(&self, test: u32, random: &mut StdRng) -> Option<u32> {
        let rate = self.0.get(&test)?;
        random.random_bool(*rate).then_some(FLAKE_TEXTS + test)
    }
}

/// Numbers the error texts. Each call of `next` returns a new number.
pub(crate) struct Texts(u32);

impl Texts {
    /// The texts after this number.
    pub(crate) const fn after(number: u32) -> Self {
        Self(number)
    }

    pub(crate) const fn next(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }
}

#[expect(clippy::as_conversions, reason = "a small positive number")]
fn count(size: f64) -> u32 {
    size as u32
}
