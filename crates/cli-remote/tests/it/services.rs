//! What each service gets beside comments of GitHub and notes of GitLab.

use std::fs;

use assay_cli_remote::codehost::{Annotation, Comment, Line};
use assay_domain::run::CiProvider;
use serde_json::{Value, json};

use crate::{
    jobs::comment,
    receiver::{FORK, Receiver, TOKEN},
    reports::report,
};

fn annotation(title: &str, line: Option<u32>, is_mine: bool) -> Annotation {
    Annotation {
        run_id: "1".to_owned(),
        file: line.map(|_| "cart.spec.ts".to_owned()),
        line,
        title: title.to_owned(),
        message: "expected 3".to_owned(),
        is_mine,
    }
}

fn with_annotations(state: i64, text: &str) -> Comment {
    Comment {
        annotations: vec![
            annotation("pays", Some(4), true),
            annotation("ships", None, false),
        ],
        ..comment(state, text)
    }
}

fn message(lines: &[Line], text: &str) -> bool {
    lines.contains(&Line::Message(text.to_owned()))
}

#[test]
fn a_pull_request_of_azure_repos_has_one_thread_that_is_kept_up_to_date() {
    let receiver = Receiver::start();
    let of_azure = [
        ("SYSTEM_ACCESSTOKEN", TOKEN),
        ("BUILD_REPOSITORY_PROVIDER", "TfsGit"),
    ];
    let post = |variables: &[(&str, &str)], composed: &Comment| {
        report(
            &receiver,
            CiProvider::AzurePipelines,
            variables,
            "comment",
            composed,
        )
    };
    receiver.add("User", "Looks good");
    for without in [&of_azure[1..], &of_azure[..1]] {
        let lines = post(without, &comment(1, "red"));
        assert!(
            matches!(&lines[..], [Line::Message(text)] if text.contains("docs/pull-requests.md")),
            "{lines:?}"
        );
    }
    for (text, said) in [
        ("red", "a comment was written"),
        ("redder", "the comment was brought up to date"),
        ("redder", "the comment is up to date"),
    ] {
        let lines = post(&of_azure, &comment(2, text));
        assert!(message(&lines, &format!("pull request 7: {said}")), "{lines:?}");
    }
    assert_eq!(
        receiver.bodies(),
        ["Looks good".to_owned(), comment(2, "redder").markdown]
    );

    // A person deleted the comment: the thread is listed without its text, and another one is written.
    receiver.state.lock().unwrap().deleted.insert(2);
    let lines = post(&of_azure, &comment(3, "redder"));
    assert!(
        message(&lines, "pull request 7: a comment was written"),
        "{lines:?}"
    );
}

#[test]
fn a_commit_of_bitbucket_has_one_report_with_the_newest_failures() {
    let receiver = Receiver::start();
    let variables = [
        ("BITBUCKET_WORKSPACE", "shop"),
        ("BITBUCKET_REPO_SLUG", "web"),
        ("BITBUCKET_COMMIT", "de104964"),
    ];
    let write = |composed: &Comment, to: &str| {
        report(
            &receiver,
            CiProvider::BitbucketPipelines,
            &variables,
            to,
            composed,
        )
    };
    let lines = write(&with_annotations(1, "red"), "auto");
    assert!(message(&lines, "a report was written"), "{lines:?}");
    let stored = || receiver.state.lock().unwrap().reports.clone();
    let (content, annotations) = stored()["de104964/reports/assay-1"].clone();
    assert_eq!(
        (&content["result"], &content["report_type"], &content["link"]),
        (
            &json!("PENDING"),
            &json!("TEST"),
            &json!("https://assay.example.org/p/1/pull/7")
        )
    );
    assert_eq!(
        content["data"][1],
        json!({"title": "Failed", "type": "NUMBER", "value": 1})
    );
    let places: Vec<_> = annotations
        .iter()
        .map(|of| (&of["path"], &of["line"], &of["severity"]))
        .collect();
    assert_eq!(
        places,
        [
            (&json!("cart.spec.ts"), &json!(4), &json!("HIGH")),
            (&Value::Null, &Value::Null, &json!("LOW"))
        ]
    );

    // A failure that is gone leaves no annotation. A long or empty text is within the limits.
    let mut repaired = with_annotations(2, "green");
    repaired.clean = true;
    repaired.headline = "x".repeat(5_000);
    repaired.annotations = vec![
        annotation(&"n".repeat(2_000), Some(1), true),
        annotation("", None, true),
    ];
    let lines = write(&repaired, "annotations");
    assert!(message(&lines, "the report was brought up to date"), "{lines:?}");
    let (content, annotations) = stored()["de104964/reports/assay-1"].clone();
    assert_eq!((&content["result"], annotations.len()), (&json!("PASSED"), 2));

    let lines = report(
        &receiver,
        CiProvider::BitbucketPipelines,
        &[],
        "annotations",
        &repaired,
    );
    assert!(
        matches!(&lines[..], [Line::Message(text)] if text.contains("docs/pull-requests.md")),
        "{lines:?}"
    );
}

