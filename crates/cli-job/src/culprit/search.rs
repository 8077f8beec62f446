//! The search among the commits of a repository.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
};

use assay_cli_local::sources::git::{GitError, git};
use assay_cli_terminal::{output, progress::Progress};
use assay_flakiness::plan::bisection::{Bisection, NextStep};

use crate::culprit::{
    history::{History, USUAL_RATE},
    worktree::Worktree,
};

/// The exit statuses with which a command says that it cannot test a commit, as for `git bisect run`, and those of a shell for a
/// command that cannot be started.
const CANNOT_RUN: std::ops::RangeInclusive<i32> = 125..=127;
/// The largest number of commits of a search.
const MOST_COMMITS: usize = 10_000;

/// The reason why a search ends without an answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The repository lacks the commits.
    #[error("the commits {range} are not in this repository; fetch them")]
    Unknown {
        /// From the good to the bad commit.
        range: String,
        /// The answer of git.
        source: GitError,
    },
    /// Nothing is between them.
    #[error("there is no commit in {0}")]
    NoCommit(String),
    /// Too many are between them.
    #[error("{range} has {commits} commits, more than {MOST_COMMITS}; give a later --good")]
    TooMany {
        /// From the good to the bad commit.
        range: String,
        /// The number of commits.
        commits: usize,
    },
    /// A command of git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is no temporary folder for the worktree.
    #[error("a temporary folder")]
    Folder(#[source] io::Error),
    /// The shell cannot be started.
    #[error("--run")]
    NotRun(#[source] io::Error),
    /// The command did not end by itself, or the search was ended.
    #[error("a signal ended the search on {0}")]
    Signal(String),
}

/// A search for the commit that broke a test.
#[derive(Debug)]
pub struct Search {
    repository: PathBuf,
    /// The commits, oldest first.
    commits: Vec<String>,
    bisection: Bisection,
    flake_rate: f64,
    /// Whether neither a flag nor a history says how often the test fails by itself.
    is_assumed: bool,
    /// The newest commit, as it was given.
    bad: String,
    runs: u32,
}

impl Search {
    /// A search among the commits after `good` until `bad`. Without `flake_rate`, the test fails by itself as often as in
    /// its history.
    pub fn new(
        repository: &Path,
        (good, bad): (&str, &str),
        history: Option<&History>,
        flake_rate: Option<f64>,
    ) -> Result<Self, SearchError> {
        let commits = commits(repository, good, bad)?;
        let known = flake_rate.or_else(|| history.and_then(History::flake_rate));
        let flake_rate = known.unwrap_or(USUAL_RATE);
        let mut bisection = Bisection::new(commits.len(), flake_rate);
        let places: HashMap<&str, usize> = commits
            .iter()
            .enumerate()
            .map(|(place, commit)| (commit.as_str(), place))
            .collect();
        for (commit, failed) in history.into_iter().flat_map(History::results) {
            if let Some(place) = places.get(commit) {
                bisection.add(*place, failed);
            }
        }
        // The failed commit of the search is known to have failed once, where no history has it.
        if history.is_none() {
            bisection.add(commits.len() - 1, true);
        }
        Ok(Self {
            repository: repository.to_path_buf(),
            commits,
            bisection,
            flake_rate,
            is_assumed: known.is_none(),
            bad: bad.to_owned(),
            runs: 0,
        })
    }

    /// One line about what is searched.
    pub fn in_words(&self) -> String {
        format!(
            "{} from {} to {}; {} in {:.1} % of its runs",
            output::count(self.commits.len(), "commit"),
            short(self.commits.first().map_or("", String::as_str)),
            short(&self.bad),
            match self.is_assumed {
                true => "without --flake-rate the test is assumed to fail by itself",
                false => "the test fails by itself",
            },
            100.0 * self.flake_rate
        )
    }

    /// Runs commits in a worktree until the culprit is found, at most this often. Notes each result. `status` runs the
    /// commit of a folder and returns the exit status; none if a signal ended it. The worktree is removed at the end.
    pub fn run(
        &mut self,
        progress: &dyn Progress,
        most_runs: u32,
        mut status: impl FnMut(&Path) -> io::Result<Option<i32>>,
    ) -> Result<(), SearchError> {
        let mut worktree = None;
        loop {
            let place = match self.bisection.next_step() {
                NextStep::Run { commit, .. } => commit,
                NextStep::Found(merge) if self.search_merged(progress, merge)? => continue,
                NextStep::Found(_) | NextStep::NotBroken | NextStep::Stuck => break,
            };
            if self.runs >= most_runs {
                progress.note(&format!("stopped after {} runs (--most-runs)", self.runs));
                break;
            }
            let commit = self.commits.get(place).map_or("", String::as_str);
            let worktree = match &mut worktree {
                Some(worktree) => worktree,
                None => worktree.insert(Worktree::new(progress, &self.repository, commit)?),
            };
            worktree.check_out(commit)?;
            self.runs += 1;
            let result = match status(worktree.folder()).map_err(SearchError::NotRun)? {
                Some(status) if CANNOT_RUN.contains(&status) => {
                    self.bisection.skip(place);
                    "cannot be run"
                }
                Some(0) => {
                    self.bisection.add(place, false);
                    "passed"
                }
                Some(_) => {
                    self.bisection.add(place, true);
                    "failed"
                }
                None => return Err(SearchError::Signal(short(commit).to_owned())),
            };
            progress.note(&format!("run {}: {} {result}", self.runs, short(commit)));
        }
        Ok(())
    }

    /// Adds the commits of the branch that a merge brought, to search among them. Whether there are any.
    fn search_merged(&mut self, progress: &dyn Progress, merge: usize) -> Result<bool, SearchError> {
        let Some(commit) = self.commits.get(merge).cloned() else {
            return Ok(false);
        };
        let parents = git(
            &self.repository,
            &[
                "rev-list",
                "--parents",
                "-n",
                "1",
                "--end-of-options",
                &commit,
                "--",
            ],
        )?;
        let parents: Vec<&str> = parents.split_whitespace().skip(1).collect();
        let [main, branch, ..] = parents.as_slice() else {
            return Ok(false);
        };
        let merged = match commits(&self.repository, main, branch) {
            Ok(merged) => merged,
            Err(SearchError::NoCommit(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        if merged.iter().any(|commit| self.commits.contains(commit)) {
            return Ok(false);
        }
        let count = output::count(merged.len(), "commit");
        progress.note(&format!(
            "{} broke the test, and merged {count}: searching among them",
            short(&commit)
        ));
        self.bisection.insert(merge, merged.len());
        self.commits.splice(merge..merge, merged);
        Ok(true)
    }

    pub(crate) fn commits(&self) -> &[String] {
        &self.commits
    }

    pub(crate) const fn bisection(&self) -> &Bisection {
        &self.bisection
    }

    pub(crate) const fn runs(&self) -> u32 {
        self.runs
    }

    /// A commit and its subject on one line.
    pub(crate) fn subject(&self, commit: &str) -> String {
        let line = git(
            &self.repository,
            &["log", "-1", "--format=%h %s", "--end-of-options", commit],
        );
        let line = line.unwrap_or_else(|_| short(commit).to_owned());
        assay_reports::shown_name(line.trim()).chars().take(72).collect()
    }
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// The commits after `good` until `bad`, oldest first.
fn commits(repository: &Path, good: &str, bad: &str) -> Result<Vec<String>, SearchError> {
    let range = format!("{good}..{bad}");
    let listed = git(
        repository,
        &[
            "rev-list",
            "--reverse",
            "--first-parent",
            "--end-of-options",
            &range,
            "--",
        ],
    );
    let listed = match listed {
        Ok(listed) => listed,
        Err(source) => return Err(SearchError::Unknown { range, source }),
    };
    let commits: Vec<String> = listed.lines().map(str::to_owned).collect();
    match commits.len() {
        0 => Err(SearchError::NoCommit(range)),
        commits if commits > MOST_COMMITS => Err(SearchError::TooMany { range, commits }),
        _ => Ok(commits),
    }
}

#[cfg(test)]
mod tests {
    use crate::culprit::Answer;

    use super::*;

    /// A repository with this many commits, in which `broken` is there from one of them on.
    fn repository(commits: usize, culprit: usize) -> (tempfile::TempDir, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| git(folder.path(), arguments).unwrap().trim().to_owned();
        git(&["init", "--quiet"]);
        let names = (0..commits).map(|number| {
            if number == culprit {
                std::fs::write(folder.path().join("broken"), "").unwrap();
                git(&["add", "broken"]);
            }
            let message = format!("Change {number}");
            let user = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            git(&[&user[..], &["commit", "--quiet", "--allow-empty", "-m", &message]].concat());
            git(&["rev-parse", "HEAD"])
        });
        let names = names.collect();
        (folder, names)
    }

    #[test]
    fn the_commit_that_breaks_the_command_is_found_and_the_worktree_removed() {
        let (folder, names) = repository(9, 5);
        let mut search = Search::new(folder.path(), (&names[0], &names[8]), None, Some(0.05)).unwrap();
        let words = search.in_words();
        assert!(words.starts_with("8 commits from "), "{words}");
        assert!(
            words.ends_with("; the test fails by itself in 5.0 % of its runs"),
            "{words}"
        );
        let passes = |folder: &Path| Ok(Some(i32::from(folder.join("broken").exists())));
        search.run(&(), 50, passes).unwrap();
        assert_eq!(
            search.bisection().next_step(),
            NextStep::Found(4),
            "{:?}",
            search.bisection()
        );
        let answer = Answer::of(&search);
        assert!(
            answer.in_words().contains("Change 5 broke the test\n"),
            "{}",
            answer.in_words()
        );
        let value = answer.to_json();
        assert_eq!(value["commit"], names[5].as_str());
        assert_eq!(value["outcome"], "found");
        let worktrees = git(folder.path(), &["worktree", "list"]).unwrap();
        assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
    }

    #[test]
    fn commits_that_cannot_run_leave_the_search_open_or_stuck() {
        let (folder, names) = repository(4, 2);
        let mut search = Search::new(folder.path(), (&names[0], &names[3]), None, None).unwrap();
        let words = search.in_words();
        assert!(
            words.ends_with("is assumed to fail by itself in 5.0 % of its runs"),
            "{words}"
        );
        let open = Answer::of(&search).to_json();
        assert_eq!(open["outcome"], "open");
        assert!(open["next"]["times"].as_u64().unwrap() >= 1, "{open}");
        search.run(&(), 50, |_| Ok(Some(125))).unwrap();
        assert_eq!(search.runs(), 3);
        let answer = Answer::of(&search);
        assert_eq!(answer.to_json()["outcome"], "stuck");
        assert_eq!(answer.to_json()["cannotRun"].as_array().unwrap().len(), 3);
        // Two of four do not build, and the culprit is one of them or the next one.
        let (folder, names) = repository(6, 3);
        let mut search = Search::new(folder.path(), (&names[0], &names[5]), None, Some(0.05)).unwrap();
        let status = |folder: &Path| {
            let subject = git(folder, &["log", "-1", "--format=%s"]).unwrap();
            let does_not_build = ["Change 2", "Change 3"].contains(&subject.trim());
            let failed = i32::from(folder.join("broken").exists());
            Ok(Some(if does_not_build { 127 } else { failed }))
        };
        search.run(&(), 50, status).unwrap();
        let words = Answer::of(&search).in_words();
        assert!(words.starts_with("One of 3 commits broke the test"), "{words}");
        let left_out = words.lines().nth(1).unwrap();
        assert!(
            left_out.contains("Change 2, ") && left_out.contains("Change 3"),
            "{words}"
        );
    }

    #[test]
    fn the_commit_of_a_merged_branch_is_found() {
        let (folder, names) = repository(3, 99);
        let git = |arguments: &[&str]| git(folder.path(), arguments).unwrap().trim().to_owned();
        let user = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let main = git(&["rev-parse", "--abbrev-ref", "HEAD"]);
        git(&["checkout", "--quiet", "-b", "feature", &names[1]]);
        let mut culprit = String::new();
        for number in 0..4 {
            if number == 2 {
                std::fs::write(folder.path().join("broken"), "").unwrap();
                git(&["add", "broken"]);
            }
            let message = format!("Feature {number}");
            git(&[&user[..], &["commit", "--quiet", "--allow-empty", "-m", &message]].concat());
            if number == 2 {
                culprit = git(&["rev-parse", "HEAD"]);
            }
        }
        git(&["checkout", "--quiet", &main]);
        git(&[
            &user[..],
            &["merge", "--quiet", "--no-ff", "-m", "Merge", "feature"],
        ]
        .concat());
        let mut search = Search::new(folder.path(), (&names[0], "HEAD"), None, Some(0.05)).unwrap();
        let passes = |folder: &Path| Ok(Some(i32::from(folder.join("broken").exists())));
        search.run(&(), 50, passes).unwrap();
        assert_eq!(Answer::of(&search).to_json()["commit"], culprit.as_str());
    }

    #[test]
    fn a_range_without_commits_is_refused() {
        let (folder, names) = repository(2, 1);
        let refused =
            |good: &str, bad: &str| Search::new(folder.path(), (good, bad), None, None).unwrap_err();
        assert!(matches!(refused(&names[1], &names[0]), SearchError::NoCommit(_)));
        let file = folder.path().join("kept");
        std::fs::write(&file, "text").unwrap();
        for good in ["absent".to_owned(), format!("--output={}", file.display())] {
            assert!(matches!(refused(&good, &names[0]), SearchError::Unknown { .. }));
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "text");
    }
}
