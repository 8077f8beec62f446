//! .NET's lists and filters. A filter has the full names of methods. Some frameworks add the parameters to them, NUnit
//! also those of the class: `Shop.CartTests.Adds(1)`, `Shop.SizedTests(3).Fits`, `Shop.TypedTests<Int32>.Holds`.

use std::collections::{BTreeMap, BTreeSet};

use super::ListingError;

/// VSTest's line before the tests that it indents.
const HEADING: &str = "The following Tests are available:";
const INDENT: &str = "    ";
/// An error has at most this many characters of a name.
const LONGEST: usize = 200;

/// A unit and what follows it in the list: `(`, `<` or nothing.
type Name<'a> = (&'a str, Option<char>);

/// What follows each unit in the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Suffixes(BTreeMap<String, BTreeSet<Option<char>>>);

/// The units of a list, each name up to its first parameters. Reads what VSTest prints, and the file that it writes.
pub(super) fn units(text: &str) -> Result<(Vec<String>, Suffixes), ListingError> {
    let mut suffixes = Suffixes::default();
    let mut units = Vec::new();
    for line in names(text) {
        let (unit, suffix) =
            unit(line).ok_or_else(|| ListingError::NotFull(line.chars().take(LONGEST).collect()))?;
        suffixes.0.entry(unit.to_owned()).or_default().insert(suffix);
        units.push(unit.to_owned());
    }
    Ok((units, suffixes))
}

/// The lines that name tests: the indented ones below the heading, or all of a file without indented ones.
fn names(text: &str) -> Vec<&str> {
    let text = text.trim_start_matches('\u{feff}');
    let below = text.split_once(HEADING).map_or(text, |(_, below)| below);
    let indented: Vec<&str> = below
        .lines()
        .filter_map(|line| line.strip_prefix(INDENT))
        .collect();
    let lines = if indented.is_empty() {
        below.lines().collect()
    } else {
        indented
    };
    let lines = lines.into_iter().map(str::trim);
    lines.filter(|line| !line.is_empty()).collect()
}

fn unit(name: &str) -> Option<Name<'_>> {
    let (unit, suffix) = match name.find(['(', '<']) {
        Some(end) => (name.get(..end)?, name.get(end..)?.chars().next()),
        None => (name, None),
    };
    let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '+' | '`');
    (unit.contains('.') && unit.chars().all(is_plain)).then_some((unit, suffix))
}

impl Suffixes {
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

/// The terms of a unit. Some frameworks display parameters that their full names lack.
fn terms(unit: &str, suffix: Option<char>) -> impl Iterator<Item = String> {
    let exact = (suffix != Some('<')).then(|| format!("FullyQualifiedName={unit}"));
    let prefix = suffix.map(|suffix| {
        let escape = if suffix == '(' { "\\" } else { "" };
        format!("FullyQualifiedName~{unit}{escape}{suffix}")
    });
    exact.into_iter().chain(prefix)
}
