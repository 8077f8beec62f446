//! Jest, Vitest and Mocha: a regular expression over a test's titles. Jest, Mocha and Vitest before version 5 join the
//! titles with spaces, Vitest 5 with ` > `.

use assay_domain::test::TestName;

use crate::runners::names::{SEPARATOR, Use, literal};

/// `cart > adds up` as `cart(?: >)? adds up`. A title may itself contain ` > `.
pub(crate) fn entry(test: &TestName) -> Result<String, &'static str> {
    // Vitest's JUnit XML puts the file before the titles.
    let file = test.file_path.as_deref().unwrap_or_default();
    let titles = test
        .name
        .strip_prefix(file)
        .and_then(|rest| rest.strip_prefix(SEPARATOR))
        .unwrap_or(&test.name);
    if titles == file {
        return Err("it is a file that could not be run, and no test");
    }
    let titles: Vec<String> = titles.split(SEPARATOR).map(literal).collect();
    Ok(titles.join("(?: >)? "))
}

/// The expression. It cannot distinguish tests of the same titles in different files.
pub(crate) fn pattern(entries: &[String], list_use: Use) -> String {
    let any = entries.join("|");
    match (entries, list_use) {
        ([], Use::Deselect) => "^\n".to_owned(),
        ([], Use::Select) => "^(?!)\n".to_owned(),
        (_, Use::Deselect) => format!("^(?!(?:{any})$)\n"),
        (_, Use::Select) => format!("^(?:{any})$\n"),
    }
}
