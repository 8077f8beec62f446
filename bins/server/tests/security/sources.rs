//! Rules for the sources: SQL is never built from text, and `unsafe` is forbidden everywhere.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The only files that may format statements. They insert numbers of the program, an id, and names and definitions that
/// Postgres itself quoted. These statements take no parameters.
const FORMATTED: [(&str, &str); 9] = [
    // One of two names of columns, both literals.
    (
        "crates/repository/src/record/intern.rs",
        "UPDATE test SET {column} = shown.text",
    ),
    // A literal of a macro.
    ("crates/repository/src/admin/tables.rs", "$condition"),
    (
        "crates/repository/src/admin/diagnosis.rs",
        "SET statement_timeout = {CHECK_TIMEOUT_MS}",
    ),
    (
        "crates/repository/src/admin/distribute.rs",
        "ALTER TABLE {of_table} DROP CONSTRAINT {name}",
    ),
    (
        "crates/repository/src/admin/distribute.rs",
        "ALTER TABLE {of_table} ADD CONSTRAINT {name} {definition}",
    ),
    (
        "crates/repository/src/admin/transfer/copy.rs",
        "SET LOCAL assay.owner = '{owner}'",
    ),
    (
        "crates/repository/src/record/turn.rs",
        "SET LOCAL lock_timeout = {ms}",
    ),
    (
        "crates/repository/src/admin/migrate.rs",
        "pg_advisory_lock({LOCK})",
    ),
    ("crates/repository/src/db/pool.rs", "SET statement_timeout = {ms}"),
];
/// Functions that accept a statement as text.
const SQL_FUNCTIONS: [&str; 4] = ["sql_query(", "batch_execute(", ".sql(", "sql::<"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The members' folders.
fn members() -> Vec<PathBuf> {
    let folders = ["crates", "bins"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let members: Vec<_> = folders
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .collect();
    assert!(members.len() >= 13, "{members:?}");
    members
}

#[test]
fn unsafe_code_is_forbidden_in_every_member() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("[workspace.lints.rust]\nunsafe_code = \"forbid\""));
    for member in members() {
        let manifest = fs::read_to_string(member.join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} sets lints of its own",
            member.display()
        );
    }
}

#[test]
fn no_statement_is_built_from_text() {
    let mut looked_at = 0;
    for member in members() {
        // For development only: names of databases, and tests' own statements.
        if ["testkit", "bench"].iter().any(|name| member.ends_with(name)) {
            continue;
        }
        for file in sources(&member.join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            // The tests inside a file are not part of a program.
            let text = text.split("#[cfg(test)]").next().unwrap();
            let name = file.strip_prefix(root()).unwrap().display().to_string();
            for call in SQL_FUNCTIONS {
                for (place, _) in text.match_indices(call) {
                    // `into_sql::<…>()` turns a bound value into an expression.
                    if text[..place].ends_with('_') && call.starts_with("sql") {
                        continue;
                    }
                    let argument = argument(&text[place + call.len()..], call);
                    looked_at += 1;
                    let allowed = is_fixed(argument, text)
                        || FORMATTED.iter().any(|(of, how)| {
                            name == *of && argument.get(..400).unwrap_or(argument).contains(how)
                        });
                    assert!(
                        allowed,
                        "{name}: {call}{}",
                        argument.lines().next().unwrap_or_default()
                    );
                }
            }
        }
    }
    assert!(looked_at >= 10, "only {looked_at} statements were found");
}

/// The text after the opening parenthesis.
fn argument<'a>(after: &'a str, call: &str) -> &'a str {
    let after = if call.ends_with('<') {
        after.split_once(">(").map_or(after, |(_, rest)| rest)
    } else {
        after
    };
    after.trim_start()
}

/// A literal, or a name that is only bound to literals.
fn is_fixed(argument: &str, file: &str) -> bool {
    let name: String = argument
        .chars()
        .take_while(|char| char.is_ascii_alphanumeric() || *char == '_')
        .collect();
    let literals = ["\"", "r\"", "r#\"", "include_str!(", "concat!("];
    if name.is_empty() || literals.iter().any(|start| argument.starts_with(start)) {
        return literals.iter().any(|start| argument.starts_with(start));
    }
    // Text of a request is never static.
    [
        format!("let {name} = \""),
        format!("{name}: &'static str"),
        format!("const {name}: &str"),
    ]
    .iter()
    .any(|bound| file.contains(bound.as_str()))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                sources(&path)
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                vec![path]
            } else {
                Vec::new()
            }
        })
        .collect()
}
