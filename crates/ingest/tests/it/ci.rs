//! CI environments as the services set them.

use std::collections::HashMap;

use assay_domain::{merge_queue::MergeQueue, recording::ShardIndex, run::CiProvider};
use assay_ingest::ci::{CiContext, detect};
use serde_json::Value;

/// A file beside a real report.
fn report(path: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/reports");
    std::fs::read_to_string(format!("{folder}/{path}")).unwrap()
}

fn environment(text: &str) -> HashMap<String, String> {
    text.lines()
        .filter_map(|line| line.trim().split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn detected(text: &str) -> CiContext {
    with_event(text, "")
}

fn with_event(text: &str, event: &str) -> CiContext {
    let variables = environment(text);
    detect(&|name| variables.get(name).cloned(), &|_| {
        Some(event.as_bytes().to_vec())
    })
}

fn shard(index: u32, total: u32) -> Option<ShardIndex> {
    Some(ShardIndex {
        index,
        total: Some(total),
    })
}

#[test]
fn outside_of_ci_the_context_is_empty() {
    assert_eq!(
        detected("HOME=/root\nBRANCH_NAME=main\nCI="),
        CiContext::default()
    );
    assert_eq!(detected("CI=true").provider, Some(CiProvider::Other));
    assert_eq!(detected("CI=true").run_key, None);
}

#[test]
fn the_variables_of_each_merge_queue_name_what_it_tests() {
    let recorded = include_str!("../../../../testdata/merge-queues.json");
    let recorded: Vec<Value> = serde_json::from_str(recorded).unwrap();
    assert!(recorded.len() > 10);
    for case in recorded {
        let variables: HashMap<String, String> = serde_json::from_value(case["variables"].clone()).unwrap();
        let event = case["event"].to_string();
        let ci = detect(&|name| variables.get(name).cloned(), &|_| {
            Some(event.as_bytes().to_vec())
        });
        let name = &case["queue"];
        let branch = ci.context.branch.as_deref();
        assert_eq!(branch, case["branch"].as_str(), "{name}");
        assert_eq!(
            ci.context.pull_request_number,
            case["pullRequest"].as_i64(),
            "{name}"
        );
        let queue = MergeQueue::of(branch.unwrap(), ci.context.pull_request_title.as_deref());
        assert_eq!(serde_json::to_value(queue).unwrap(), case["tests"], "{name}");
    }
}

#[test]
fn a_merge_train_of_gitlab_tests_no_head_of_its_source_branch() {
    let request = "GITLAB_CI=true\nCI_MERGE_REQUEST_IID=59\nCI_COMMIT_SHA=merged\n\
                   CI_MERGE_REQUEST_SOURCE_BRANCH_NAME=topic\nCI_MERGE_REQUEST_SOURCE_BRANCH_SHA=head\n\
                   CI_COMMIT_REF_NAME=refs/merge-requests/59/train\nCI_MERGE_REQUEST_EVENT_TYPE=";
    let train = detected(&format!("{request}merge_train"));
    assert_eq!(train.context.branch.as_deref(), Some("merge-requests/59/train"));
    assert_eq!(train.context.commit_sha.as_deref(), Some("merged"));
    assert_eq!(train.context.tested_revision, None);
    assert_eq!(train.context.pull_request_number, Some(59));
    let result = detected(&format!("{request}merged_result"));
    assert_eq!(result.context.branch.as_deref(), Some("topic"));
    assert_eq!(result.context.tested_revision.as_deref(), Some("head"));
}

#[test]
fn a_pull_request_on_github_is_tested_at_its_head() {
    let env = report("playwright/github-env.txt");
    let event = report("playwright/github-event-pull_request.json");
    let ci = with_event(&env, &event);
    assert_eq!(ci.provider, Some(CiProvider::GithubActions));
    assert_eq!(ci.run_key.as_deref(), Some("github-actions/10293847566"));
    assert_eq!(ci.attempt, Some(1));
    assert_eq!(ci.context.branch.as_deref(), Some("warm-gateway"));
    assert_eq!(
        ci.context.commit_sha.as_deref(),
        Some("c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00")
    );
    assert_eq!(
        ci.context.tested_revision.as_deref(),
        Some("4f1d2c3b5a69788796a5b4c3d2e1f00112233445")
    );
    assert_eq!(ci.context.pull_request_number, Some(118));
    assert_eq!(
        ci.context.pull_request_title.as_deref(),
        Some("Warm up the payment gateway before the first order")
    );
    assert_eq!(
        ci.context.run_url.as_deref(),
        Some("https://github.com/acme/acme-shop/actions/runs/10293847566")
    );
    assert_eq!(ci.context.author_name.as_deref(), Some("j-doe"));
    assert!(ci.sources.contains(&("author", "GITHUB_EVENT_PATH")));
    assert!(ci.sources.contains(&("branch", "GITHUB_HEAD_REF")));
    assert!(ci.sources.contains(&("tested revision", "GITHUB_EVENT_PATH")));
    // Without the event file, the reference still has the number.
    assert_eq!(
        with_event(&env, "not json").context.pull_request_number,
        Some(118)
    );
}

#[test]
fn a_push_on_github_has_message_and_author() {
    let ci = with_event(
        "GITHUB_ACTIONS=true\nGITHUB_REF_NAME=main\nGITHUB_REF=refs/heads/main\nGITHUB_SHA=abc\nGITHUB_RUN_ID=7\n\
         GITHUB_RUN_ATTEMPT=3\nGITHUB_EVENT_PATH=/e.json\nGITHUB_WORKSPACE=/w",
        r#"{"head_commit": {"message": "Fix\n\nthe till", "author": {"name": "Jo Doe"}}}"#,
    );
    assert_eq!(ci.context.branch.as_deref(), Some("main"));
    assert_eq!(ci.context.commit_message.as_deref(), Some("Fix\n\nthe till"));
    assert_eq!(ci.context.author_name.as_deref(), Some("Jo Doe"));
    assert_eq!(ci.context.tested_revision, None);
    assert_eq!(ci.run_key.as_deref(), Some("github-actions/7"));
    assert_eq!((ci.attempt, ci.job_id), (Some(3), None));
    assert_eq!(ci.workspace_root.as_deref(), Some("/w"));
}

#[test]
fn a_workflow_run_on_github_is_about_the_run_that_triggered_it() {
    let ci = with_event(
        "GITHUB_ACTIONS=true\nGITHUB_REF_NAME=main\nGITHUB_SHA=default\nGITHUB_RUN_ID=7\nGITHUB_EVENT_PATH=/e.json",
        r#"{"workflow_run": {"head_sha": "tested", "head_branch": "topic", "pull_requests": [{"number": 5}]}}"#,
    );
    assert_eq!(ci.context.commit_sha.as_deref(), Some("tested"));
    assert_eq!(ci.context.branch.as_deref(), Some("topic"));
    assert_eq!(ci.context.pull_request_number, Some(5));
}

#[test]
fn the_main_branch_of_a_fork_is_another_branch() {
    let github =
        "GITHUB_ACTIONS=true\nGITHUB_REPOSITORY=acme/shop\nGITHUB_HEAD_REF=main\nGITHUB_EVENT_PATH=/e.json";
    let event = |head: &str| {
        format!(
            r#"{{"pull_request": {{"number": 7, "head": {{"sha": "a", "ref": "main", "repo": {{"full_name": "{head}"}}}}}}}}"#
        )
    };
    let finished = |head: &str| {
        format!(
            r#"{{"workflow_run": {{"head_sha": "a", "head_branch": "main", "head_repository": {{"full_name": "{head}"}}}}}}"#
        )
    };
    let of_github = |event: &str| with_event(github, event).context.branch.unwrap();
    for (branch, expected) in [
        (of_github(&event("jo/shop")), "jo:main"),
        (of_github(&event("acme/shop")), "main"),
        (of_github(&finished("jo/shop")), "jo:main"),
        (of_github(&finished("acme/shop")), "main"),
        // The fork was deleted in the meantime.
        (
            of_github(r#"{"pull_request": {"head": {"sha": "a", "repo": null}}}"#),
            "fork:main",
        ),
    ] {
        assert_eq!(branch, expected);
    }
    for (env, expected) in [
        (
            "GITLAB_CI=true\nCI_MERGE_REQUEST_SOURCE_BRANCH_NAME=main\nCI_MERGE_REQUEST_PROJECT_PATH=acme/shop\n\
             CI_MERGE_REQUEST_SOURCE_PROJECT_PATH=jo/shop",
            "jo/shop:main",
        ),
        (
            "GITLAB_CI=true\nCI_MERGE_REQUEST_SOURCE_BRANCH_NAME=main\nCI_MERGE_REQUEST_PROJECT_PATH=acme/shop\n\
             CI_MERGE_REQUEST_SOURCE_PROJECT_PATH=acme/shop",
            "main",
        ),
        (
            "TF_BUILD=True\nSYSTEM_PULLREQUEST_SOURCEBRANCH=refs/heads/main\nSYSTEM_PULLREQUEST_ISFORK=True\n\
             SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI=https://github.com/jo/shop",
            "jo:main",
        ),
        (
            "TF_BUILD=True\nSYSTEM_PULLREQUEST_SOURCEBRANCH=refs/heads/main\nSYSTEM_PULLREQUEST_ISFORK=True",
            "fork:main",
        ),
        (
            "TF_BUILD=True\nSYSTEM_PULLREQUEST_SOURCEBRANCH=refs/heads/main\nSYSTEM_PULLREQUEST_ISFORK=False",
            "main",
        ),
        (
            "JENKINS_URL=u\nCHANGE_BRANCH=main\nCHANGE_FORK=jo/our-shop",
            "jo:main",
        ),
        ("JENKINS_URL=u\nCHANGE_BRANCH=main\nCHANGE_FORK=jo", "jo:main"),
        (
            "BUILDKITE=true\nBUILDKITE_BRANCH=main\nBUILDKITE_REPO=git@github.com:acme/shop.git\n\
             BUILDKITE_PULL_REQUEST_REPO=git://github.com/jo/shop.git",
            "jo:main",
        ),
        (
            "BUILDKITE=true\nBUILDKITE_BRANCH=jo:main\nBUILDKITE_REPO=git@github.com:acme/shop.git\n\
             BUILDKITE_PULL_REQUEST_REPO=git://github.com/jo/shop.git",
            "jo:main",
        ),
        (
            "BUILDKITE=true\nBUILDKITE_BRANCH=main\nBUILDKITE_REPO=git@github.com:Acme/shop.git\n\
             BUILDKITE_PULL_REQUEST_REPO=https://github.com/acme/shop",
            "main",
        ),
    ] {
        assert_eq!(detected(env).context.branch.as_deref(), Some(expected), "{env}");
    }
}

#[test]
fn gitlab_merge_requests_are_distinguished_from_branches() {
    let merged = detected(
        "GITLAB_CI=true\nCI_COMMIT_REF_NAME=refs/merge-requests/9/merge\nCI_COMMIT_SHA=merge\n\
         CI_MERGE_REQUEST_SOURCE_BRANCH_NAME=topic\nCI_MERGE_REQUEST_SOURCE_BRANCH_SHA=head\nCI_MERGE_REQUEST_IID=9\n\
         CI_MERGE_REQUEST_TITLE=Topic\nCI_COMMIT_MESSAGE=Merge\nCI_COMMIT_AUTHOR=Jo Doe <jo@example.org>\n\
         CI_PIPELINE_ID=4711\nCI_NODE_INDEX=2\nCI_NODE_TOTAL=4\nCI_PROJECT_DIR=/builds/acme/shop",
    );
    assert_eq!(merged.context.branch.as_deref(), Some("topic"));
    assert_eq!(merged.context.tested_revision.as_deref(), Some("head"));
    assert_eq!(merged.context.pull_request_number, Some(9));
    assert_eq!(merged.context.author_name.as_deref(), Some("Jo Doe"));
    assert_eq!(merged.run_key.as_deref(), Some("gitlab-ci/4711"));
    assert_eq!(merged.shard, shard(2, 4));
    let plain = detected(
        "GITLAB_CI=true\nCI_COMMIT_SHA=head\nCI_MERGE_REQUEST_SOURCE_BRANCH_SHA=\nCI_MERGE_REQUEST_IID=9\nCI_NODE_TOTAL=1",
    );
    assert_eq!(plain.context.tested_revision.as_deref(), Some("head"));
    assert_eq!(plain.shard, None);
    let branch = detected("GITLAB_CI=true\nCI_COMMIT_REF_NAME=main\nCI_COMMIT_SHA=a");
    assert_eq!(branch.context.branch.as_deref(), Some("main"));
    assert_eq!(branch.context.tested_revision, None);
}

#[test]
fn circleci_nodes_are_counted_from_zero() {
    let ci = detected(
        "CIRCLECI=true\nCIRCLE_BRANCH=topic\nCIRCLE_SHA1=head\nCIRCLE_PULL_REQUEST=https://github.com/acme/shop/pull/12\n\
         CIRCLE_WORKFLOW_ID=w-1\nCIRCLE_NODE_INDEX=0\nCIRCLE_NODE_TOTAL=3\nCIRCLE_WORKING_DIRECTORY=~/project\nHOME=/root",
    );
    assert_eq!(ci.shard, shard(1, 3));
    assert_eq!(ci.context.pull_request_number, Some(12));
    assert_eq!(ci.context.tested_revision.as_deref(), Some("head"));
    assert_eq!(ci.workspace_root.as_deref(), Some("/root/project"));
    assert_eq!(ci.run_key.as_deref(), Some("circleci/w-1"));
}

#[test]
fn the_pull_request_of_buildkite_is_false_without_one() {
    let ci = detected(
        "BUILDKITE=true\nBUILDKITE_BRANCH=main\nBUILDKITE_COMMIT=HEAD\nBUILDKITE_PULL_REQUEST=false\nBUILDKITE_BUILD_ID=b\n\
         BUILDKITE_RETRY_COUNT=1\nBUILDKITE_PARALLEL_JOB=2\nBUILDKITE_PARALLEL_JOB_COUNT=3\nBUILDKITE_MESSAGE=Go\n\
         BUILDKITE_BUILD_AUTHOR=Jo\nBUILDKITE_BUILD_CHECKOUT_PATH=/b",
    );
    assert_eq!(ci.context.pull_request_number, None);
    assert_eq!(ci.context.commit_sha, None, "HEAD names no commit");
    assert_eq!(ci.run_key.as_deref(), Some("buildkite/b"));
    assert_eq!(ci.shard, shard(3, 3));
}

#[test]
fn numbers_at_the_bounds_of_a_variable_are_no_attempt_and_no_shard() {
    for number in [i64::MIN, -1, i64::MAX] {
        let buildkite = detected(&format!(
            "BUILDKITE=true\nBUILDKITE_RETRY_COUNT={number}\nBUILDKITE_PARALLEL_JOB={number}\nBUILDKITE_PARALLEL_JOB_COUNT=3"
        ));
        assert_eq!((buildkite.attempt, buildkite.shard), (None, None));
        let azure = detected(&format!(
            "TF_BUILD=True\nSYSTEM_JOBATTEMPT={number}\nSYSTEM_JOBPOSITIONINPHASE={number}\nSYSTEM_TOTALJOBSINPHASE=3"
        ));
        assert_eq!((azure.attempt, azure.shard), (None, None));
    }
}

#[test]
fn jenkins_azure_bitbucket_and_teamcity_are_known() {
    let jenkins = detected(
        "JENKINS_URL=https://ci\nGIT_BRANCH=origin/main\nGIT_COMMIT=a\nJOB_NAME=shop/api\nBUILD_NUMBER=9\nWORKSPACE=/ws\nCHANGE_ID=3\n\
         CHANGE_TITLE=T",
    );
    assert_eq!(jenkins.context.branch.as_deref(), Some("main"));
    assert_eq!(jenkins.run_key.as_deref(), Some("jenkins/shop/api#9"));
    for (variables, branch) in [
        ("GIT_BRANCH=upstream/main\nGIT_LOCAL_BRANCH=main", Some("main")),
        ("GIT_BRANCH=refs/remotes/origin/main", Some("main")),
        ("GIT_BRANCH=detached", None),
    ] {
        let jenkins = detected(&format!("JENKINS_URL=u\n{variables}"));
        assert_eq!(jenkins.context.branch.as_deref(), branch);
    }
    assert_eq!(jenkins.context.pull_request_title.as_deref(), Some("T"));
    let azure = detected(
        "TF_BUILD=True\nBUILD_SOURCEBRANCH=refs/heads/main\nBUILD_SOURCEVERSION=a\nBUILD_BUILDID=77\nSYSTEM_JOBATTEMPT=2\n\
         SYSTEM_JOBPOSITIONINPHASE=1\nSYSTEM_TOTALJOBSINPHASE=2\nBUILD_SOURCESDIRECTORY=/s",
    );
    assert_eq!(azure.context.branch.as_deref(), Some("main"));
    assert_eq!(azure.run_key.as_deref(), Some("azure-pipelines/77"));
    assert_eq!(azure.shard, shard(1, 2));
    let bitbucket =
        detected("BITBUCKET_BUILD_NUMBER=5\nBITBUCKET_BRANCH=main\nBITBUCKET_COMMIT=a\nBITBUCKET_PR_ID=8");
    assert_eq!(bitbucket.run_key.as_deref(), Some("bitbucket-pipelines/5"));
    assert_eq!(bitbucket.context.pull_request_number, Some(8));
    let teamcity = detected(
        "TEAMCITY_VERSION=2026.1\nTEAMCITY_BUILDCONF_NAME=Shop\nBUILD_NUMBER=31\nBUILD_VCS_NUMBER=a",
    );
    assert_eq!(teamcity.run_key.as_deref(), Some("teamcity/Shop#31"));
    for (name, branch) in [("<default>", None), ("main", Some("main"))] {
        let teamcity = detected(&format!("TEAMCITY_VERSION=1\nTEAMCITY_BUILD_BRANCH={name}"));
        assert_eq!(teamcity.context.branch.as_deref(), branch);
    }
    assert_eq!(teamcity.context.commit_sha.as_deref(), Some("a"));
}

#[test]
fn a_job_is_a_suite_and_each_instance_of_it_a_sender() {
    let sender = |text: &str| {
        let ci = detected(text);
        (ci.context.suite, ci.job, ci.job_id, ci.runner)
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        sender("GITHUB_ACTIONS=true\nGITHUB_JOB=e2e\nRUNNER_NAME=GitHub Actions 4"),
        (some("e2e"), some("e2e"), None, some("GitHub Actions 4"))
    );
    assert_eq!(
        sender("GITLAB_CI=true\nCI_JOB_NAME=rspec 1\nCI_JOB_ID=1001"),
        (some("rspec 1"), some("rspec 1"), some("1001"), None)
    );
    for (name, index) in [("rspec 2/3", "2"), ("rspec: [ruby, linux]", "1"), ("rspec", "3")] {
        let text = format!("GITLAB_CI=true\nCI_JOB_NAME={name}\nCI_NODE_INDEX={index}\nCI_NODE_TOTAL=3");
        assert_eq!(sender(&text), (some("rspec"), some(name), None, None));
    }
    assert_eq!(
        sender("GITLAB_CI=true\nCI_JOB_NAME=a 1/2: b\nCI_JOB_GROUP_NAME=a\nCI_NODE_INDEX=1\nCI_NODE_TOTAL=2")
            .0,
        some("a")
    );
    assert_eq!(
        sender("CIRCLECI=true\nCIRCLE_JOB=unit\nCIRCLE_WORKFLOW_JOB_ID=j"),
        (some("unit"), some("unit"), some("j"), None)
    );
    assert_eq!(
        sender("BUILDKITE=true\nBUILDKITE_STEP_KEY=unit\nBUILDKITE_JOB_ID=j"),
        (some("unit"), some("unit"), some("j"), None)
    );
    // The label tells the jobs of a matrix apart.
    assert_eq!(
        sender("BUILDKITE=true\nBUILDKITE_STEP_KEY=unit\nBUILDKITE_LABEL=Unit 3.13\nBUILDKITE_JOB_ID=j"),
        (some("unit"), some("Unit 3.13"), some("j"), None)
    );
    assert_eq!(
        sender("JENKINS_URL=https://ci\nSTAGE_NAME=Unit\nNODE_NAME=built-in\nEXECUTOR_NUMBER=1"),
        (some("Unit"), some("Unit"), None, some("built-in #1"))
    );
    let azure = |text: &str| sender(&format!("TF_BUILD=True\nSYSTEM_JOBID=j\n{text}"));
    assert_eq!(
        azure("SYSTEM_JOBNAME=unit"),
        (some("unit"), some("unit"), some("j"), None)
    );
    // Jobs of one name in two stages are one suite.
    assert_eq!(
        azure("SYSTEM_JOBNAME=unit\nSYSTEM_STAGENAME=Linux"),
        (some("unit"), some("Linux.unit"), some("j"), None)
    );
    assert_eq!(
        azure("SYSTEM_JOBNAME=__default\nSYSTEM_PHASENAME=unit").0,
        some("unit")
    );
    assert_eq!(
        azure("SYSTEM_JOBNAME=slice2\nSYSTEM_PHASENAME=unit\nSYSTEM_JOBPOSITIONINPHASE=2\nSYSTEM_TOTALJOBSINPHASE=3").0,
        some("unit")
    );
    assert_eq!(
        sender("BITBUCKET_BUILD_NUMBER=5\nBITBUCKET_STEP_UUID={s}"),
        (None, None, some("{s}"), None)
    );
    assert_eq!(sender("TEAMCITY_VERSION=2026.1"), (None, None, None, None));
}

/// The first and the second attempt of one job on each service.
#[test]
fn a_job_that_runs_again_has_the_run_key_of_the_first_attempt_and_a_later_attempt() {
    let services = [
        (
            "GITHUB_ACTIONS=true\nGITHUB_RUN_ID=7\nGITHUB_JOB=unit",
            "GITHUB_RUN_ATTEMPT=1\nRUNNER_NAME=GitHub Actions 3",
            "GITHUB_RUN_ATTEMPT=2\nRUNNER_NAME=GitHub Actions 9",
            "github-actions/7",
        ),
        (
            "GITLAB_CI=true\nCI_PIPELINE_ID=4711\nCI_JOB_NAME=unit",
            "CI_JOB_ID=1001",
            "CI_JOB_ID=1044",
            "gitlab-ci/4711",
        ),
        (
            "CIRCLECI=true\nCIRCLE_JOB=unit\nCIRCLE_WORKFLOW_WORKSPACE_ID=w-1",
            "CIRCLE_WORKFLOW_ID=w-1\nCIRCLE_BUILD_NUM=91\nCIRCLE_WORKFLOW_JOB_ID=j",
            "CIRCLE_WORKFLOW_ID=w-2\nCIRCLE_BUILD_NUM=103\nCIRCLE_WORKFLOW_JOB_ID=k",
            "circleci/w-1",
        ),
        (
            "BUILDKITE=true\nBUILDKITE_BUILD_ID=b\nBUILDKITE_STEP_KEY=unit",
            "BUILDKITE_RETRY_COUNT=0\nBUILDKITE_JOB_ID=j",
            "BUILDKITE_RETRY_COUNT=1\nBUILDKITE_JOB_ID=k",
            "buildkite/b",
        ),
        (
            "TF_BUILD=True\nBUILD_BUILDID=77\nSYSTEM_JOBNAME=unit",
            "SYSTEM_JOBATTEMPT=1\nSYSTEM_JOBID=j",
            "SYSTEM_JOBATTEMPT=2\nSYSTEM_JOBID=k",
            "azure-pipelines/77",
        ),
        (
            "BITBUCKET_BUILD_NUMBER=5\nBITBUCKET_PIPELINE_UUID={p}",
            "BITBUCKET_STEP_RUN_NUMBER=1\nBITBUCKET_STEP_UUID={s}",
            "BITBUCKET_STEP_RUN_NUMBER=2\nBITBUCKET_STEP_UUID={t}",
            "bitbucket-pipelines/{p}",
        ),
    ];
    for (build, first, second, key) in services {
        let [first, second] = [first, second].map(|attempt| detected(&format!("{build}\n{attempt}")));
        assert_eq!(first.run_key.as_deref(), Some(key));
        assert_eq!(second.run_key.as_deref(), Some(key));
        assert_eq!(first.job, second.job, "{key}");
        assert!(first.attempt.is_some() && first.attempt < second.attempt, "{key}");
    }
    // On Jenkins and TeamCity, a build that runs again is another build; a retry within it is not known.
    for (first, second) in [
        (
            "JENKINS_URL=u\nJOB_NAME=shop/api\nBUILD_NUMBER=9",
            "JENKINS_URL=u\nJOB_NAME=shop/api\nBUILD_NUMBER=10",
        ),
        // Another job.
        (
            "JENKINS_URL=u\nJOB_NAME=shop/api\nBUILD_NUMBER=9",
            "JENKINS_URL=u\nJOB_NAME=shop-api\nBUILD_NUMBER=9",
        ),
        (
            "TEAMCITY_VERSION=1\nTEAMCITY_BUILD_ID=31",
            "TEAMCITY_VERSION=1\nTEAMCITY_BUILD_ID=32",
        ),
    ] {
        let [first, second] = [first, second].map(detected);
        assert_ne!(first.run_key, second.run_key);
        assert_eq!((first.attempt, second.attempt), (None, None));
    }
}
