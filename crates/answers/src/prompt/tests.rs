use assay_domain::{
    attempt::Location,
    cause::{Action, Cause},
    id::RunId,
    owners::Ownership,
    run::RunTag,
    test::TestName,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Evidence, Figures, Signal, SignalEvidence, VerdictStatus},
};
use proptest::prelude::*;

use super::*;
use crate::failures::{CauseEvidence, CauseProbabilities, SameErrors, StableState};

fn attempt(retry: u32, status: AttemptStatus, errors: Vec<ErrorDetail>) -> StoredAttempt {
    StoredAttempt {
        execution: 0,
        retry,
        status,
        duration_ms: Some(1_200),
        browser_name: Some("webkit".to_owned()),
        skip_reason: None,
        output: Default::default(),
        errors,
        shard: None,
    }
}

fn error(message: &str, stack: &str) -> ErrorDetail {
    ErrorDetail {
        message: Some(message.to_owned()),
        stack: Some(stack.to_owned()),
        snippet: Some("> 4 | expect(total).toBe(3)".to_owned()),
        location: Some(Location {
            file: "api/cart.spec.ts".to_owned(),
            line: Some(4),
            column: Some(17),
        }),
    }
}

fn recovered(error: ErrorDetail) -> TestAttempts {
    TestAttempts {
        run: RunTag {
            id: RunId("019aa3f4-5b1c-7def-8a3b-0123456789ab".parse().unwrap()),
            run_number: 41,
            branch: Some("main".to_owned()),
        },
        started_at: NOW,
        commit_sha: Some("c0ffee".to_owned()),
        tested_revision: Some("0123abc".to_owned()),
        test: TestName {
            name: "webkit > api/cart.spec.ts > basket > pays".to_owned(),
            file_path: Some("api/cart.spec.ts".to_owned()),
        },
        verdict: Some(verdict()),
        attempts: vec![
            attempt(0, AttemptStatus::Failed, vec![error]),
            attempt(1, AttemptStatus::Passed, Vec::new()),
        ],
        omitted: 0,
    }
}

const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

/// Judged three and a half days ago.
fn verdict() -> StoredVerdict {
    let signal = |signal: Signal, detail: &str| SignalEvidence {
        signal,
        label: signal.label().to_owned(),
        value: 2.0,
        threshold: 1.0,
        detail: detail.to_owned(),
        runs: Vec::new(),
        runs_total: 2,
    };
    StoredVerdict {
        status: VerdictStatus::Flaky,
        reason: Some(Signal::RetryRate),
        explanation: "Passed on retry in 2 of 37 runs".to_owned(),
        signals: vec![Signal::RetryRate],
        labels: Vec::new(),
        failing_on: Vec::new(),
        figures: Figures::default(),
        evaluated_at: NOW.plus_ms(-84 * 3_600_000),
        last: None,
        evidence: Evidence {
            engine: "1".to_owned(),
            now: NOW,
            window_days: ENGINE_WINDOW_DAYS,
            runs_seen: 37,
            runs_skipped: 0,
            runs_dropped: 0,
            dropped: Vec::new(),
            signals: vec![
                signal(Signal::SameShaFlip, "1 revision both passed and failed"),
                signal(Signal::RetryRate, "2 of 37 runs passed on retry"),
            ],
        },
    }
}

fn of_first(attempts: &TestAttempts) -> String {
    of("shop", attempts, &attempts.attempts[0], None).unwrap()
}

fn prompt(message: &str, stack: &str) -> String {
    of_first(&recovered(error(message, stack)))
}

#[test]
fn the_prompt_of_a_failed_attempt_has_all_known_facts() {
    let prompt = prompt("expected 3, got 4", "expected 3, got 4\n    at cart.ts:12:3");
    assert_eq!(
        prompt,
        "A test failed in CI. You have its repository open; find out why it failed.\n\
         \n\
         Test: `webkit > api/cart.spec.ts > basket > pays`\n\
         File: `api/cart.spec.ts`\n\
         Project: `shop`\n\
         Branch: `main`\n\
         Commit: `c0ffee`\n\
         Tested revision: `0123abc`\n\
         Run: `number 41`\n\
         This attempt: `first try, failed`\n\
         In this run: `the test ended as passed after 2 attempt(s); passed on retry #1`\n\
         Browser: `webkit`\n\
         Stored verdict: `flaky, from 37 run(s) of 14 days`\n\
         Because: `Passed on retry in 2 of 37 runs`\n\
         Evidence: `Passed and failed on the same revision: 1 revision both passed and failed`\n\
         Evidence: `Passed on retry: 2 of 37 runs passed on retry`\n\
         Raised at: `api/cart.spec.ts:4:17`\n\
         \n\
         Error message:\n```text\nexpected 3, got 4\n```\n\
         \n\
         Code frame:\n```text\n> 4 | expect(total).toBe(3)\n```\n\
         \n\
         Stack frames:\n```text\n    at cart.ts:12:3\n```\n\
         \n"
        .to_owned()
            + TASK
    );
}

