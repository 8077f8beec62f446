//! Maven's Surefire: patterns of classes and methods for `-Dtest`.

use assay_domain::test::TestName;

use crate::runners::names::{Use, class_and_method, literal};

/// The classes that Surefire runs by default, with their nested classes. `-Dtest` replaces this default, so exclusions
/// alone would also run the classes of Failsafe.
const CLASSES: &str = "Test*,*Test,*Tests,*TestCase,*Test$*,*Tests$*,*TestCase$*";

/// `org.example.OrderTest > total` as `%regex[org/example/OrderTest\.class#total]`. The plain
/// `org.example.OrderTest#total` also matches `com.org.example.OrderTest`.
pub(crate) fn entry(test: &TestName) -> Result<String, &'static str> {
    let (class, method) = class_and_method(test).ok_or("its name is not of a class and a method")?;
    let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '$');
    // JUnit 5 writes a method without parameters as `total()`.
    let method = method.strip_suffix("()").unwrap_or(method);
    if class.chars().all(is_plain) && method.chars().all(is_plain) {
        let file = literal(&format!("{}.class", class.replace('.', "/")));
        Ok(format!("%regex[{file}#{}]", literal(method)))
    } else {
        Err("its name is not that of a method: it has parameters or a display name")
    }
}

/// The patterns, joined by commas.
pub(crate) fn patterns(entries: &[String], list_use: Use) -> String {
    match (entries, list_use) {
        // An empty `-Dtest` changes nothing.
        ([], Use::Deselect) => "\n".to_owned(),
        ([], Use::Select) => "!*\n".to_owned(),
        (entries, Use::Deselect) => format!("{CLASSES},!{}\n", entries.join(",!")),
        (entries, Use::Select) => format!("{}\n", entries.join(",")),
    }
}
