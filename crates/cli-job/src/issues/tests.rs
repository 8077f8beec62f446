use assay_answers::links::PublicPages;
use assay_domain::{fix::WatchedFix, verdict::Figures};
use serde_json::{Value, json};

use super::*;

fn place() -> Place {
    Place {
        project: "019aa3f4-5b1c-7def-8a3b-000000000001".parse().unwrap(),
        pages: PublicPages::at("https://assay.example.org"),
        stable_branch: "main".to_owned(),
        now: "2026-11-29T00:00:00Z".parse().unwrap(),
    }
}

fn test(name: &str) -> TestName {
    TestName {
        name: name.to_owned(),
        file_path: Some("cart.py".to_owned()),
    }
}

fn entry(name: &str, status: &str) -> VerdictEntry {
    let mut entry = json!({
        "testName": name, "filePath": "cart.py", "formerNames": [{"name": "old", "filePath": "cart.py"}], "status": status,
        "explanation": "Passed on retry in 4 of 9 runs", "alsoActive": [], "labels": [], "failingOn": [],
        "owners": ["@shop/web", "a b"], "ownersAmbiguous": false,
    });
    let figures = Figures {
        time_lost_ms: Some(660_000),
        ..Figures::default()
    };
    let Value::Object(figures) = json!(figures) else {
        panic!()
    };
    entry.as_object_mut().unwrap().extend(figures);
    serde_json::from_value(entry).unwrap()
}

fn fixes(state: Option<&str>) -> Vec<WatchedFix> {
    let fix = |state: &str| -> Value {
        json!({
            "state": state, "cleanRuns": 58, "runsNeeded": 58, "revision": "058ec861fb6e76e4",
            "storedAt": "2026-11-20T10:00:00Z",
        })
    };
    serde_json::from_value(state.map(fix).into_iter().collect()).unwrap()
}

fn problem(name: &str, status: Option<&str>, fix: Option<&str>) -> Problem {
    let entry = status.map(|status| entry(name, status));
    Problem::of_test(test(name), entry.as_ref(), &fixes(fix), &place())
}

fn issue(number: u64, problem: &Problem, open: bool) -> Issue {
    Issue {
        number,
        title: problem.title.clone(),
        body: Some(format!(
            "Mine.\n\n{}\n\nMine, too.",
            Section::of(problem, problem.state, None).written_into("", problem)
        )),
        state: if open { "open" } else { "closed" }.to_owned(),
    }
}

/// The changes as words.
fn changes(problem: &Problem, issues: &[Issue]) -> Vec<String> {
    let words = |change: &Change<'_>| {
        let number = change.number.unwrap_or(0);
        match (change.action, change.why.strip_suffix(" is about the same.")) {
            (IssueAction::Create, _) => "create".to_owned(),
            (IssueAction::Comment, _) => format!("tell {number}"),
            (IssueAction::Close, None) => format!("close {number}"),
            (IssueAction::Close, Some(first)) => format!("close {number} for {first}"),
            (IssueAction::Edit, _) => format!("edit {number}"),
        }
    };
    plan(std::slice::from_ref(problem), issues)
        .iter()
        .map(words)
        .collect()
}

#[test]
fn an_issue_follows_the_state_of_its_test_and_is_closed_when_a_fix_held() {
    let flaky = problem("pays", Some("flaky"), None);
    let of = |status, fix| changes(&problem("pays", status, fix), &[issue(7, &flaky, true)]);
    assert_eq!(of(Some("flaky"), None), [""; 0]);
    assert_eq!(of(Some("broken"), None), ["tell 7"]);
    assert_eq!(of(None, None), ["tell 7"]);
    assert_eq!(of(Some("flaky"), Some("watching")), ["tell 7"]);
    assert_eq!(of(Some("flaky"), Some("did_not_hold")), ["tell 7"]);
    assert_eq!(of(None, Some("unproved")), ["tell 7"]);
    assert_eq!(of(Some("flaky"), Some("held")), ["close 7"]);
    assert_eq!(of(Some("broken"), Some("held")), ["tell 7"]);
    // Without an issue, only what needs one gets one.
    assert_eq!(changes(&flaky, &[]), ["create"]);
    for fix in ["watching", "held"] {
        assert_eq!(
            changes(&problem("pays", Some("flaky"), Some(fix)), &[]),
            [""; 0],
            "{fix}"
        );
    }
}

#[test]
fn a_closed_issue_is_never_followed_against_a_person() {
    let flaky = problem("pays", Some("flaky"), None);
    let held = problem("pays", Some("flaky"), Some("held"));
    let failed = problem("pays", Some("flaky"), Some("did_not_hold"));
    assert_eq!(
        changes(&failed, &[issue(7, &flaky, false)]),
        [""; 0],
        "a person closed it"
    );
    assert_eq!(
        changes(&held, &[issue(7, &held, false)]),
        [""; 0],
        "it still holds"
    );
    assert_eq!(
        changes(&failed, &[issue(7, &held, false)]),
        ["create"],
        "closed because a fix held"
    );
    let emptied = Issue {
        body: Some("A person removed the section.".to_owned()),
        ..issue(7, &flaky, true)
    };
    assert_eq!(changes(&flaky, &[emptied]), [""; 0]);
}

