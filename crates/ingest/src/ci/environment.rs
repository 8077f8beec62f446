//! Reads the variables of one environment into the context of a run.

use assay_domain::{
    merge_queue::{MergeQueue, numbers_after},
    recording::{RunContext, ShardIndex},
    run::CiProvider,
};

use assay_reports::one_title;

/// The variables with which CI services name the branch into which a change is to be merged.
pub const BASE_BRANCHES: [&str; 6] = [
    "GITHUB_BASE_REF",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
    "CHANGE_TARGET",
    "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
    "BITBUCKET_PR_DESTINATION_BRANCH",
    "SYSTEM_PULLREQUEST_TARGETBRANCH",
];

/// The context that a CI environment gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CiContext {
    /// The CI service. `None` outside of CI.
    pub provider: Option<CiProvider>,
    /// The run's context.
    pub context: RunContext,
    /// The value that all parts of one run share: provider and run id, without the suite's name. A job that runs again
    /// has the same one.
    pub run_key: Option<String>,
    /// The attempt of the job: a count, or an id that grows with each attempt. `None` where the service gives neither.
    pub attempt: Option<u64>,
    /// The job's name. It is also the suite unless the caller names one.
    pub job: Option<String>,
    /// The service's id of this instance of the job. Each attempt has its own.
    pub job_id: Option<String>,
    /// The machine. It distinguishes jobs of one name, such as those of a matrix, where the service gives no id.
    pub runner: Option<String>,
    /// The job's index among the parallel jobs of its name. A shard in the report takes precedence.
    pub shard: Option<ShardIndex>,
    /// The checkout's root.
    pub workspace_root: Option<String>,
    /// The variable of each value, by the value's name in an import: (`branch`, `GITHUB_HEAD_REF`).
    pub sources: Vec<(&'static str, &'static str)>,
}

impl CiContext {
    /// The context of a job that checked out another commit than the one of which the variables speak.
    #[must_use]
    pub fn of_other_commit(mut self, commit: String) -> Self {
        self.sources.retain(|(value, _)| *value != "commit");
        let RunContext {
            ci_provider,
            suite,
            run_url,
            ..
        } = self.context;
        Self {
            run_key: self.run_key.map(|key| format!("{key} {commit}")),
            context: RunContext {
                commit_sha: Some(commit),
                ci_provider,
                suite,
                run_url,
                ..RunContext::default()
            },
            ..self
        }
    }
}

/// Reads the variables of one environment into a context.
pub(super) struct EnvironmentReader<'a> {
    var: &'a dyn Fn(&str) -> Option<String>,
    pub(super) event_file: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    pub(super) detected: CiContext,
    pub(super) run_id: Option<String>,
}

impl<'a> EnvironmentReader<'a> {
    pub(super) fn new(
        var: &'a dyn Fn(&str) -> Option<String>,
        event_file: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Self {
        Self {
            var,
            event_file,
            detected: CiContext::default(),
            run_id: None,
        }
    }

    pub(super) fn begin(&mut self, provider: CiProvider, variable: &'static str) {
        self.detected.provider = Some(provider);
        self.detected.context.ci_provider = Some(provider);
        self.record_source("CI provider", variable);
    }

    pub(super) fn finish(mut self) -> CiContext {
        self.name_base_branch();
        self.name_merge_queue();
        if let (Some(provider), Some(run)) = (self.detected.provider, self.run_id) {
            self.detected.run_key = Some(format!("{provider}/{run}"));
        }
        self.detected
    }

    /// Reads the base branch. One of an event stays where no variable has it.
    fn name_base_branch(&mut self) {
        let base = self.first("base branch", &BASE_BRANCHES);
        let context = &mut self.detected.context;
        context.base_branch = base.as_deref().map(branch_name).or(context.base_branch.take());
    }

    /// Reads the pull requests of a merge queue from its branch. The pull request of the run is the last of them, and not
    /// the draft on which some queues test.
    fn name_merge_queue(&mut self) {
        let context = &mut self.detected.context;
        let message = context.commit_message.as_deref().unwrap_or_default();
        let line = message.lines().next().unwrap_or_default();
        // Bors tests every batch on one of these branches: `Merge #12 #13`, or `Auto merge of #12 - …`.
        let of_bors = match context.branch.as_deref() {
            Some("staging") => line.strip_prefix("Merge #"),
            Some("auto" | "automation/bors/auto") => line.strip_prefix("Auto merge of #"),
            Some(_) | None => None,
        };
        if let Some(rest) = of_bors {
            let numbers = numbers_after(&format!("#{rest}"), "#");
            let named: Vec<String> = numbers.iter().map(|number| format!("pr-{number}")).collect();
            context.branch = Some(format!("bors/{}", named.join("-")));
        }
        let title = context.pull_request_title.as_deref();
        let branch = context.branch.as_deref();
        let queue = branch.and_then(|branch| MergeQueue::of(branch, title));
        let Some(number) = queue.and_then(|queue| queue.pull_requests.last().copied()) else {
            return;
        };
        context.pull_request_number = Some(number);
        let sources = &mut self.detected.sources;
        let of_branch = sources.iter().rfind(|(value, _)| *value == "branch");
        let variable = of_branch.map(|(_, variable)| *variable);
        sources.extend(variable.map(|variable| ("pull request", variable)));
    }

    pub(super) fn record_source(&mut self, value: &'static str, variable: &'static str) {
        self.detected.sources.push((value, variable));
    }

    /// A variable's value. An empty variable counts as not set.
    pub(super) fn get(&self, variable: &str) -> Option<String> {
        (self.var)(variable).as_deref().map(str::trim).and_then(one_title)
    }

    /// The value of the first variable that is set. Records that variable as the source of the value.
    pub(super) fn first(&mut self, value: &'static str, variables: &[&'static str]) -> Option<String> {
        let (variable, text) = variables.iter().find_map(|name| Some((*name, self.get(name)?)))?;
        self.record_source(value, variable);
        Some(text)
    }

