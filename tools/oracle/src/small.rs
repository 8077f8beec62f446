//! Small runs, written by hand with one letter per result.

use crate::{
    clock::MINUTE,
    dice::Dice,
    texts,
    world::{Attempt, CHECKOUT, Case, Manner, Project, ReportSource, Run, Shard, Spot, TEST_DIR},
};

/// A project without runs, for reports with flags.
pub fn project(name: &str) -> Project {
    Project {
        id: String::new(),
        name: name.to_owned(),
        stable: "main".to_owned(),
        source: ReportSource::Flags,
        chat_events: None,
        pr_comments: None,
        runs: Vec::new(),
    }
}

/// An unsharded run of these tests: `P` passed, `F` failed, `R` recovered, `S` skipped, `-` absent.
pub fn run(build: &str, branch: &str, started: i64, results: &[(&str, char)], dice: &mut Dice) -> Run {
    Run {
        id: String::new(),
        number: 0,
        build: build.to_owned(),
        branch: Some(branch.to_owned()),
        commit: Some(dice.hex(40)),
        message: None,
        author: None,
        tested_revision: None,
        pr: None,
        pr_title: None,
        ci: None,
        suite: None,
        expected: None,
        shards: vec![shard(1, started, results, dice)],
    }
}

/// A shard of these tests.
pub fn shard(index: u32, started: i64, results: &[(&str, char)], dice: &mut Dice) -> Shard {
    let mut clock = started + 100;
    let cases = results
        .iter()
        .filter(|(_, letter)| *letter != '-')
        .map(|(title, letter)| case(title, *letter, &mut clock, dice))
        .collect();
    Shard {
        id: String::new(),
        index,
        attempt: 1,
        started,
        duration: 2 * MINUTE,
        cases,
        errors: Vec::new(),
    }
}

fn case(title: &str, letter: char, clock: &mut i64, dice: &mut Dice) -> Case {
    let suite = "small.spec.ts";
    let spot = Spot {
        file: format!("{CHECKOUT}/{TEST_DIR}/{suite}"),
        line: 12,
        column: 7,
    };
    // Durations are short, because two minutes must suffice for every attempt.
    let mut attempt = |status: &'static str| {
        let (started, duration) = (*clock, dice.between(5, 200));
        *clock += duration + 3;
        let word = texts::WORDS[title.len() % 8];
        let faults = if status == "failed" {
            vec![texts::fault(0, word, &spot, dice)]
        } else {
            Vec::new()
        };
        Attempt {
            status,
            duration: Some(duration),
            started: Some(started),
            faults,
        }
    };
    let attempts = match letter {
        'P' => vec![attempt("passed")],
        'F' => vec![attempt("failed"), attempt("failed"), attempt("failed")],
        'R' => vec![attempt("failed"), attempt("passed")],
        'S' => vec![attempt("skipped")],
        other => panic!("no result is written {other:?}"),
    };
    Case {
        browser: "chromium".to_owned(),
        suite: suite.to_owned(),
        describes: vec!["small".to_owned()],
        title: title.to_owned(),
        manner: if letter == 'S' {
            Manner::Skipped
        } else {
            Manner::Plain
        },
        executions: vec![attempts],
    }
}
