//! Replaces the parts of names that change from run to run, in the report of a file.

use assay_domain::stable_name::stable_name;

use crate::{collect::Collector, memory, report::Report};

/// Gives each test its stable name and keeps the written one for display. Tests whose names differ only in the replaced
/// parts become executions of one test, and a warning names them.
pub(crate) fn apply(report: &mut Report, file: &str) {
    let mut is_changed = false;
    for test in &mut report.tests {
        if let std::borrow::Cow::Owned(stable) = stable_name(&test.test.name) {
            memory::keep_name(&stable);
            test.shown_as.name = Some(std::mem::replace(&mut test.test.name, stable));
            is_changed = true;
        }
    }
    for group in &mut report.passed_groups {
        if let std::borrow::Cow::Owned(stable) = stable_name(&group.name) {
            group.name = stable;
        }
    }
    if is_changed {
        memory::without_charge(|| join_equal(report, file));
    }
}

/// Joins tests of one name.
fn join_equal(report: &mut Report, file: &str) {
    let before = report.tests.len();
    let mut unique = Collector::for_results(before);
    let mut joined: Vec<String> = Vec::new();
    for test in std::mem::take(&mut report.tests) {
        if joined.len() < MOST_NAMED
            && unique.index_of(&test.test).is_some()
            && !joined.contains(&test.test.name)
        {
            joined.push(test.test.name.clone());
        }
        unique.add_all(test);
    }
    report.tests = unique.finish();
    let lost = before - report.tests.len();
    if lost > 0 {
        report.warnings.push(format!(
            "{file}: names that differ only in a part that changes from run to run are executions of one test, here \
             {lost} more than tests: {}",
            joined.join(", ")
        ));
    }
}

/// The warning about all names of an import that were replaced.
pub(crate) fn warning(report: &Report) -> Option<String> {
    let mut replaced = report.tests.iter().filter(|test| test.shown_as.name.is_some());
    let example = &replaced.next()?.test.name;
    let count = match 1 + replaced.count() {
        1 => "1 name has".to_owned(),
        count => format!("{count} names have"),
    };
    Some(format!(
        "{count} a part that changes from run to run, such as an address or a time. It is not stored: {example:?}. `assay-admin project set --stable-names off` stores such parts."
    ))
}

/// Most tests that a warning names.
const MOST_NAMED: usize = 5;
