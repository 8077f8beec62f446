use assay_domain::{
    attempt::{AttemptStatus, ErrorDetail},
    id::ProjectId,
    owners::Ownership,
    page::Page,
    project::ProjectTag,
    run::{MissingNotJudged, RunStatus, RunTag, ShardCount},
    test::TestName,
    test_attempts::StoredAttempt,
};

use super::*;
use crate::{
    changes::{ChangedTests, RunChanges, SlowerTest, SlowerTests},
    commit::{CommitResults, CommitRun, CommitTag},
    failures::{ByCause, CauseEvidence, CauseProbabilities, ExplainedFailure, Gate, SameErrors, StableState},
};

const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);
const PROJECT: &str = "019aa3f4-5b1c-7def-8a3b-2f4e5d6c7b8a";
const RUN: &str = "019aa3f4-5b1c-7def-8a3b-000000000812";

fn run_id() -> RunId {
    RunId(RUN.parse().unwrap())
}

fn project() -> ProjectId {
    ProjectId(PROJECT.parse().unwrap())
}

/// A failure whose texts all come from a report.
fn failure(name: &str, mine: f64, action: Action) -> CommitFailure {
    CommitFailure {
        run_id: run_id(),
        run_number: 812,
        suite: Some(name.to_owned()),
        failure: ExplainedFailure {
            test: 0,
            test_name: name.to_owned(),
            file_path: Some(name.to_owned()),
            status: AttemptStatus::Failed,
            attempts: 1,
            cause: Cause::ThisChange,
            probabilities: CauseProbabilities {
                flake: 1.0 - mine,
                environment: 0.0,
                broken_before: 0.0,
                earlier_on_branch: 0.0,
                this_change: mine,
            },
            mine,
            action,
            in_mass_failure: false,
            explanation: format!("Passed in all 41 runs on {name} and failed on this revision"),
            evidence: CauseEvidence {
                runs: Vec::new(),
                runs_total: 0,
            },
            same_error: SameErrors {
                here: 0,
                as_flake: 0,
                on_stable: 0,
                other_branches: 0,
                other_tests: 0,
                in_this_run: 0,
            },
            verdict: None,
            stable: StableState {
                last_status: None,
                failure_streak: 0,
            },
            breakage: None,
            fingerprint: None,
            title: None,
            runs_elsewhere: 41,
            first_failed_at: None,
            ownership: Ownership {
                owners: vec![name.to_owned()],
                owners_ambiguous: false,
            },
        },
    }
}

fn run(suite: &str, status: RunStatus, incomplete: Option<&str>) -> CommitRun {
    CommitRun {
        id: run_id(),
        run_number: 812,
        suite: Some(suite.to_owned()),
        status,
        incomplete: incomplete.map(str::to_owned),
        trusted: true,
        started_at: NOW,
        duration_ms: None,
        counts: Counts::default(),
        shards: Some(ShardCount {
            received: 2,
            expected: Some(3),
        }),
        shard_durations: None,
        run_url: None,
        gate: gate(0.0, Action::Pass, 0),
    }
}

fn gate(mine: f64, action: Action, this_change: u32) -> Gate {
    Gate {
        action,
        mine,
        by_cause: ByCause {
            this_change,
            ..ByCause::default()
        },
    }
}

fn results(name: &str, failures: Vec<CommitFailure>, gate: Gate, runs: Vec<CommitRun>) -> CommitResults {
    let failed = u32::try_from(failures.len()).unwrap();
    let is_failed = failed > 0 || runs.iter().any(|run| run.status == RunStatus::Failed);
    CommitResults {
        project: ProjectTag {
            id: project(),
            name: name.to_owned(),
        },
        commit: CommitTag {
            revision: Some(format!("de104964{name}")),
            commit_sha: None,
            branch: Some(name.to_owned()),
            pull_request_number: Some(7),
            subject: Some(name.to_owned()),
            author_name: Some(name.to_owned()),
        },
        status: match (is_failed, runs.iter().any(|run| run.incomplete.is_some())) {
            (true, _) => RunStatus::Failed,
            (false, true) => RunStatus::Incomplete,
            (false, false) => RunStatus::Passed,
        },
        counts: Counts {
            total: 100 + failed,
            passed: 100,
            failed,
            skipped: 0,
            recovered: 2,
        },
        gate,
        on_stable: false,
        stable_branch: "main".to_owned(),
        absent_suites: Vec::new(),
        runs,
        page: Page::of_size(1, WITH_ERRORS, u64::from(failed)),
        failures,
    }
}

