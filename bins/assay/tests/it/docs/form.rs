//! The form of the pages: each begins with its kind, has at most 120 columns, and its links have targets.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::root;

/// The kinds of pages in docs.
const KINDS: [&str; 4] = ["Tutorial", "How-to", "Reference", "Explanation"];
/// The most columns of a line of text, and the most characters of a cell of a table.
const WIDTH: usize = 120;

/// The pages in these folders of the repository.
fn pages(folders: &[&str]) -> Vec<PathBuf> {
    let pages: Vec<_> = folders
        .iter()
        .flat_map(|folder| {
            fs::read_dir(root().join(folder))
                .unwrap()
                .map(|entry| entry.unwrap().path())
        })
        .filter(|page| page.extension().is_some_and(|extension| extension == "md"))
        .collect();
    assert!(!pages.is_empty());
    pages
}

/// The lines outside of fenced blocks, with their numbers from 1.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_fenced = false;
    let mut lines = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            lines.push((number, line));
        }
    }
    lines
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|char| char.is_alphanumeric() || [' ', '-', '_'].contains(char))
        .map(|char| if char == ' ' { '-' } else { char })
        .collect()
}

/// The anchors of a page's headings.
fn anchors(page: &Path) -> BTreeSet<String> {
    prose(&fs::read_to_string(page).unwrap())
        .into_iter()
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

#[test]
fn every_page_of_docs_begins_with_its_kind() {
    for page in pages(&["docs", "examples"]) {
        let text = fs::read_to_string(&page).unwrap();
        let first = text.split("\n\n").nth(1).unwrap();
        assert!(
            KINDS
                .iter()
                .any(|kind| first.starts_with(&format!("{kind}, for "))),
            "{} begins with:\n{first}",
            page.display()
        );
    }
}

#[test]
fn no_line_and_no_cell_of_a_page_is_too_wide() {
    for page in pages(&[".", "docs", "docs/decisions", "examples"]) {
        for (number, line) in prose(&fs::read_to_string(&page).unwrap()) {
            let parts = match line.starts_with('|') {
                true => line.split(" | ").collect(),
                false => vec![line],
            };
            let widest = parts.iter().map(|part| part.trim().chars().count()).max();
            assert!(
                widest <= Some(WIDTH),
                "{}:{number} is too wide: {line}",
                page.display()
            );
        }
    }
}

#[test]
fn every_link_within_the_repository_leads_to_a_file_and_a_heading() {
    let mut links = 0;
    for page in pages(&[".", "docs", "docs/decisions", "examples"]) {
        for (number, line) in prose(&fs::read_to_string(&page).unwrap()) {
            let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            for target in targets.filter(|target| !target.starts_with("http")) {
                let place = format!("{}:{number}: {target}", page.display());
                let (file, heading) = target.split_once('#').unwrap_or((target, ""));
                let file = match file {
                    "" => page.clone(),
                    file => page.parent().unwrap().join(file),
                };
                assert!(file.exists(), "{place}");
                if !heading.is_empty() && file.extension().is_some_and(|extension| extension == "md") {
                    assert!(anchors(&file).contains(heading), "{place}");
                }
                links += 1;
            }
        }
    }
    assert!(links > 150, "{links}");
}
