//! Go: one pattern per package, since tests of two packages may share a name.

use std::collections::BTreeMap;

use assay_domain::test::TestName;

use crate::runners::names::{SEPARATOR, class_and_method, literal};

/// `example.com/shop > TestTotal/empty` as the package, a tab and `^TestTotal$/^empty$`.
pub(crate) fn entry(test: &TestName) -> Result<String, &'static str> {
    let (package, name) = class_and_method(test).ok_or("its name is not of a package and a test")?;
    // Go itself replaces white space in names, and splits GOFLAGS at it.
    if test.name.replacen(SEPARATOR, "", 1).contains(char::is_whitespace) {
        return Err("its name or its package has white space, which Go does not write");
    }
    if package.starts_with('-') {
        return Err("the name of its package begins with a dash");
    }
    let levels: Vec<String> = name
        .split('/')
        .map(|level| format!("^{}$", literal(level)))
        .collect();
    Ok(format!("{package}\t{}", levels.join("/")))
}

/// One line per package.
pub(crate) fn patterns(entries: &[String]) -> String {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (package, pattern) in entries.iter().filter_map(|entry| entry.split_once('\t')) {
        packages.entry(package).or_default().push(pattern);
    }
    packages
        .into_iter()
        .map(|(package, patterns)| format!("{package}\t{}\n", patterns.join("|")))
        .collect()
}
