//! Every variable, flag and path that the documents, deploy/ and action.yml name exists.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::Command,
};

use assay_testkit::program;

use super::{pages_of_docs, root};

const PROGRAMS: [&str; 4] = ["assay", "assay-admin", "assay-notify", "assay-server"];
/// Folders of the repository that documents name.
const FOLDERS: [&str; 9] = [
    ".ci/",
    "bins/",
    "crates/",
    "deploy/",
    "docs/",
    "examples/",
    "migrations/",
    "packaging/",
    "tools/",
];

/// The documents, the files for deployment and the action, each with its text.
fn files() -> Vec<(String, String)> {
    let names = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| ![".env", "tls", "notify.toml"].contains(&name.as_str()))
            .map(|name| format!("{folder}/{name}"))
            .collect::<Vec<_>>()
    };
    let decisions = names("docs/decisions");
    let tops = ["README.md", "action.yml"].map(str::to_owned);
    let files = pages_of_docs()
        .chain(decisions)
        .chain(names("deploy"))
        .chain(tops);
    files
        .map(|name| {
            let text = fs::read_to_string(root().join(&name)).unwrap();
            (name, text)
        })
        .collect()
}

/// The sources below a folder.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// The words of a text that begin with `ASSAY_`.
fn variables(text: &str) -> BTreeSet<&str> {
    let words = text.split(|char: char| !char.is_ascii_uppercase() && !char.is_ascii_digit() && char != '_');
    // A name that ends with an underscore stands for several.
    words
        .filter(|word| word.starts_with("ASSAY_") && !word.ends_with('_'))
        .collect()
}

#[test]
fn every_variable_exists() {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let crates = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let folders = PROGRAMS
        .map(|name| format!("bins/{name}/src"))
        .into_iter()
        // Settings of a library are read by the programs that use it.
        .chain(crates.map(|name| format!("crates/{name}/src")));
    let programs: String = folders
        .flat_map(|folder| sources(&folder))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    // Pages for contributors also name variables of tests and scripts.
    let others: String = ["bins", "crates", "tools"]
        .iter()
        .flat_map(|folder| sources(folder))
        .filter(|path| !path.ends_with(file!().rsplit('/').next().unwrap()))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    // Passwords of logins, and the inputs of the action, are set and read in the same files.
    let own = [
        "deploy/roles.sql",
        "action.yml",
        "packaging/npm/pack.mjs",
        ".ci/release",
    ]
    .map(|file| fs::read_to_string(root().join(file)).unwrap())
    .concat();
    let (of_programs, of_others, own) = (variables(&programs), variables(&others), variables(&own));
    let (mut checked, mut wrong) = (0, Vec::new());
    let files = files();
    for (name, text) in &files {
        for variable in variables(text) {
            let is_page = name.ends_with(".md");
            if !(of_programs.contains(variable)
                || own.contains(variable)
                || (is_page && of_others.contains(variable)))
            {
                wrong.push(format!("{name}: {variable}"));
            }
            checked += 1;
        }
    }
    assert!(wrong.is_empty(), "no program reads {wrong:#?}");
    assert!(checked > 100, "{checked}");
}

#[test]
fn every_path_of_the_repository_exists() {
    // Files that the reader makes.
    let of_reader = ["deploy/.env", "deploy/tls", "deploy/notify.toml"];
    let (mut checked, mut wrong) = (0, Vec::new());
    for (name, text) in files() {
        let is_part = |char: char| char.is_ascii_alphanumeric() || "._-/".contains(char);
        for folder in FOLDERS {
            for (at, _) in text.match_indices(folder) {
                // The name begins here, perhaps below the page's own folder.
                if text[..at]
                    .chars()
                    .next_back()
                    .is_some_and(|before| is_part(before) && before != '/')
                {
                    continue;
                }
                let before = &text[..at];
                if before.ends_with('/') && !before.ends_with("../") {
                    continue;
                }
                let end = text[at..]
                    .find(|char| !is_part(char))
                    .map_or(text.len(), |end| at + end);
                // A pattern for several files.
                if text[end..].starts_with(['{', '*', '<', '$', '…']) {
                    continue;
                }
                let path = text[at..end].trim_end_matches(['.', '/']);
                if !root().join(path).exists() && !of_reader.contains(&path) {
                    wrong.push(format!("{name}: {path}"));
                }
                checked += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 200, "{checked}");
}

/// The help of a command with all options, or none if there is no such command.
fn help(program_name: &str, words: &[&str]) -> Option<String> {
    let page = |flag: &str| {
        let mut command = Command::new(program(program_name));
        let output = command.args(words).arg(flag).output().unwrap();
        let shown = output.status.success();
        shown.then(|| String::from_utf8(output.stdout).unwrap())
    };
    page("--help-all").or_else(|| page("--help"))
}

/// The program, the command and the flags of a command line that begins with a program.
fn parts(line: &str) -> (&str, Vec<&str>, Vec<&str>) {
    let ends = [" -- ", " | ", " && ", "; ", " #", " > ", "`", ")", "\""];
    let end = ends.iter().filter_map(|end| line.find(end)).min();
    let mut words = line[..end.unwrap_or(line.len())].split_whitespace().peekable();
    let program_name = words.next().unwrap();
    let mut command = Vec::new();
    while let Some(word) = words.next_if(|word| {
        let is_lower = |char: char| char.is_ascii_lowercase() || char == '-';
        command.len() < 2 && !word.starts_with('-') && word.chars().all(is_lower)
    }) {
        command.push(word);
    }
    let flags = words.filter(|word| word.starts_with("--") && word.len() > 2);
    let flags = flags.map(|flag| {
        let end = flag.find(|char: char| !char.is_ascii_lowercase() && !char.is_ascii_digit() && char != '-');
        &flag[..end.unwrap_or(flag.len())]
    });
    (program_name, command, flags.collect())
}

#[test]
fn every_command_has_its_flags() {
    let mut helps: BTreeMap<(String, Vec<String>), Option<String>> = BTreeMap::new();
    let (mut checked, mut wrong) = (0, Vec::new());
    for (name, text) in files() {
        // A command that goes on in the next line is one line.
        let text = text.replace("\\\n", " ");
        for line in text.lines() {
            let starts = PROGRAMS.iter().flat_map(|program| {
                line.match_indices(&format!("{program} "))
                    .map(|(at, _)| at)
                    .collect::<Vec<_>>()
            });
            for at in starts {
                let before = line[..at].chars().next_back();
                if before.is_some_and(|before| !" `('\"/".contains(before)) {
                    continue;
                }
                // The argument of a flag of cargo, or the name that another program gives the tools.
                let word_before = line[..at].split_whitespace().next_back();
                if word_before.is_some_and(|word| word.starts_with('-')) || line[..at].contains("mcp add ") {
                    continue;
                }
                let (program_name, command, flags) = parts(&line[at..]);
                if flags.is_empty() {
                    continue;
                }
                let owned: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
                let shown = helps
                    .entry((program_name.to_owned(), owned))
                    .or_insert_with(|| help(program_name, &command));
                let shown = shown.clone().unwrap_or_default();
                for flag in flags {
                    if !shown.contains(flag) {
                        wrong.push(format!("{name}: {program_name} {command:?} {flag}"));
                    }
                    checked += 1;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 100, "{checked}");
}