#[test]
fn another_execution_is_not_a_retry() {
    let of_execution = |execution, retry, status| StoredAttempt {
        execution,
        ..attempt(retry, status, vec![error("m", "s")])
    };
    let sentence = |executions: Vec<StoredAttempt>, place: usize| {
        let mut attempts = recovered(ErrorDetail::default());
        attempts.attempts = executions;
        let prompt = of("shop", &attempts, &attempts.attempts[place], None).unwrap();
        let line = prompt
            .lines()
            .find(|line| line.starts_with("In this run: "))
            .unwrap();
        line.trim_start_matches("In this run: ")
            .trim_matches('`')
            .to_owned()
    };
    use AttemptStatus::{Failed, Passed};
    let in_shards = vec![
        of_execution(0, 0, Passed),
        of_execution(1, 0, Passed),
        of_execution(2, 0, Failed),
    ];
    assert_eq!(
        sentence(in_shards, 2),
        "the test ended as failed after 3 executions, in several shards or repeated; this one had 1 attempt(s), \
         it was not retried"
    );
    let repeated = vec![
        of_execution(0, 0, Failed),
        of_execution(0, 1, Passed),
        of_execution(1, 0, Passed),
    ];
    assert_eq!(
        sentence(repeated, 0),
        "the test ended as passed after 2 executions, in several shards or repeated; this one had 2 attempt(s), \
         passed on retry #1"
    );
}

#[test]
fn only_a_failure_gets_a_prompt() {
    let attempts = recovered(error("m", "s"));
    for status in AttemptStatus::ALL {
        let attempt = attempt(0, *status, Vec::new());
        assert_eq!(
            of("shop", &attempts, &attempt, None).is_some(),
            status.is_failure(),
            "{status}"
        );
    }
}

#[test]
fn unknown_facts_are_named() {
    let mut attempts = recovered(ErrorDetail::default());
    attempts.commit_sha = None;
    attempts.test.file_path = None;
    let prompt = of_first(&attempts);
    assert!(prompt.contains("File: `unknown`") && prompt.contains("Commit: `unknown`"));
    assert!(prompt.contains("Error message: none was reported."));
}

#[test]
fn a_push_names_its_commit_and_no_tested_revision() {
    let mut attempts = recovered(ErrorDetail::default());
    attempts.tested_revision = None;
    let prompt = of_first(&attempts);
    assert!(
        prompt.contains("Commit: `c0ffee`\n") && !prompt.contains("Tested revision"),
        "{prompt}"
    );
}

#[test]
fn the_prompt_does_not_depend_on_the_time_of_the_judgement_and_has_no_line_without_a_verdict() {
    let mut attempts = recovered(ErrorDetail::default());
    let mut judged = |hours: i64| {
        attempts.verdict.as_mut().unwrap().evaluated_at = NOW.plus_ms(-hours * 3_600_000);
        of_first(&attempts)
    };
    assert_eq!(judged(23), judged(24 * 40));
    attempts.verdict = None;
    let prompt = of_first(&attempts);
    assert!(
        !prompt.contains("verdict") && !prompt.contains("Evidence"),
        "{prompt}"
    );
}

#[test]
fn only_a_browser_is_called_a_browser() {
    let mut attempts = recovered(ErrorDetail::default());
    let mut line = |name: &str| {
        attempts.attempts[0].browser_name = Some(name.to_owned());
        of_first(&attempts).contains(&format!("Browser: `{name}`\n"))
    };
    for browser in [
        "chromium",
        "Mobile Chrome",
        "Desktop Safari",
        "msedge",
        "Google Chrome",
        "ci-firefox",
        "WebKit",
    ] {
        assert!(line(browser), "{browser}");
    }
    for other in ["api", "setup", "chromecast-api2", "knowledge", "", "staging (eu)"] {
        assert!(!line(other), "{other}");
    }
}

#[test]
fn names_are_unchanged_except_for_line_breaks() {
    let mut attempts = recovered(ErrorDetail::default());
    let name = " cart >  two  spaces\tand\u{a0}a\u{202f}tab > \u{1b}[1mbold e\u{301} ";
    attempts.test.name = name.to_owned();
    attempts.test.file_path = Some("a  b\u{a0}\t.ts ".to_owned());
    attempts.run.branch = Some("x\ty".to_owned());
    let prompt = of("my  shop", &attempts, &attempts.attempts[0], None).unwrap();
    for line in [
        format!("Test: `{name}`\n"),
        "File: `a  b\u{a0}\t.ts `\n".to_owned(),
        "Branch: `x\ty`\n".to_owned(),
        "Project: `my  shop`\n".to_owned(),
    ] {
        assert!(prompt.contains(&line), "{line:?} in {prompt:?}");
    }
    attempts.test.name = "one\ntwo\r\nthree\u{2028}four".to_owned();
    assert!(of_first(&attempts).contains("Test: `one\\ntwo\\r\\nthree\\u{2028}four`\n"));
    // The longest stored name.
    attempts.test.name = "n".repeat(2_000);
    assert!(of_first(&attempts).contains(&format!("Test: `{}`\n", attempts.test.name)));
}

