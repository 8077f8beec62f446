//! The help of all programs.

use std::process::Command;

/// The help of a command.
fn help(words: &[&str], flag: &str) -> String {
    let (name, arguments) = words.split_first().unwrap();
    let mut command = Command::new(assay_testkit::program(name));
    let output = command
        .args(arguments)
        .arg(flag)
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?} {flag}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands below, as the help lists them.
fn commands(help: &str) -> Vec<&str> {
    let (_, after) = help.split_once("Usage:").unwrap();
    let listed = after
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once("  "));
    let names = listed.map(|(name, _)| name);
    names
        .filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()) && !name.contains(' '))
        .filter(|name| *name != "help")
        .collect()
}

/// Checks the pages of a command and of those below it. Returns their number.
fn check(words: &[&str]) -> usize {
    let mut pages = 1;
    for flag in ["-h", "--help"] {
        let page = help(words, flag);
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{words:?} {flag}: {line}");
        }
        if flag == "--help" && page.contains("<COMMAND>\n") {
            pages += commands(&page)
                .into_iter()
                .map(|name| check(&[words, &[name]].concat()))
                .sum::<usize>();
        }
    }
    pages
}

#[test]
fn every_page_of_every_program_fits_80_columns() {
    let programs = ["assay", "assay-admin", "assay-server", "assay-notify"];
    let pages: usize = programs.iter().map(|program| check(&[program])).sum();
    assert!(pages > 45, "{pages}");
}

#[test]
fn the_help_of_the_largest_commands_has_their_common_options_and_help_all_the_others() {
    let options = |page: &str| {
        let starts = page.lines().filter(|line| line.trim_start().starts_with('-'));
        starts
            .filter(|line| line.contains("--") && line.starts_with("  "))
            .count()
    };
    for (command, rare) in [
        (&["assay", "run"][..], "--run-url"),
        (&["assay", "gate"], "--run-url"),
        (&["assay", "upload"], "--run-url"),
        (&["assay-admin", "import"], "--run-url"),
        (&["assay-server"], "--ingest-spool-mib"),
    ] {
        let common = help(command, "--help");
        assert!(options(&common) <= 26, "{common}");
        assert!(
            common.contains("--help-all") && !common.contains(rare),
            "{common}"
        );
        let all = help(command, "--help-all");
        assert!(options(&all) > 30 && all.contains(rare), "{all}");
    }
}
