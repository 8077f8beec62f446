//! Commands of git.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    process::{Command, Stdio},
};

use assay_domain::{recording::RunContext, revision::is_same_revision, timestamp::Timestamp};
use assay_ingest::ci::BASE_BRANCHES;

/// A command of git failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("git cannot be run")]
    NotRun(#[source] io::Error),
    /// It ended with another status than 0.
    #[error("git {command}: {message}")]
    Failed {
        /// The subcommand.
        command: String,
        /// Its standard error.
        message: String,
    },
}

/// The standard output of a git command in a folder.
pub fn git(folder: &Path, arguments: &[&str]) -> Result<String, GitError> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(GitError::NotRun)?;
    if !output.status.success() {
        return Err(GitError::Failed {
            command: arguments.first().copied().unwrap_or_default().to_owned(),
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The time of the checked-out commit of a folder, which all machines of a build have in common; none without one.
pub fn commit_time(folder: &Path) -> Option<Timestamp> {
    let shown = git(folder, &["show", "--no-patch", "--format=%ct", "HEAD"]).ok()?;
    let seconds = shown.trim().parse::<i64>().ok()?;
    Some(Timestamp::from_unix_ms(seconds.saturating_mul(1_000)))
}

/// The variables with which GitLab names the commit that a change goes to. With merged results, which contain the newest
/// commit of the target, it is the first one.
const TARGET_COMMITS: [&str; 2] = [
    "CI_MERGE_REQUEST_TARGET_BRANCH_SHA",
    "CI_MERGE_REQUEST_DIFF_BASE_SHA",
];

/// The commit of the target branch from which the checked-out code began. The target is that of CI's variables, else the
/// default branch of `origin`.
///
/// None if it is not known: without git or its history, as in a shallow clone, if the contexts name only other commits
/// than the checked-out one, or if the target has that commit.
pub fn merge_base(
    folder: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
    contexts: [&RunContext; 2],
) -> Option<String> {
    let commits = contexts.map(|of| [&of.commit_sha, &of.tested_revision]);
    let commits: Vec<&String> = commits.into_iter().flatten().flatten().collect();
    let found = || {
        if git(folder, &["rev-parse", "--is-shallow-repository"])?.trim() != "false" {
            return Ok(None);
        }
        let head = git(folder, &["rev-parse", "HEAD"])?;
        let head = head.trim();
        if !commits.is_empty() && !commits.iter().any(|commit| is_same_revision(commit, head)) {
            return Ok(None);
        }
        let base = base_of_target(folder, variable)?;
        Ok(Some(base).filter(|base| base != head))
    };
    found().unwrap_or_else(|error: GitError| {
        log::debug!("the merge base is not known: {error}");
        None
    })
}

/// The checked-out commit, if the job checked out other code than that of which CI's variables speak. A commit that the job
/// made from that code is none.
///
/// None without git, and in a checkout of another repository than that of the CI run's page.
pub fn other_commit(
    folder: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
    ci: &RunContext,
) -> Option<String> {
    // After another workflow, the context is that one's, and the checkout is often that of the default branch.
    let checked_out = ["GITHUB_SHA", "CI_COMMIT_SHA"]
        .iter()
        .find_map(|name| variable(name));
    let named = [&ci.commit_sha, &ci.tested_revision, &checked_out];
    let named: Vec<&String> = named.into_iter().flatten().collect();
    let shown = |arguments: &[&str]| Some(git(folder, arguments).ok()?.trim().to_owned());
    let head = shown(&["rev-parse", "HEAD"])?;
    if named.is_empty() || named.iter().any(|commit| is_same_revision(commit, &head)) {
        return None;
    }
    if let Some(origin) = shown(&["remote", "get-url", "origin"]) {
        let mut parts = origin.trim_end_matches(".git").rsplit(['/', ':']);
        let (name, owner) = (parts.next()?, parts.next()?);
        let repository = format!("/{owner}/{name}/").to_lowercase();
        ci.run_url
            .as_ref()
            .filter(|page| page.to_lowercase().contains(&repository))?;
    }
    let is_of_other_branch =
        shown(&["symbolic-ref", "--short", "HEAD"]).is_some_and(|own| ci.branch != Some(own));
    let published = shown(&["for-each-ref", "--count=1", "--contains", &head, "refs/remotes"])?;
    let began_at = |commit: &&String| git(folder, &["merge-base", "--is-ancestor", commit, &head]).is_ok();
    let is_of_job = !is_of_other_branch && published.is_empty() && named.iter().any(began_at);
    (!is_of_job).then_some(head)
}

/// The files that differ from the commit at which the checked-out branch began, relative to the checkout. The target is
/// that of CI's variables, else the default branch of `origin`.
pub fn changed_files(
    folder: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<BTreeSet<String>, GitError> {
    let base = base_of_target(folder, variable)?;
    let listed = git(folder, &["diff", "--name-only", "-z", &base, "HEAD", "--"])?;
    let names = listed.split('\0').filter(|name| !name.is_empty());
    Ok(names.map(str::to_owned).collect())
}

fn base_of_target(folder: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, GitError> {
    let named = TARGET_COMMITS
        .iter()
        .chain(&BASE_BRANCHES)
        .find_map(|name| variable(name).filter(|value| !value.is_empty()));
    let target = named.unwrap_or_else(|| "HEAD".to_owned());
    let target = target.strip_prefix("refs/heads/").unwrap_or(&target);
    let base =
        git(folder, &["merge-base", "HEAD", &format!("origin/{target}")]).or_else(|error| match target {
            "HEAD" => Err(error),
            target => git(folder, &["merge-base", "--end-of-options", "HEAD", target]),
        })?;
    Ok(base.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_job_that_checked_out_other_code_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (origin, clone) = (folder.path().join("shop/web"), folder.path().join("clone"));
        fs::create_dir_all(&origin).unwrap();
        let commit = |folder: &Path, message: &str| {
            run(folder, &["commit", "--quiet", "--allow-empty", "-m", message]);
            git(folder, &["rev-parse", "HEAD"]).unwrap().trim().to_owned()
        };
        run(&origin, &["init", "--quiet", "--initial-branch=main"]);
        let main = commit(&origin, "one");
        run(&origin, &["switch", "--quiet", "-c", "release/1.2"]);
        let release = commit(&origin, "two");
        let [from, to] = [&origin, &clone].map(|path| path.display().to_string());
        run(folder.path(), &["clone", "--quiet", "--branch=main", &from, &to]);
        let other = |page: &str, sha: Option<&str>, context_commit: &str| {
            let ci = RunContext {
                branch: Some("main".to_owned()),
                commit_sha: Some(context_commit.to_owned()),
                run_url: Some(page.to_owned()),
                ..RunContext::default()
            };
            let variable = |name: &str| sha.filter(|_| name == "GITHUB_SHA").map(str::to_owned);
            other_commit(&clone, &variable, &ci)
        };
        const PAGE: &str = "https://ci.test/Shop/web/actions/runs/7";
        assert_eq!(other(PAGE, Some(&main), &main), None);
        // After another workflow, on the default branch.
        assert_eq!(other(PAGE, Some(&main), "c0ffee00"), None);
        let made = commit(&clone, "the job sets a version");
        assert_eq!(other(PAGE, Some(&main), &main), None);
        assert_eq!(other(PAGE, None, "c0ffee00"), Some(made));
        run(&clone, &["switch", "--quiet", "release/1.2"]);
        assert_eq!(other(PAGE, Some(&main), &main), Some(release));
        assert_eq!(
            other("https://ci.test/shop/tests/actions/runs/7", Some(&main), &main),
            None
        );
        assert_eq!(
            other_commit(folder.path(), &|_| None, &RunContext::default()),
            None
        );
    }

    fn run(folder: &Path, arguments: &[&str]) {
        let user = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        git(folder, &[&user[..], arguments].concat()).unwrap();
    }

    #[test]
    fn the_changed_files_are_those_since_the_branch_began() {
        let folder = tempfile::tempdir().unwrap();
        let (origin, clone) = (folder.path().join("origin"), folder.path().join("clone"));
        fs::create_dir(&origin).unwrap();
        run(&origin, &["init", "--quiet", "--initial-branch=main"]);
        fs::write(origin.join("old.py"), "").unwrap();
        run(&origin, &["add", "."]);
        run(&origin, &["commit", "--quiet", "-m", "one"]);
        let [from, to] = [&origin, &clone].map(|path| path.display().to_string());
        run(folder.path(), &["clone", "--quiet", &from, &to]);
        run(&clone, &["switch", "--quiet", "-c", "feature"]);
        fs::write(clone.join("über test.py"), "").unwrap();
        run(&clone, &["add", "."]);
        run(&clone, &["commit", "--quiet", "-m", "two"]);
        // The target goes on meanwhile.
        fs::write(origin.join("other.py"), "").unwrap();
        run(&origin, &["add", "."]);
        run(&origin, &["commit", "--quiet", "-m", "three"]);
        run(&clone, &["fetch", "--quiet"]);
        let changed = |target: Option<&str>| {
            let variable = |name: &str| target.filter(|_| name == "CHANGE_TARGET").map(str::to_owned);
            changed_files(&clone, &variable)
        };
        let expected = BTreeSet::from(["über test.py".to_owned()]);
        for target in [None, Some("main"), Some("refs/heads/main"), Some("HEAD~1")] {
            assert_eq!(changed(target).unwrap(), expected, "{target:?}");
        }
        assert!(changed(Some("absent")).is_err());
        let head = |folder: &Path| git(folder, &["rev-parse", "HEAD"]).unwrap().trim().to_owned();
        let began = git(&clone, &["rev-parse", "HEAD~1"]).unwrap().trim().to_owned();
        let base = |folder: &Path, target: &str, commits: &[&str]| {
            let variable = |name: &str| (name == "GITHUB_BASE_REF").then(|| target.to_owned());
            let mut commits = commits.iter().map(|commit| (*commit).to_owned());
            let context = RunContext {
                commit_sha: commits.next(),
                tested_revision: commits.next(),
                ..RunContext::default()
            };
            merge_base(folder, &variable, [&RunContext::default(), &context])
        };
        assert_eq!(base(&clone, "main", &[]).as_deref(), Some(began.as_str()));
        assert_eq!(
            base(&clone, "main", &["c0ffee00", &head(&clone)[..8]]),
            Some(began)
        );
        // Another commit was tested, the target has everything, the target is not here, and there is no repository.
        assert_eq!(base(&clone, "main", &["c0ffee00"]), None);
        assert_eq!(base(&clone, "feature", &[]), None);
        assert_eq!(base(&clone, "absent", &[]), None);
        assert_eq!(base(folder.path(), "main", &[]), None);
        let shallow = folder.path().join("shallow").display().to_string();
        let of_clone = format!("file://{}", clone.display());
        run(
            folder.path(),
            &[
                "clone",
                "--quiet",
                "--depth=1",
                "--no-single-branch",
                &of_clone,
                &shallow,
            ],
        );
        run(Path::new(&shallow), &["switch", "--quiet", "feature"]);
        assert_eq!(base(Path::new(&shallow), "main", &[]), None);
        assert!(commit_time(&clone).is_some() && commit_time(folder.path()).is_none());
    }
}