#[test]
fn long_parts_are_cut_and_marked() {
    let alone = prompt(&"é".repeat(9_000), "");
    assert!(alone.contains(&format!(
        "{} … [cut off: the first 4000 of 9000 characters]",
        "é".repeat(4_000)
    )));
    assert!(!alone.contains(&"é".repeat(4_001)));
    let alone = prompt("", &"s".repeat(9_000));
    assert!(alone.contains(&"s".repeat(6_000)) && !alone.contains(&"s".repeat(6_001)));
}

#[test]
fn long_parts_share_the_room_of_the_prompt() {
    for (message, stack) in [("é", "s"), ("`", "`~"), ("日", "😀")] {
        let mut attempts = recovered(error(&message.repeat(9_000), &stack.repeat(9_000)));
        attempts.attempts[0].errors[0].snippet = Some("x\n".repeat(9_000));
        let short = of_first(&attempts);
        attempts.test.name = message.repeat(2_000);
        attempts.test.file_path = Some(stack.repeat(2_000));
        for prompt in [short, of_first(&attempts)] {
            assert!((9_000..=12_000).contains(&prompt.len()), "{} bytes", prompt.len());
            assert!(prompt.ends_with(TASK));
            assert!(prompt.matches("[cut off: the first").count() >= 3, "{prompt}");
        }
    }
}

#[test]
fn escape_sequences_are_stripped() {
    for (raw, expected) in [
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("\u{1b}[38;5;196mred\u{1b}[K", "red"),
        ("\u{9b}1mbold", "bold"),
        ("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\", "link"),
        ("\u{1b}]0;never ended\nnext", "\nnext"),
        ("\u{1b}(Btext\u{8}", "text"),
        ("a\r\nb\rc\td\0", "a\nb\nc\td"),
        ("\u{1b}", ""),
        ("\u{1b}[", ""),
    ] {
        assert_eq!(plain(raw), expected, "{raw:?}");
    }
}

proptest! {
    /// For any text in a report, only our fences can end a quotation of the prompt.
    #[test]
    fn no_text_breaks_out_of_its_fence(parts in proptest::collection::vec("`{1,6}|\n|a|\r| |\u{1b}\\[0m|~~~", 0..60)) {
        let text = parts.concat();
        let prompt = prompt(&text, "frame");
        let before = "Error message:\n";
        if let Some(start) = prompt.find(before).map(|at| at + before.len()) {
            let mut lines = prompt[start..].lines();
            let fence = lines.next().unwrap().strip_suffix("text").unwrap();
            let closing = lines.by_ref().find(|line| line.trim_start().starts_with(fence)).unwrap();
            prop_assert_eq!(closing, fence);
            prop_assert_eq!(lines.next(), Some(""));
            prop_assert_eq!(lines.next(), Some("Code frame:"));
        }
    }

    #[test]
    fn any_text_makes_a_prompt_of_bounded_length(message in any::<String>(), stack in any::<String>()) {
        prop_assert!(prompt(&message, &stack).len() <= 12_000);
    }
}

#[test]
fn the_prompt_has_the_cause_and_the_other_tests_with_the_error() {
    let attempts = recovered(error("expected 3, got 4", "at a.ts:3:1"));
    let explained = |explanation: &str| ExplainedFailure {
        test: 0,
        test_name: attempts.test.name.clone(),
        file_path: None,
        status: AttemptStatus::Failed,
        attempts: 1,
        cause: Cause::ThisChange,
        probabilities: CauseProbabilities {
            flake: 0.03,
            environment: 0.0,
            broken_before: 0.01,
            earlier_on_branch: 0.0,
            this_change: 0.96,
        },
        mine: 0.96,
        action: Action::Block,
        in_mass_failure: false,
        explanation: explanation.to_owned(),
        evidence: CauseEvidence {
            runs: Vec::new(),
            runs_total: 0,
        },
        same_error: SameErrors {
            here: 5,
            as_flake: 4,
            on_stable: 3,
            other_branches: 2,
            other_tests: 8,
            in_this_run: 1,
        },
        verdict: None,
        breakage: None,
        stable: StableState {
            last_status: None,
            failure_streak: 0,
        },
        fingerprint: None,
        title: None,
        runs_elsewhere: 13,
        first_failed_at: None,
        ownership: Ownership::default(),
    };
    let prompt_part = explained("Passed in all 13 runs on main and failed on this revision");
    let prompt = of("shop", &attempts, &attempts.attempts[0], Some(&prompt_part)).unwrap();
    for line in [
        "Probable cause: `this_change: Passed in all 13 runs on main and failed on this revision`\n",
        "Broken by this change: `near certain (0.96)`\n",
        "Same error: `5 other failures of this test (4 as flakes, 3 on the stable branch, 2 on other branches); \
         8 other tests, 1 of them in this run`\n",
    ] {
        assert!(prompt.contains(line), "{line} in {prompt}");
    }
    let prompt_part = explained(&"branch ".repeat(2_000));
    let prompt = of("shop", &attempts, &attempts.attempts[0], Some(&prompt_part)).unwrap();
    assert!(prompt.len() <= PROMPT, "{}", prompt.len());
}
