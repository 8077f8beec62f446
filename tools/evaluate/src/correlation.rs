//! Measures how far repeated runs of flaky tests are correlated, on the figures of a public study.

use std::{collections::BTreeMap, path::Path};

use anyhow::Context as _;
use csv::{Reader, StringRecord};

/// A row of failures from this length on is no chance at the rates of these tests.
const ROW: f64 = 4.0;

/// A flaky test that ran in its suite and alone.
struct Rates {
    suite: f64,
    alone: f64,
}

/// Counts and shares over tests, each also weighted by how often the test fails.
#[derive(Default)]
struct Share {
    tests: (f64, f64),
    failures: (f64, f64),
}

impl Share {
    fn add(&mut self, value: f64, rate: f64) {
        self.tests = (self.tests.0 + value, self.tests.1 + 1.0);
        self.failures = (self.failures.0 + value * rate, self.failures.1 + rate);
    }

    /// The mean over tests, and over failures.
    fn text(&self) -> String {
        let mean = |(sum, all): (f64, f64)| sum / all.max(f64::MIN_POSITIVE);
        format!(
            "{:.2} by tests, {:.2} by failures ({} tests)",
            mean(self.tests),
            mean(self.failures),
            self.tests.1
        )
    }
}

/// The measures of a folder of `datasets/rerun-correlation`.
pub(crate) fn table(folder: &Path) -> anyhow::Result<String> {
    let mut rates = BTreeMap::new();
    for row in rows(folder, "fail_rates.csv")? {
        let [suite, alone] = [1, 2].map(|column| number(&row, column));
        let test = row.get(0).unwrap_or_default().to_owned();
        rates.insert(
            test,
            Rates {
                suite: suite?,
                alone: alone?,
            },
        );
    }
    let (mut never_alone, mut again_alone) = (Share::default(), Share::default());
    for Rates { suite, alone } in rates.values() {
        never_alone.add(if *alone == 0.0 { 1.0 } else { 0.0 }, *suite);
        again_alone.add(*alone, *suite);
    }
    let (mut in_rows, mut again, mut unrelated) = (Share::default(), Share::default(), Share::default());
    for row in rows(folder, "bursts.csv")? {
        let (median, longest) = (number(&row, 2)?, number(&row, 4)?);
        let rate = rates.get(row.get(0).unwrap_or_default());
        let rate = rate.map_or(0.0, |rates| rates.suite);
        in_rows.add(if longest >= ROW { 1.0 } else { 0.0 }, rate);
        // In a row of n failures, n - 1 of them are followed by another one.
        again.add(1.0 - 1.0 / median.max(1.0), rate);
        unrelated.add(rate, rate);
    }
    Ok(format!(
        "share of tests that never fail alone: {}\n\
         P(fails alone), of a test that failed in its suite: {}\n\
         share of tests that fail in a row of {ROW} or more: {}\n\
         P(fails in the next round), after a failure: {}\n\
         the same if rounds were independent: {}\n",
        never_alone.text(),
        again_alone.text(),
        in_rows.text(),
        again.text(),
        unrelated.text(),
    ))
}

fn rows(folder: &Path, name: &str) -> anyhow::Result<Vec<StringRecord>> {
    let path = folder.join(name);
    let mut reader = Reader::from_path(&path).with_context(|| path.display().to_string())?;
    let rows = reader.records().collect::<Result<_, _>>();
    rows.with_context(|| path.display().to_string())
}

fn number(row: &StringRecord, column: usize) -> anyhow::Result<f64> {
    let text = row.get(column).unwrap_or_default();
    text.parse()
        .with_context(|| format!("{text:?} is no number in the row {row:?}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn rates_and_rows_are_weighted_by_tests_and_by_failures() {
        let folder = std::env::temp_dir().join(format!("assay-correlation-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            (
                "fail_rates.csv",
                "test,rate_in_suite,rate_alone\na,0.1,0\nb,0.3,0.4\n",
            ),
            (
                "bursts.csv",
                "test,min,median,mean,longest\na,1,1,1,1\nb,2,4,4,5\n",
            ),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        let text = table(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        for line in [
            "never fail alone: 0.50 by tests, 0.25 by failures (2 tests)",
            "P(fails alone), of a test that failed in its suite: 0.20 by tests, 0.30 by failures",
            "row of 4 or more: 0.50 by tests, 0.75 by failures",
            "after a failure: 0.38 by tests, 0.56 by failures",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