fn attempts(name: &str) -> TestAttempts {
    TestAttempts {
        run: RunTag {
            id: run_id(),
            run_number: 812,
            branch: Some(name.to_owned()),
        },
        started_at: NOW,
        commit_sha: Some(name.to_owned()),
        tested_revision: None,
        test: TestName {
            name: name.to_owned(),
            file_path: Some(name.to_owned()),
        },
        verdict: None,
        attempts: vec![StoredAttempt {
            execution: 0,
            retry: 0,
            status: AttemptStatus::Failed,
            duration_ms: None,
            browser_name: None,
            errors: vec![ErrorDetail {
                message: Some(name.to_owned()),
                stack: Some(name.to_owned()),
                snippet: None,
                location: None,
            }],
            skip_reason: None,
            output: Default::default(),
            shard: None,
        }],
        omitted: 0,
    }
}

/// One missing test and one skipped test of this name; none for an empty name.
fn changes_of(name: &str) -> Vec<RunChanges> {
    let tests = |is_listed: bool| ChangedTests {
        total: u64::from(is_listed),
        tests: vec![
            TestName {
                name: name.to_owned(),
                file_path: None
            };
            usize::from(is_listed)
        ],
    };
    vec![RunChanges {
        project: ProjectTag {
            id: project(),
            name: name.to_owned(),
        },
        run: RunTag {
            id: run_id(),
            run_number: 812,
            branch: None,
        },
        base: None,
        missing_not_judged: (name == "selection").then_some(MissingNotJudged::Partial),
        broken: tests(false),
        repaired: tests(false),
        newly_skipped: tests(!name.is_empty()),
        no_longer_reported: tests(!name.is_empty()),
        renamed: crate::changes::RenamedTests {
            total: u64::from(!name.is_empty()),
            tests: (!name.is_empty())
                .then(|| crate::changes::RenamedTest {
                    from: TestName {
                        name: name.to_owned(),
                        file_path: None,
                    },
                    to: TestName {
                        name: name.to_owned(),
                        file_path: None,
                    },
                    guessed: true,
                })
                .into_iter()
                .collect(),
        },
        added: tests(false),
        slower: SlowerTests {
            total: u64::from(!name.is_empty()),
            tests: (!name.is_empty())
                .then(|| SlowerTest {
                    test: TestName {
                        name: name.to_owned(),
                        file_path: None,
                    },
                    factor: 1.6,
                    probability: 0.97,
                    usual_ms: 12_000,
                    duration_ms: 19_200,
                })
                .into_iter()
                .collect(),
        },
    }]
}

/// The comment on these results, with the error of each failure.
fn compose(results: &CommitResults, error: &FailedError) -> Comment {
    let pages = PublicPages::at("https://assay.example.org");
    let described: Vec<Described<'_>> = results
        .failures
        .iter()
        .map(|failure| Described {
            failure,
            error: error.clone(),
            attempts: Some(attempts(&failure.failure.test_name)),
        })
        .collect();
    let text = Text {
        ejection: None,
        results,
        changes: &changes_of(&results.project.name),
        failures: &described,
        pages: Some(&pages),
        project: project(),
        project_name: &results.project.name,
    };
    text.comment(true, NOW)
}

fn of_name(name: &str) -> Comment {
    let failures = vec![
        failure(name, 0.98, Action::Block),
        failure(name, 0.02, Action::Pass),
    ];
    let runs = vec![
        run(name, RunStatus::Failed, Some(name)),
        run("e2e", RunStatus::Passed, None),
    ];
    let error = FailedError {
        line: crate::failed_error::first_line(name),
        file: Some(name.to_owned()),
        line_number: Some(4),
    };
    compose(
        &results(name, failures, gate(0.98, Action::Block, 2), runs),
        &error,
    )
}

