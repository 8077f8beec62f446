use assay_domain::{attempt::Location, id::RunId, run::RunTag, test::TestName, verdict::VerdictStatus};
use proptest::prelude::*;

use super::*;

fn attempt(retry: u32, status: AttemptStatus, errors: Vec<ErrorDetail>) -> StoredAttempt {
    StoredAttempt {
        retry,
        status,
        duration_ms: Some(1_200),
        browser_name: Some("webkit".to_owned()),
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
        tested_revision: Some("0123abc".to_owned()),
        test: TestName {
            name: "webkit > api/cart.spec.ts > basket > pays".to_owned(),
            file_path: Some("api/cart.spec.ts".to_owned()),
        },
        verdict: Some(VerdictStatus::Flaky),
        attempts: vec![
            attempt(0, AttemptStatus::Failed, vec![error]),
            attempt(1, AttemptStatus::Passed, Vec::new()),
        ],
        omitted: 0,
    }
}

fn prompt(message: &str, stack: &str) -> String {
    let attempts = recovered(error(message, stack));
    of("shop", &attempts, &attempts.attempts[0]).unwrap()
}

#[test]
fn a_failed_attempt_gets_everything_that_is_known() {
    let prompt = prompt("expected 3, got 4", "expected 3, got 4\n    at cart.ts:12:3");
    assert_eq!(
        prompt,
        "A test failed in CI. You have its repository open; find out why it failed.\n\
         \n\
         Test: `webkit > api/cart.spec.ts > basket > pays`\n\
         File: `api/cart.spec.ts`\n\
         Project: `shop`\n\
         Branch: `main`\n\
         Tested revision: `0123abc`\n\
         Run: `number 41`\n\
         This attempt: `first try, failed`\n\
         In this run: `the test ended as passed after 2 attempt(s); passed on retry #1`\n\
         Browser: `webkit`\n\
         Verdict over the last two weeks: `flaky`\n\
         Raised at: `api/cart.spec.ts:4:17`\n\
         \n\
         Error message:\n```text\nexpected 3, got 4\n```\n\
         \n\
         Code frame:\n```text\n> 4 | expect(total).toBe(3)\n```\n\
         \n\
         Stack frames:\n```text\n    at cart.ts:12:3\n```\n\
         \n"
        .to_owned()
            + WANTED
    );
}

#[test]
fn only_a_failure_gets_a_prompt() {
    let attempts = recovered(error("m", "s"));
    for status in AttemptStatus::ALL {
        let attempt = attempt(0, *status, Vec::new());
        assert_eq!(
            of("shop", &attempts, &attempt).is_some(),
            status.is_failure(),
            "{status}"
        );
    }
}

#[test]
fn what_is_not_known_is_said() {
    let mut attempts = recovered(ErrorDetail::default());
    attempts.tested_revision = None;
    attempts.test.file_path = None;
    let prompt = of("shop", &attempts, &attempts.attempts[0]).unwrap();
    assert!(prompt.contains("File: `unknown`") && prompt.contains("Tested revision: `unknown`"));
    assert!(prompt.contains("Error message: none was reported."));
}

#[test]
fn long_parts_are_cut_off_and_say_so() {
    let prompt = prompt(&"é".repeat(9_000), &"s".repeat(9_000));
    assert!(prompt.contains(&format!(
        "{}\n[cut off: the first 4000 of 9000 characters]",
        "é".repeat(4_000)
    )));
    assert!(!prompt.contains(&"é".repeat(4_001)));
    assert!(prompt.contains(&"s".repeat(6_000)) && !prompt.contains(&"s".repeat(6_001)));
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
    /// Whatever a report says, the only fences of the prompt that can end a quotation are ours.
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
        prop_assert!(prompt(&message, &stack).chars().count() < 20_000);
    }
}