#[test]
fn a_merge_request_of_gitlab_gets_failures_without_a_token() {
    let receiver = Receiver::start();
    let folder = tempfile::tempdir().unwrap();
    let variables = [("CI_PROJECT_DIR", folder.path().to_str().unwrap())];
    let mut composed = with_annotations(1, "red");
    let mut of_other_run = annotation("other", Some(9), true);
    of_other_run.run_id = "2".to_owned();
    composed.annotations.push(of_other_run);
    let written = |composed: &Comment| {
        let lines = report(
            &receiver,
            CiProvider::GitlabCi,
            &variables,
            "annotations",
            composed,
        );
        let file = fs::read(folder.path().join("gl-codequality.json")).unwrap();
        (lines, serde_json::from_slice::<Value>(&file).unwrap())
    };
    let (lines, entries) = written(&composed);
    assert!(message(&lines, "gl-codequality.json has 1 failure"), "{lines:?}");
    let fingerprint = entries[0]["fingerprint"].as_str().unwrap();
    assert_eq!(fingerprint.len(), 64);
    assert_eq!(
        entries,
        json!([{
            "description": "pays: expected 3", "check_name": "assay", "fingerprint": fingerprint, "severity": "major",
            "location": {"path": "cart.spec.ts", "lines": {"begin": 4}},
        }])
    );
    assert_eq!(written(&comment(2, "green")).1, json!([]));
}

#[test]
fn a_check_run_is_written_where_it_is_asked_for() {
    let receiver = Receiver::start();
    let write = |token: &'static str, to: &str, composed: &Comment| {
        report(
            &receiver,
            CiProvider::GithubActions,
            &[("GITHUB_TOKEN", token)],
            to,
            composed,
        )
    };
    write(TOKEN, "auto", &with_annotations(1, "red"));
    assert!(receiver.state.lock().unwrap().check_runs.is_empty());
    for (state, text, said) in [
        (3, "red", "a check run was written"),
        (3, "red", "the check run is up to date"),
        (2, "old", "the check run is newer than this report"),
        (4, "redder", "the check run was brought up to date"),
    ] {
        let lines = write(TOKEN, "check", &with_annotations(state, text));
        assert!(message(&lines, said), "{lines:?}");
    }
    let runs = receiver.state.lock().unwrap().check_runs.clone();
    assert_eq!(runs.len(), 1);
    let run = &runs[&1];
    assert_eq!(run["output"]["summary"], with_annotations(4, "redder").markdown);
    assert_eq!(
        (&run["conclusion"], &run["output"]["annotations"][0]["start_line"]),
        (&json!("action_required"), &json!(4))
    );
    assert_eq!(run["output"]["annotations"].as_array().unwrap().len(), 1);

    let lines = write(FORK, "check", &with_annotations(5, "red"));
    assert!(
        matches!(&lines[..], [Line::Message(text)] if text.contains("403")),
        "{lines:?}"
    );
    let unknown = Comment {
        revision: Some("../../secrets".to_owned()),
        ..comment(6, "red")
    };
    let before = receiver.requests().len();
    write(TOKEN, "check", &unknown);
    assert_eq!(receiver.requests().len(), before);
}