/// The Markdown with each code span as `C`, each address of the server as `U`, and without fenced text. It reads code
/// spans and fences as CommonMark does.
fn skeleton(markdown: &str) -> String {
    let mut lines = Vec::new();
    let mut fence: Option<String> = None;
    for line in markdown.lines() {
        let ticks: String = line.chars().take_while(|char| *char == '`').collect();
        match &fence {
            Some(open) if line.trim_end() == *open => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 && !line[ticks.len()..].contains('`') => {
                fence = Some(ticks);
                lines.push("F".to_owned());
            }
            None => lines.push(without_spans(line)),
        }
    }
    assert_eq!(fence, None, "a fence stays open: {markdown}");
    lines.join("\n")
}

fn without_spans(line: &str) -> String {
    let (mut rest, mut out) = (line, String::new());
    while let Some(at) = rest.find('`') {
        let (before, from) = rest.split_at(at);
        out += before;
        let length = from.chars().take_while(|char| *char == '`').count();
        let (fence, after) = from.split_at(length);
        let mut end = None;
        let mut search = 0;
        while let Some(next) = after[search..].find('`') {
            let start = search + next;
            let run = after[start..].chars().take_while(|char| *char == '`').count();
            if run == length {
                end = Some(start);
                break;
            }
            search = start + run;
        }
        match end {
            Some(end) => {
                out.push('C');
                rest = &after[end + length..];
            }
            None => {
                out += fence;
                rest = after;
            }
        }
    }
    out += rest;
    while let Some(at) = out.find("https://assay.example.org/") {
        let end = out[at..].find(')').map_or(out.len(), |end| at + end);
        out.replace_range(at..end, "U");
    }
    out
}

/// 200 names that would be markup, mentions, commands or hidden text.
fn hostile_names() -> Vec<String> {
    let cores = [
        "@team",
        "#12",
        "GH-12",
        "!7",
        "<!-- x -->",
        "-->",
        "<img src=x onerror=alert(1)>",
        "<script>",
        "</details>",
        "![x](http://evil.example/x.png)",
        "[x](http://evil.example)",
        "](http://evil.example",
        "http://evil.example",
        "www.evil.example",
        "**bold**",
        "__x__",
        "~~x~~",
        "::error file=a::b",
        "##vso[task.complete result=Failed]",
        "##[error]x",
        "##teamcity[x]",
        "\u{1b}]8;;http://evil\u{7}x",
        "\u{202e}gnp",
        "\u{200b}\u{2066}x",
        "| a | b |",
        "$x^2$",
        ":tada:",
        "&lt;b&gt;",
        "\\`",
        "fixes #1",
    ];
    let wraps: [(&str, &str); 7] = [
        ("", ""),
        ("`", "`"),
        ("``", "` "),
        ("\n", "\n- "),
        ("```\n", "\n```"),
        ("> ", "`````"),
        (" ", "\n\n# "),
    ];
    let each = wraps
        .iter()
        .flat_map(|(before, after)| cores.map(|core| format!("{before}{core}{after}")));
    each.take(200).collect()
}

#[test]
fn two_hundred_hostile_names_leave_no_markup() {
    let harmless = skeleton(&of_name("pays").markdown);
    assert!(
        harmless.contains("- [C](U) in suite C\n  C\n  C at C\n"),
        "{harmless}"
    );
    let names = hostile_names();
    assert_eq!(names.len(), 200);
    for name in &names {
        let comment = of_name(name);
        // The revision in the hidden line and the heading keeps only hexadecimal digits.
        let digits: String = name.chars().filter(char::is_ascii_hexdigit).collect();
        let expected = harmless.replace("revision=de104964ae", &format!("revision=de104964{digits}"));
        let expected = expected.replace("revision=de104964a ", &format!("revision=de104964{digits} "));
        let found = skeleton(&comment.markdown);
        let without_first = |text: &str| text.split_once('\n').unwrap().1.to_owned();
        assert_eq!(without_first(&found), without_first(&expected), "{name:?}");
        let first = comment.markdown.lines().next().unwrap();
        assert_eq!(
            first,
            format!(
                "<!-- assay project={PROJECT} revision=de104964{digits} state=1795200363120 action={} -->",
                comment.action.as_str()
            )
        );
        let outside = comment.markdown.split("<details>").next().unwrap();
        for char in ['@', '#'] {
            let texts = outside.split_once('\n').unwrap().1.replacen("### ", "", 1);
            for (at, _) in texts.match_indices(char) {
                assert_eq!(
                    texts[at + 1..].chars().next(),
                    Some('\u{200b}'),
                    "{name:?}: {texts}"
                );
            }
        }
        let hidden = ['\u{202e}', '\u{2066}', '\u{1b}'];
        assert!(!comment.markdown.contains(hidden), "{name:?}");
    }
}

