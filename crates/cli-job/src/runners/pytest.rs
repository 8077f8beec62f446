//! pytest: a plug-in. `--deselect` would also skip every test whose id begins with the given one.

use assay_domain::test::TestName;

use crate::runners::names::Use;

/// The stored name. The plug-in derives the same names from pytest's items.
pub(crate) fn entry(test: &TestName) -> Result<String, &'static str> {
    Ok(test.name.clone())
}

/// The plug-in.
pub(crate) fn plugin(names: &[String], list_use: Use) -> String {
    let (left_out, kept) = match list_use {
        Use::Deselect => ("listed(item)", "not listed(item)"),
        Use::Select => ("not listed(item)", "listed(item)"),
    };
    text(names, "", left_out, kept)
}

/// The plug-in that runs all tests of the files of these tests. The files are known once the tests are collected: those
/// with a test of the same class or module. A name may have a part that changes from run to run.
pub(crate) fn plugin_of_files(names: &[String]) -> String {
    let files = "    places = {test.partition(\" > \")[0] for test in TESTS}\n    \
                 files = {item.nodeid.partition(\"::\")[0] for item in items if listed(item)\n             \
                 or name(item.nodeid).partition(\" > \")[0] in places}\n";
    let file = "item.nodeid.partition(\"::\")[0]";
    text(
        names,
        files,
        &format!("{file} not in files"),
        &format!("{file} in files"),
    )
}

/// `before` are lines before the selection, and the other two are conditions of an item.
fn text(names: &[String], before: &str, left_out: &str, kept: &str) -> String {
    let lines: String = names
        .iter()
        // JSON strings are valid Python strings.
        .map(|name| format!("    {},\n", serde_json::Value::from(name.as_str())))
        .collect();
    format!(
        r#"# Made by `assay quarantine`. Use: PYTHONPATH=. pytest -p assay_quarantine
import re

TESTS = {{
{lines}}}


def name(nodeid):
    """The name by which pytest's JUnit XML knows a test."""
    path, bracket, parameters = nodeid.partition("[")
    parts = path.split("::")
    parts[0] = re.sub(r"\.py$", "", parts[0].replace("/", "."))
    parts[-1] += bracket + parameters
    return ".".join(parts[:-1]) + " > " + parts[-1]


def listed(item):
    return name(item.nodeid) in TESTS or item.nodeid in TESTS


def pytest_collection_modifyitems(config, items):
{before}    left_out = [item for item in items if {left_out}]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if {kept}]
"#
    )
}
