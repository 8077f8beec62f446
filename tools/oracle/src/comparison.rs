//! Counts successful checks and collects failed ones.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::clock;

/// A wildcard in an expectation: any value.
pub const ANY: &str = "≈any";
/// A wildcard: a non-empty text.
pub const TEXT: &str = "≈text";
/// A wildcard: a whole number of at least 0.
pub const COUNT: &str = "≈count";
/// A wildcard: any number.
pub const NUMBER: &str = "≈number";
/// A wildcard: true or false.
pub const BOOL: &str = "≈bool";
/// A wildcard: UTC with milliseconds and Z.
pub const TIME: &str = "≈time";

/// The number of successful checks, and the text of each failed one.
#[derive(Default)]
pub struct Comparison {
    section: String,
    sections: BTreeMap<String, (usize, usize)>,
    failures: Vec<String>,
}

impl Comparison {
    /// Begins a section of the summary.
    pub fn section(&mut self, name: &str) {
        self.section = name.to_owned();
    }

    /// Adds the counts of another.
    pub fn absorb(&mut self, other: Comparison) {
        for (name, (passed, failed)) in other.sections {
            let entry = self.sections.entry(name).or_default();
            entry.0 += passed;
            entry.1 += failed;
        }
        self.failures.extend(other.failures);
    }

    /// Checks several parts in parallel, one thread each.
    pub fn side_by_side<T: Send>(
        &mut self,
        parts: impl Iterator<Item = T>,
        check: impl Fn(&mut Comparison, T) + Sync,
    ) {
        let section = self.section.clone();
        std::thread::scope(|scope| {
            let threads: Vec<_> = parts
                .map(|part| {
                    let (section, check) = (&section, &check);
                    scope.spawn(move || {
                        let mut comparison = Comparison::default();
                        comparison.section(section);
                        check(&mut comparison, part);
                        comparison
                    })
                })
                .collect();
            for thread in threads {
                self.absorb(thread.join().expect("the checks of a part end"));
            }
        });
    }

    /// Records one check.
    pub fn holds(&mut self, holds: bool, what: impl FnOnce() -> String) -> bool {
        let entry = self.sections.entry(self.section.clone()).or_default();
        if holds {
            entry.0 += 1;
        } else {
            entry.1 += 1;
            self.failures.push(format!("[{}] {}", self.section, what()));
        }
        holds
    }

    /// Records whether two values are equal.
    pub fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, got: &T, expected: &T) -> bool {
        self.holds(got == expected, || {
            format!("{what}: expected {expected:?}, got {got:?}")
        })
    }

    /// Compares an answer with its expectation, one check per leaf. Additional fields are permitted.
    pub fn matches(&mut self, what: &str, got: &Value, expected: &Value) {
        match expected {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let place = format!("{what}.{name}");
                    match got.get(name) {
                        Some(found) => self.matches(&place, found, value),
                        None => {
                            self.holds(false, || {
                                format!("{place}: the field is missing in {}", brief(got))
                            });
                        }
                    }
                }
            }
            Value::Array(items) => {
                let found = got.as_array().map_or(usize::MAX, Vec::len);
                let same = self.holds(found == items.len(), || {
                    format!(
                        "{what}: expected {} items {}, got {}",
                        items.len(),
                        brief(expected),
                        brief(got)
                    )
                });
                if same {
                    for (place, item) in items.iter().enumerate() {
                        self.matches(&format!("{what}[{place}]"), &got[place], item);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.holds(agrees(got, expected), || {
                    format!("{what}: expected {}, got {}", brief(expected), brief(got))
                });
            }
        }
    }

    /// The summary: one line per section, then the first 400 failures, then the result.
    pub fn summary(&self) -> String {
        let mut lines: Vec<String> = self
            .sections
            .iter()
            .map(|(name, (passed, failed))| format!("{name}: {passed} passed, {failed} failed"))
            .collect();
        lines.extend(
            self.failures
                .iter()
                .take(400)
                .map(|failure| format!("FAILED {failure}")),
        );
        let passed: usize = self.sections.values().map(|(passed, _)| passed).sum();
        lines.push(format!("{passed} passed, {} failed", self.failures.len()));
        lines.join("\n")
    }

    /// The number of failed checks.
    pub fn failed(&self) -> usize {
        self.failures.len()
    }
}

fn agrees(got: &Value, expected: &Value) -> bool {
    match expected.as_str() {
        Some(ANY) => true,
        Some(TEXT) => got.as_str().is_some_and(|text| !text.is_empty()),
        Some(COUNT) => got.as_u64().is_some(),
        Some(NUMBER) => got.is_number(),
        Some(BOOL) => got.is_boolean(),
        Some(TIME) => got.as_str().is_some_and(|text| clock::parse(text).is_some()),
        _ => match (got.as_f64(), expected.as_f64()) {
            (Some(found), Some(wanted)) => (found - wanted).abs() < 1e-9,
            _ => got == expected,
        },
    }
}

/// A value in at most three hundred characters.
pub fn brief(value: &Value) -> String {
    value.to_string().chars().take(300).collect()
}