#[test]
fn a_test_that_failed_in_two_suites_is_one_test() {
    let in_suite = |suite: &str, mine, action| CommitFailure {
        suite: Some(suite.to_owned()),
        ..failure("pays", mine, action)
    };
    let failures = vec![
        in_suite("linux", 0.45, Action::Rerun),
        in_suite("windows", 0.01, Action::Pass),
    ];
    let failed = |suite| CommitRun {
        counts: Counts {
            failed: 1,
            ..Counts::default()
        },
        ..run(suite, RunStatus::Failed, None)
    };
    let runs = vec![failed("linux"), failed("windows")];
    let comment = compose(
        &results("", failures, gate(0.45, Action::Rerun, 1), runs),
        &FailedError::default(),
    );
    assert_eq!(
        comment.headline,
        "1 test failed (on 2 variants) on de104964; this change may have broken some (45 %): run it again"
    );
    assert!(
        comment.markdown.contains(" in suite `linux`\n"),
        "{}",
        comment.markdown
    );
    assert!(
        comment
            .markdown
            .contains("\nFailed, most probably not by this change: `pays` in suite `windows`.\n"),
        "{}",
        comment.markdown
    );
}

#[test]
fn a_comment_names_the_error_its_place_and_its_page() {
    let error = FailedError {
        line: Some("expected 3, got 4".to_owned()),
        file: Some("cart.spec.ts".to_owned()),
        line_number: Some(4),
    };
    let failures = vec![
        failure("pays", 0.45, Action::Rerun),
        failure("mails", 0.01, Action::Pass),
    ];
    let runs = vec![run("unit", RunStatus::Failed, None)];
    let comment = compose(&results("", failures, gate(0.45, Action::Rerun, 2), runs), &error);
    assert_eq!(
        comment.headline,
        "2 tests failed on de104964; this change may have broken some (45 %): run it again"
    );
    let entry = format!(
        "\n- [`pays`](https://assay.example.org/p/{PROJECT}/runs/{RUN}/test?name=pays&file=pays)\n  \
         `Passed in all 41 runs on pays and failed on this revision`\n  `expected 3, got 4` at `cart.spec.ts:4`\n"
    );
    assert!(comment.markdown.contains(&entry), "{}", comment.markdown);
    assert!(!comment.markdown.contains("[`mails`]"), "{}", comment.markdown);
    assert!(
        comment
            .markdown
            .contains("\nBy cause: 2 broken by this change, 2 passed on retry.\n")
    );
    assert!(
        comment
            .markdown
            .contains(&format!("(https://assay.example.org/p/{PROJECT}/pull/7)"))
    );
    let lines: Vec<_> = comment
        .annotations
        .iter()
        .map(|of| (of.title.as_str(), of.file.as_deref(), of.line, of.is_mine))
        .collect();
    assert_eq!(
        lines,
        [
            ("pays", Some("cart.spec.ts"), Some(4), true),
            ("mails", Some("cart.spec.ts"), Some(4), false)
        ]
    );
}

