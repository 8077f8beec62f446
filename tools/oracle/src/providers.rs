//! The values that each CI service's variables provide for a run.

use serde_json::{Value, json};

use crate::{
    clock::HOUR,
    comparison::Comparison,
    dice::Dice,
    http::{Client, escape},
    importer, playwright, small,
    stack::Stack,
    world::Organization,
};

type Variables = &'static [(&'static str, &'static str)];
/// The variables of a job's index and of the number of jobs, and the first index.
type Count = (&'static str, &'static str, u32);

const SHA: &str = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee01";

/// The provider, its variables, and those that count its jobs.
const PROVIDERS: [(&str, Variables, Option<Count>); 6] = [
    (
        "github-actions",
        &[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_SHA", SHA),
            ("GITHUB_RUN_ID", "31"),
            ("GITHUB_RUN_ATTEMPT", "1"),
            ("GITHUB_REF_NAME", "ci/branch"),
        ],
        None,
    ),
    (
        "gitlab-ci",
        &[
            ("GITLAB_CI", "true"),
            ("CI_COMMIT_SHA", SHA),
            ("CI_PIPELINE_ID", "32"),
            ("CI_COMMIT_REF_NAME", "ci/branch"),
        ],
        Some(("CI_NODE_INDEX", "CI_NODE_TOTAL", 1)),
    ),
    (
        "circleci",
        &[
            ("CIRCLECI", "true"),
            ("CIRCLE_SHA1", SHA),
            ("CIRCLE_WORKFLOW_ID", "33"),
            ("CIRCLE_BRANCH", "ci/branch"),
        ],
        Some(("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0)),
    ),
    (
        "buildkite",
        &[
            ("BUILDKITE", "true"),
            ("BUILDKITE_COMMIT", SHA),
            ("BUILDKITE_BUILD_ID", "34"),
            ("BUILDKITE_BRANCH", "ci/branch"),
            ("BUILDKITE_PULL_REQUEST", "false"),
        ],
        Some(("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0)),
    ),
    (
        "jenkins",
        &[
            ("JENKINS_URL", "https://ci.example.org/"),
            ("GIT_COMMIT", SHA),
            ("BUILD_TAG", "jenkins-35"),
            ("GIT_BRANCH", "origin/ci/branch"),
        ],
        None,
    ),
    (
        "azure-pipelines",
        &[
            ("TF_BUILD", "True"),
            ("BUILD_SOURCEVERSION", SHA),
            ("BUILD_BUILDID", "36"),
            ("BUILD_SOURCEBRANCH", "refs/heads/ci/branch"),
        ],
        Some(("SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE", 1)),
    ),
];

/// Two jobs of each service whose variables identify shards: they are two shards of one run. One job of each other
/// service.
pub fn providers(comparison: &mut Comparison, stack: &Stack, organization: &Organization, now: i64) {
    let mut project = small::project("Providers");
    importer::create_project(stack, &organization.id, &mut project, comparison);
    let client = Client::new(stack.address(), &organization.key);
    let mut dice = Dice::new(23, "providers");
    for (provider, variables, counted) in PROVIDERS {
        let mut ids = Vec::new();
        for job in 0..counted.map_or(1, |_| 2) {
            let title = format!("test {job}");
            let run = small::run(
                &format!("{provider}-{job}"),
                "",
                now - HOUR,
                &[(&title, 'P')],
                &mut dice,
            );
            let file = stack.file(
                "job.json",
                playwright::report(&run, &run.shards[0], false)
                    .to_string()
                    .as_bytes(),
            );
            let mut all: Vec<(String, String)> = variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            if let Some((index, total, first)) = counted {
                all.push((index.to_owned(), (first + job).to_string()));
                all.push((total.to_owned(), "2".to_owned()));
            }
            let arguments = ["import", "--json", "--project", &project.id, &file].map(str::to_owned);
            let output = stack.assay(&arguments, &all.into_iter().collect(), b"");
            comparison.same(
                &format!("an import under {provider}: {}", output.err),
                &output.status,
                &0,
            );
            let imported: Value = serde_json::from_str(&output.out).unwrap_or_default();
            ids.push(imported["runId"].as_str().unwrap_or_default().to_owned());
        }
        comparison.holds(ids.iter().all(|id| *id == ids[0]), || {
            format!("the jobs of {provider} are the runs {ids:?}")
        });
        let detail = client
            .get(&format!("/projects/{}/runs/{}", escape(&project.id), ids[0]))
            .json_or_null();
        comparison.matches(
            provider,
            &detail["run"],
            &json!({"ciProvider": provider, "branch": "ci/branch", "commitSha": SHA, "pullRequestNumber": null}),
        );
        let indexes: Vec<u64> = detail["run"]["shards"]["received"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|s| s["index"].as_u64())
            .collect();
        let wanted: &[u64] = if counted.is_some() { &[1, 2] } else { &[] };
        comparison.same(&format!("shards under {provider}"), &indexes.as_slice(), &wanted);
        comparison.same(
            &format!("status under {provider}"),
            &detail["run"]["status"].as_str(),
            &Some("passed"),
        );
    }
}
