//! What a job reports, and what the host refuses.

use std::time::{Duration, Instant};

use assay_cli_remote::codehost::{Annotation, Comment, Job, Line, Outcome, PostError, ReportTo, post};
use assay_domain::run::CiProvider;

use crate::{
    jobs::{MARKER, comment, github},
    receiver::{FORK, PERSONAL, Receiver, TOKEN},
};

/// The lines of a report by a job with these variables.
pub(crate) fn report(
    receiver: &Receiver,
    provider: CiProvider,
    variables: &[(&str, &str)],
    to: &str,
    comment: &Comment,
) -> Vec<Line> {
    let variable = |name: &str| match name {
        "GITHUB_API_URL" | "CI_API_V4_URL" => Some(receiver.api.clone()),
        "GITHUB_REPOSITORY" => Some("shop/web".to_owned()),
        "CI_PROJECT_ID" => Some("12".to_owned()),
        "SYSTEM_COLLECTIONURI" => Some(format!("{}/", receiver.api)),
        "SYSTEM_TEAMPROJECTID" => Some("0a-1b".to_owned()),
        "BUILD_REPOSITORY_ID" => Some("2c-3d".to_owned()),
        "ASSAY_BITBUCKET_PROXY" => Some(receiver.api.clone()),
        _ => {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    };
    let job = Job {
        provider: Some(provider),
        pull_request: Some(7),
        variable: &variable,
        deadline: Instant::now() + Duration::from_secs(20),
        progress: &(),
        files: &Vec::new,
    };
    let to: ReportTo = to.parse().unwrap();
    job.report(to, "1", comment, &mut || Ok(comment.clone()))
}

#[test]
fn a_job_of_github_writes_summary_outputs_annotations_and_comment() {
    let receiver = Receiver::start();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let variables = [
        ("GITHUB_TOKEN", TOKEN),
        ("GITHUB_STEP_SUMMARY", &*path("summary")),
        ("GITHUB_OUTPUT", &*path("outputs")),
    ];
    let mut composed = comment(1, "red");
    composed.annotations = vec![Annotation {
        run_id: "1".to_owned(),
        file: Some("cart.spec.ts".to_owned()),
        line: Some(4),
        title: "pays".to_owned(),
        message: "expected 3".to_owned(),
        is_mine: true,
    }];
    let lines = report(
        &receiver,
        CiProvider::GithubActions,
        &variables,
        "auto",
        &composed,
    );
    assert_eq!(
        lines,
        [
            Line::Message("1 test failed".to_owned()),
            Line::Command("::error title=pays,file=cart.spec.ts,line=4::expected 3".to_owned()),
            Line::Message("pull request 7: a comment was written".to_owned()),
        ]
    );
    assert_eq!(
        std::fs::read_to_string(path("summary")).unwrap(),
        format!("{}\n", composed.markdown)
    );
    assert_eq!(
        std::fs::read_to_string(path("outputs")).unwrap(),
        "action=rerun\naddress=https://assay.example.org/p/1/pull/7\ntests=3\nfailed=1\npassed-on-retry=0\nskipped=0\n"
    );
    assert_eq!(receiver.bodies(), [composed.markdown]);
}

#[test]
fn the_token_of_a_fork_writes_no_comment_and_fails_nothing() {
    let receiver = Receiver::start();
    let lines = report(
        &receiver,
        CiProvider::GithubActions,
        &[("GITHUB_TOKEN", FORK)],
        "comment",
        &comment(1, "red"),
    );
    assert_eq!(
        lines,
        [Line::Message(
            "pull request 7: the token may not write here (403: Resource not accessible by integration)"
                .to_owned()
        )]
    );
    assert_eq!(receiver.bodies(), [""; 0]);
}

#[test]
fn a_setting_turns_all_comments_off() {
    let receiver = Receiver::start();
    let off = Comment {
        enabled: false,
        ..comment(1, "red")
    };
    let lines = report(
        &receiver,
        CiProvider::GithubActions,
        &[("GITHUB_TOKEN", TOKEN)],
        "comment",
        &off,
    );
    assert!(
        matches!(&lines[..], [Line::Message(text)] if text.contains("turn comments off")),
        "{lines:?}"
    );
    assert!(receiver.requests().is_empty());
}

#[test]
fn a_merge_request_of_gitlab_gets_a_note_with_a_token_only() {
    let receiver = Receiver::start();
    let lines = report(
        &receiver,
        CiProvider::GitlabCi,
        &[],
        "comment",
        &comment(1, "red"),
    );
    assert!(
        matches!(&lines[..], [Line::Message(text)] if text.contains("docs/pull-requests.md")),
        "{lines:?}"
    );
    for text in ["red", "green"] {
        let composed = comment(2, text);
        report(
            &receiver,
            CiProvider::GitlabCi,
            &[("GITLAB_TOKEN", TOKEN)],
            "summary,comment",
            &composed,
        );
        assert_eq!(receiver.bodies(), [composed.markdown]);
    }
}

#[test]
fn an_exceeded_rate_is_waited_for() {
    let receiver = Receiver::start();
    receiver.state.lock().unwrap().limited = 1;
    let lines = report(
        &receiver,
        CiProvider::GithubActions,
        &[("GITHUB_TOKEN", TOKEN)],
        "comment",
        &comment(1, "red"),
    );
    assert_eq!(
        lines,
        [Line::Message("pull request 7: a comment was written".to_owned())]
    );
}

#[test]
fn the_own_comment_is_found_behind_a_hundred_others() {
    let receiver = Receiver::start();
    for _ in 0..130 {
        receiver.add("User", "chat");
    }
    let host = github(&receiver, TOKEN);
    post(&host, &comment(1, "one")).unwrap();
    assert_eq!(post(&host, &comment(2, "two")).unwrap(), Outcome::Edited);
    let own = receiver
        .bodies()
        .into_iter()
        .filter(|body| body.starts_with(MARKER));
    assert_eq!(own.collect::<Vec<_>>(), [comment(2, "two").markdown]);
}

#[test]
fn a_copied_hidden_line_stops_no_comment() {
    let receiver = Receiver::start();
    let copied = receiver.add("User", &comment(i64::MAX, "mine").markdown);
    let far_ahead = receiver.add("Bot", &comment(i64::MAX, "mine").markdown);
    let host = github(&receiver, TOKEN);
    assert_eq!(post(&host, &comment(1, "red")).unwrap(), Outcome::Created);
    let state = receiver.state.lock().unwrap();
    assert_eq!(state.comments[&copied].body, state.comments[&far_ahead].body);
    assert_eq!(state.comments.len(), 3);
}

#[test]
fn only_comments_of_the_tokens_own_user_count() {
    let of_azure = [
        ("SYSTEM_ACCESSTOKEN", TOKEN),
        ("BUILD_REPOSITORY_PROVIDER", "TfsGit"),
    ];
    for (provider, variables) in [
        (CiProvider::GithubActions, &[("GITHUB_TOKEN", PERSONAL)][..]),
        (CiProvider::GitlabCi, &[("GITLAB_TOKEN", TOKEN)]),
        (CiProvider::AzurePipelines, &of_azure),
    ] {
        let receiver = Receiver::start();
        let copied = receiver.add("User", &comment(2, "mine").markdown);
        let lines = report(&receiver, provider, variables, "comment", &comment(1, "red"));
        assert_eq!(
            lines,
            [Line::Message("pull request 7: a comment was written".to_owned())],
            "{provider:?}"
        );
        assert_eq!(
            receiver.bodies(),
            [comment(2, "mine").markdown, comment(1, "red").markdown]
        );
        let lines = report(&receiver, provider, variables, "comment", &comment(3, "green"));
        assert_eq!(
            lines,
            [Line::Message(
                "pull request 7: the comment was brought up to date".to_owned()
            )]
        );
        assert_eq!(
            receiver.state.lock().unwrap().comments[&copied].body,
            comment(2, "mine").markdown
        );
    }
}

#[test]
fn a_text_that_the_host_refuses_is_an_error_with_its_reason() {
    let receiver = Receiver::start();
    let host = github(&receiver, TOKEN);
    let error = post(&host, &comment(1, &"x".repeat(70_000))).unwrap_err();
    assert!(matches!(error, PostError::Refused { status: 422, .. }), "{error}");
    let error = post(&github(&receiver, "ghs_unknown"), &comment(1, "x")).unwrap_err();
    assert!(!error.to_string().contains("ghs_"), "{error}");
}

#[test]
fn only_known_parts_are_accepted() {
    for wrong in ["", "all", "summary,", "comment;summary", "checks"] {
        assert!(wrong.parse::<ReportTo>().is_err(), "{wrong}");
    }
    assert!("none".parse::<ReportTo>().unwrap().is_none());
    assert!(!"summary,comment".parse::<ReportTo>().unwrap().is_none());
}

#[test]
fn a_silent_code_host_holds_the_job_until_the_deadline_only() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let api = format!("http://{}", silent.local_addr().unwrap());
    for (provider, variables) in [
        (
            CiProvider::GithubActions,
            &["GITHUB_TOKEN", "GITHUB_API_URL", "GITHUB_REPOSITORY"][..],
        ),
        (
            CiProvider::GitlabCi,
            &["GITLAB_TOKEN", "CI_API_V4_URL", "CI_PROJECT_ID"],
        ),
        (CiProvider::BitbucketPipelines, &["ASSAY_BITBUCKET_PROXY"]),
    ] {
        let variable = |name: &str| match name {
            "GITHUB_REPOSITORY" => Some("shop/web".to_owned()),
            "CI_PROJECT_ID" => Some("12".to_owned()),
            "BITBUCKET_WORKSPACE" | "BITBUCKET_REPO_SLUG" | "BITBUCKET_COMMIT" => Some("a1".to_owned()),
            name if name.ends_with("TOKEN") => Some(TOKEN.to_owned()),
            _ => variables.contains(&name).then(|| api.clone()),
        };
        let job = Job {
            provider: Some(provider),
            pull_request: Some(7),
            variable: &variable,
            deadline: Instant::now() + Duration::from_secs(1),
            progress: &(),
            files: &Vec::new,
        };
        let composed = comment(1, "red");
        let to = "summary,comment,check".parse().unwrap();
        let lines = job.report(to, "1", &composed, &mut || Ok(composed.clone()));
        assert!(
            lines
                .iter()
                .any(|line| matches!(line, Line::Warning(text) if text.contains("is not reported"))),
            "{provider:?} {lines:?}"
        );
    }
}