#[test]
fn a_clean_commit_is_one_green_line_and_missing_results_are_not_clean() {
    let of = |incomplete| {
        let runs = vec![run("unit", RunStatus::Passed, incomplete)];
        compose(
            &results("", Vec::new(), gate(0.0, Action::Pass, 0), runs),
            &FailedError::default(),
        )
    };
    let clean = of(None);
    assert!(clean.clean);
    assert!(
        clean
            .markdown
            .contains("\n### ✅ Assay: 100 tests passed on de104964\n"),
        "{}",
        clean.markdown
    );
    let missing = of(Some("shard 3 of 3 did not report"));
    assert!(!missing.clean);
    assert!(
        missing
            .markdown
            .contains("Run 812 of suite `unit` may lack results: `shard 3 of 3 did not report`.")
    );
    assert!(!missing.markdown.contains('✅'), "{}", missing.markdown);
}

#[test]
fn a_commit_without_a_suite_of_the_stable_branch_has_passed_only_so_far() {
    let runs = vec![run("unit", RunStatus::Passed, None)];
    let mut results = results("", Vec::new(), gate(0.0, Action::Pass, 0), runs);
    results.absent_suites = vec!["e2e".to_owned(), "lint".to_owned()];
    let comment = compose(&results, &FailedError::default());
    assert_eq!(comment.headline, "100 tests passed on de104964 so far");
    for part in [
        "\n### Assay: 100 tests passed on de104964 so far\n",
        "No run so far, which the newest commit of `main` has: `e2e`, `lint`.",
    ] {
        assert!(comment.markdown.contains(part), "{part}: {}", comment.markdown);
    }
}

#[test]
fn skipped_tests_have_not_passed_and_a_commit_without_a_passed_test_is_not_clean() {
    let of = |passed, skipped| {
        let runs = vec![run("unit", RunStatus::Passed, None)];
        let mut results = results("", Vec::new(), gate(0.0, Action::Pass, 0), runs);
        results.counts = Counts {
            total: passed + skipped,
            passed,
            skipped,
            ..Counts::default()
        };
        let comment = compose(&results, &FailedError::default());
        (comment.headline, comment.clean)
    };
    for (counts, headline, clean) in [
        ((3, 0), "3 tests passed on de104964", true),
        ((1, 9), "1 test passed on de104964; 9 tests were skipped", true),
        (
            (0, 10),
            "No test passed on de104964; 10 tests were skipped",
            false,
        ),
        ((0, 0), "No test passed on de104964", false),
    ] {
        assert_eq!(of(counts.0, counts.1), (headline.to_owned(), clean));
    }
}

#[test]
fn a_comment_of_ten_long_failures_fits() {
    let long = "`@#é".repeat(5_000);
    let failures = vec![failure(&long, 0.9, Action::Block); 10];
    let runs = vec![run(&long, RunStatus::Failed, Some(&long)); 50];
    let error = FailedError {
        line: Some(long.clone()),
        file: Some(long.clone()),
        line_number: Some(u32::MAX),
    };
    let comment = compose(
        &results(&long, failures, gate(1.0, Action::Block, 10), runs),
        &error,
    );
    let length = comment.markdown.chars().count();
    assert!(length <= 65_536, "{length}");
    skeleton(&comment.markdown);
}

#[test]
fn a_run_with_fewer_files_says_that_missing_tests_were_not_looked_for() {
    let said = |name: &str| {
        let runs = vec![run("unit", RunStatus::Passed, None)];
        let results = results(name, Vec::new(), gate(0.0, Action::Pass, 0), runs);
        let markdown = compose(&results, &FailedError::default()).markdown;
        markdown.contains(
            "Run 812 lacks more than a tenth of the files of the stable branch, so tests that are no longer",
        )
    };
    assert!(said("selection") && !said("pays"));
}

#[test]
fn a_green_commit_that_lost_a_test_is_not_clean() {
    let runs = vec![run("unit", RunStatus::Passed, None)];
    let comment = compose(
        &results("pays", Vec::new(), gate(0.0, Action::Pass, 0), runs),
        &FailedError::default(),
    );
    assert!(!comment.clean);
    for line in [
        "Against the stable branch: 1 newly skipped, 1 no longer reported, 1 renamed, 1 slower.",
        "1 slower: `pays` 1.6 times.",
        "1 newly skipped: `pays`.",
        "1 no longer reported: `pays`.",
    ] {
        assert!(comment.markdown.contains(line), "{line}: {}", comment.markdown);
    }
}