#[test]
fn the_younger_of_two_issues_is_closed_and_a_renamed_test_keeps_its_issue() {
    let flaky = problem("pays", Some("flaky"), None);
    let both = [issue(9, &flaky, true), issue(7, &flaky, true)];
    assert_eq!(changes(&flaky, &both), ["close 9 for #7"]);
    let old = Problem::of_test(test("old"), Some(&entry("old", "flaky")), &fixes(None), &place());
    assert_eq!(changes(&flaky, &[issue(7, &old, true)]), ["edit 7"]);
}

#[test]
fn an_issue_that_was_closed_here_has_a_successor_and_one_of_a_person_has_none() {
    let flaky = problem("pays", Some("flaky"), None);
    let held = problem("pays", Some("flaky"), Some("held"));
    // The first was closed because a fix held, the second because of the first.
    let both = [issue(7, &flaky, true), issue(8, &flaky, true)];
    let plan = plan(std::slice::from_ref(&flaky), &both);
    assert_eq!(plan[0].number, Some(8));
    let second = Issue {
        body: Some(plan[0].section.written_into(both[1].text(), plan[0].problem)),
        ..issue(8, &flaky, false)
    };
    let closed = [issue(7, &held, false), second.clone()];
    assert_eq!(changes(&flaky, &closed), ["create"]);
    assert_eq!(
        changes(&flaky, &[issue(7, &flaky, false), second.clone()]),
        [""; 0]
    );
    let listed = [entry("pays", "flaky")];
    let ten = Duration::from_secs(600);
    assert_eq!(tests(&listed, &closed, ten), [(test("pays"), Some(&listed[0]))]);
    assert_eq!(tests(&listed, &[issue(7, &flaky, false)], ten), []);
    assert_eq!(tests(&listed, &[], ten * 2), []);
    // A person opened it again, and a list in pages may have an issue twice.
    let opened = Issue {
        state: "opened".to_owned(),
        ..second
    };
    assert_eq!(changes(&flaky, &[issue(7, &flaky, true), opened]), [""; 0]);
    assert_eq!(
        changes(&flaky, &[issue(7, &flaky, true), issue(7, &flaky, true)]),
        [""; 0]
    );
    // A person removed the section before the test broke.
    let emptied = Issue {
        body: None,
        ..issue(7, &flaky, true)
    };
    assert_eq!(
        changes(&problem("pays", Some("broken"), None), &[emptied]),
        [""; 0]
    );
}

#[test]
fn a_fix_counts_until_the_test_fails_again_or_its_commit_never_comes() {
    let state = |fix: Value| {
        let mut answer = json!({"cleanRuns": 0, "runsNeeded": 58, "revision": "058ec861fb6e76e4"});
        answer
            .as_object_mut()
            .unwrap()
            .extend(fix.as_object().unwrap().clone());
        let fixes = [serde_json::from_value(answer).unwrap()];
        Problem::of_test(test("pays"), Some(&entry("pays", "flaky")), &fixes, &place()).state
    };
    let run = "019aa3f4-5b1c-7def-8a3b-000000000002";
    let new = "2026-11-20T10:00:00Z";
    assert_eq!(
        state(json!({"state": "held", "storedAt": new, "failedRun": null})),
        State::Held
    );
    assert_eq!(
        state(json!({"state": "held", "storedAt": new, "failedRun": run})),
        State::Flaky
    );
    assert_eq!(
        state(json!({"state": "waiting", "storedAt": new})),
        State::Watched
    );
    assert_eq!(
        state(json!({"state": "waiting", "storedAt": "2026-10-20T10:00:00Z"})),
        State::Flaky
    );
}

#[test]
fn the_text_of_people_is_kept_and_no_name_leaves_the_section() {
    let hostile = "a --> <!-- assay:end --> @everyone `b` \\u002d";
    let flaky = problem(hostile, Some("flaky"), None);
    let before = issue(7, &flaky, true);
    let section = Section::find(before.text()).unwrap();
    assert_eq!(section.subject, Subject::Test(test(hostile)));
    let broken = problem(hostile, Some("broken"), None);
    let next = Section::of(&broken, broken.state, Some(&section));
    assert_eq!(next.mark(), "<!-- assay:edge 1 Broken -->");
    let after = next.written_into(&before.text().replace('\n', "\r\n"), &broken);
    assert!(
        after.starts_with("Mine.\r\n\r\n<!-- assay:begin ")
            && after.ends_with("<!-- assay:end -->\r\n\r\nMine, too.")
    );
    assert_eq!(Section::find(&after), Some(next));
    assert!(
        !after.contains("@everyone") && after.contains("Owners: @shop/web, `a b`"),
        "{after}"
    );
    assert_eq!(after.matches("assay:begin").count(), 1);
}
