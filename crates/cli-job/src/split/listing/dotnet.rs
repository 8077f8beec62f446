//! .NET's lists and filters. A filter has the full names of methods. Some frameworks add the parameters to them, NUnit
//! also those of the class: `Shop.CartTests.Adds(1)`, `Shop.SizedTests(3).Fits`, `Shop.TypedTests<Int32>.Holds`.

use std::collections::{BTreeMap, BTreeSet};

use super::Line;

/// The characters of a name besides letters and digits. Others have a meaning in a filter, or for `dotnet test`.
const PLAIN: &[char] = &['_', '.', '+', '`', '-', ' ', '\'', ':', '/'];

/// What follows each unit in the list: `(` before parameters, `<` before types, or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Suffixes(BTreeMap<String, BTreeSet<Option<char>>>);

/// A name up to its first parameters or types, and what follows: `(`, `<` or nothing.
pub(super) fn without_parameters(name: &str) -> (&str, Option<char>) {
    let (unit, rest) = name.split_at(name.find(['(', '<']).unwrap_or(name.len()));
    (unit, rest.chars().next())
}

/// Whether a name has a class and a method. VSTest indents the names that it displays.
fn is_full_name(name: &str) -> bool {
    let mut parts = name.split('.');
    name.contains('.')
        && parts.all(|part| !part.is_empty() && part.trim() == part)
        && name
            .chars()
            .all(|char| char.is_alphanumeric() || PLAIN.contains(&char))
}

impl Suffixes {
    /// The unit of a line of full names: the name up to its first parameters or types. A displayed name is refused: no
    /// filter selects it, so its test would run on no machine.
    pub(super) fn line(&mut self, line: &str) -> Line {
        let (unit, suffix) = without_parameters(line);
        if !is_full_name(unit) {
            return Line::Refused(
                "is not the full name of a .NET method of letters, digits and _.+`-' :/ (before any parameters)",
            );
        }
        self.0.entry(unit.to_owned()).or_default().insert(suffix);
        Line::Unit(unit.to_owned())
    }

    /// A filter that selects these units with all their parameters.
    pub(super) fn filter(&self, units: &[&str]) -> String {
        let suffixes = |unit| self.0.get(unit).into_iter().flatten();
        let terms: BTreeSet<String> = units
            .iter()
            .flat_map(|unit| suffixes(*unit).flat_map(|suffix| terms(unit, *suffix)))
            .collect();
        let terms: Vec<String> = terms.into_iter().collect();
        format!("{}\n", terms.join("|"))
    }
}

/// The terms of a unit: its name, and the beginning of its names with parameters.
fn terms(unit: &str, suffix: Option<char>) -> impl Iterator<Item = String> {
    let prefix = suffix.map(|suffix| {
        let escape = if suffix == '(' { "\\" } else { "" };
        format!("FullyQualifiedName~{unit}{escape}{suffix}")
    });
    std::iter::once(format!("FullyQualifiedName={unit}")).chain(prefix)
}