    /// Like `first`, for a whole number. Variables with other values are skipped.
    pub(super) fn number(&mut self, value: &'static str, variables: &[&'static str]) -> Option<i64> {
        let (variable, number) = variables
            .iter()
            .find_map(|name| Some((*name, self.get(name)?.parse::<i64>().ok()?)))?;
        self.record_source(value, variable);
        Some(number)
    }

    pub(super) fn branch(&mut self, variables: &[&'static str]) {
        let branch = self.first("branch", variables);
        self.detected.context.branch = branch.as_deref().map(branch_name);
    }

    /// Drops the branch if it is this word, which the service uses where it knows none.
    pub(super) fn branch_is_none_if(&mut self, word: &str) {
        let branch = &mut self.detected.context.branch;
        *branch = branch.take().filter(|branch| branch != word);
    }

    /// Names the branch of a pull request's fork `owner:branch`, as the services show it. A fork's `main` is not the
    /// stable branch, and no branch name may contain a colon.
    pub(super) fn branch_is_of_fork(&mut self, owner: &str) {
        if let Some(branch) = self.detected.context.branch.as_mut()
            && !branch.contains(':')
        {
            *branch = format!("{owner}:{branch}");
        }
    }

    pub(super) fn commit(&mut self, variables: &[&'static str]) {
        self.detected.context.commit_sha = self.first("commit", variables).filter(|sha| sha != "HEAD");
    }

    pub(super) fn pull_request(&mut self, numbers: &[&'static str], titles: &[&'static str]) {
        self.detected.context.pull_request_number =
            self.number("pull request", numbers).filter(|number| *number > 0);
        if self.detected.context.pull_request_number.is_some() {
            self.detected.context.pull_request_title = self.first("pull request title", titles);
        }
    }

    pub(super) fn run(&mut self, variables: &[&'static str]) {
        self.run_id = self.first("run key", variables);
    }

    /// The run by its job and the number of its build, for a service without ids of builds.
    pub(super) fn run_of_job(&mut self, job: &str, number: &'static str) {
        let (job, number_of_build) = (self.get(job), self.get(number));
        self.run_id = job
            .zip(number_of_build)
            .map(|(job, number)| format!("{job}#{number}"));
        if self.run_id.is_some() {
            self.record_source("run key", number);
        }
    }

    /// The job's name, which is also the suite.
    pub(super) fn job(&mut self, variables: &[&'static str]) {
        self.detected.job = self.first("suite", variables);
        self.detected.context.suite.clone_from(&self.detected.job);
    }

    pub(super) fn root(&mut self, variables: &[&'static str]) {
        self.detected.workspace_root = self.first("root", variables);
    }

    /// The attempt of the job. The service counts from `base`, or gives an id that grows with each attempt.
    pub(super) fn attempt(&mut self, variable: &'static str, base: i64) {
        let attempt = self.number("attempt", &[variable]);
        self.detected.attempt = attempt
            .and_then(|number| number.checked_sub(base)?.checked_add(1))
            .filter(|number| (1..i64::MAX).contains(number))
            .and_then(|number| u64::try_from(number).ok());
    }

    /// The shard. The service counts shards from `base`; a single job is not a shard.
    pub(super) fn shard(&mut self, index_variable: &'static str, total_variable: &'static str, base: i64) {
        let number = |name: &str| self.get(name).and_then(|text| text.parse::<i64>().ok());
        let (Some(index), Some(total)) = (number(index_variable), number(total_variable)) else {
            return;
        };
        let (Some(index), Ok(total)) = (counted_from_one(index, base), u32::try_from(total)) else {
            return;
        };
        if total > 1 && index >= 1 && index <= total {
            self.record_source("shard", index_variable);
            self.detected.shard = Some(ShardIndex {
                index,
                total: Some(total),
            });
        }
    }
}

/// The name of a branch without the prefixes of references.
fn branch_name(branch: &str) -> String {
    let local = branch.strip_prefix("refs/heads/");
    let branch = local
        .or_else(|| branch.strip_prefix("refs/remotes/"))
        .unwrap_or(branch);
    branch.strip_prefix("origin/").unwrap_or(branch).to_owned()
}

/// A number that its service counts from `base`, counted from 1.
fn counted_from_one(number: i64, base: i64) -> Option<u32> {
    let number = number.checked_sub(base)?.checked_add(1)?;
    u32::try_from(number).ok()
}

/// Owner and repository of an address such as `https://host/owner/name.git` or `git@host:owner/name.git`.
pub(super) fn owner_and_name(address: &str) -> Option<(String, String)> {
    let address = address.trim_end_matches('/');
    let address = address.strip_suffix(".git").unwrap_or(address).to_lowercase();
    let (rest, name) = address.rsplit_once('/')?;
    let owner = rest.rsplit(['/', ':']).next().filter(|owner| !owner.is_empty())?;
    Some((owner.to_owned(), name.to_owned()))
}
