//! A test or an error that may deserve an issue.

use assay_answers::{
    links::{self, PublicPages},
    markdown::{code, fenced, one_line},
};
use assay_domain::{
    fix::{FixState, WatchedFix},
    id::ProjectId,
    signature::Signature,
    test::TestName,
    timestamp::Timestamp,
    verdict::{VerdictEntry, VerdictStatus},
};
use serde::{Deserialize, Serialize};

/// The days of history by which the server judges a fix.
const WATCH_DAYS: i64 = 30;

/// Most characters of a name in a title. GitLab takes 255 in all.
const LONGEST_NAME: usize = 200;

/// What an issue is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Subject {
    /// A test.
    Test(TestName),
    /// An error of several tests, by its fingerprint.
    Error(String),
}

/// The state of a problem. An issue has one comment for each change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// The test is flaky.
    Flaky,
    /// The test is broken.
    Broken,
    /// The test is neither.
    Quiet,
    /// A fix is claimed, and the stable branch has not shown enough of it.
    Watched,
    /// The last fix held.
    Held,
    /// The test failed after the last fix.
    DidNotHold,
    /// The error occurs.
    Occurs,
    /// An older issue is about the same.
    Second,
}

impl State {
    /// Whether a problem without an issue gets one.
    pub(super) const fn needs_an_issue(self) -> bool {
        matches!(self, Self::Flaky | Self::Broken | Self::DidNotHold | Self::Occurs)
    }

    /// Whether an issue is closed here in this state. It may have a successor.
    pub(super) const fn is_final(self) -> bool {
        matches!(self, Self::Held | Self::Second)
    }
}

/// Where the project is, and when.
#[derive(Debug, Clone)]
pub struct Place {
    /// The project.
    pub project: ProjectId,
    /// Its pages.
    pub pages: PublicPages,
    /// Its stable branch.
    pub stable_branch: String,
    /// When the server was asked.
    pub now: Timestamp,
}

/// Whether an issue is about the test of an entry, also by a former name. A branch may report the test by one.
pub(super) fn is_about_test(subject: &Subject, entry: &VerdictEntry) -> bool {
    matches!(subject, Subject::Test(test) if entry.test() == *test || entry.former_names.contains(test))
}

/// Whether the verdict is broken.
pub(super) fn is_broken(entry: &VerdictEntry) -> bool {
    entry.status == VerdictStatus::Broken
}

/// The newest claim at `now`, unless its fix held and the test failed since: that is another flake. The commit of an old
/// claim may be gone from what the server answers, or never have come.
fn last_claim(fixes: &[WatchedFix], now: Timestamp) -> Option<&WatchedFix> {
    let ends = now.plus_days(-WATCH_DAYS);
    let claims = fixes.iter().filter(|claim| match claim.shown.state {
        FixState::Unproved => false,
        FixState::Waiting => claim.fix.stored_at >= ends,
        FixState::Watching | FixState::Held | FixState::DidNotHold | FixState::FailsDifferently => true,
    });
    let newest = claims.max_by_key(|claim| claim.fix.stored_at);
    newest.filter(|claim| claim.shown.state != FixState::Held || claim.shown.failed_run.is_none())
}

/// A test or an error with what an issue says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The test or the error.
    pub(super) subject: Subject,
    /// Its state.
    pub(super) state: State,
    former: Vec<TestName>,
    /// The kind of its issue, as a label.
    pub label: &'static str,
    /// The title of its issue: the kind in words, and the name.
    pub(super) title: String,
    /// What happened, as the comment about a changed state says it.
    pub(super) sentence: String,
    /// What its issue says.
    pub(super) text: String,
}

impl Problem {
    /// A test, by its entry in the list of flaky and broken tests; without one it is neither.
    pub fn of_test(
        test: TestName,
        entry: Option<&VerdictEntry>,
        fixes: &[WatchedFix],
        place: &Place,
    ) -> Self {
        let stable = code(&place.stable_branch);
        let is_broken = entry.is_some_and(is_broken);
        let (kind, label) = match is_broken {
            true => ("Broken test", "broken-test"),
            false => ("Flaky test", "flaky-test"),
        };
        let advice = match is_broken {
            true => format!("Its failures on {stable} are most probably the code's."),
            false => format!(
                "Prove a fix with `assay verify`, or write this line into the message of its commit:\n\n{}\n\nThis issue \
                 is closed when the fix held on {stable}.",
                fenced(&format!("Assay-Fixes: {}", test.name))
            ),
        };
        let page = links::test(place.project, &test.name, test.file_path.as_deref());
        let mut facts = vec![format!("Test: {}", code(&test.name))];
        facts.extend(test.file_path.iter().map(|file| format!("File: {}", code(file))));
        facts.extend(entry.into_iter().flat_map(|entry| facts_of(entry, &stable)));
        facts.push(format!("[All results]({})", place.pages.address(&page)));
        let (state, sentence) = state_of_test(entry, last_claim(fixes, place.now), &stable);
        Self {
            state,
            former: entry.map_or_else(Vec::new, |entry| entry.former_names.clone()),
            label,
            title: title(kind, &test.name),
            text: text(&sentence, &facts, &advice),
            sentence,
            subject: Subject::Test(test),
        }
    }

    /// An error of several tests.
    pub fn of_error(error: &Signature, place: &Place) -> Self {
        let page = links::signature(place.project, &error.fingerprint);
        let (tests, runs, stable) = (error.test_count, error.run_count, code(&place.stable_branch));
        let sentence = format!("{tests} tests failed with this error in {runs} runs of {stable} in 7 days.");
        let facts = [
            format!("Error: {}", code(&error.title)),
            format!("[All occurrences]({})", place.pages.address(&page)),
        ];
        let advice = "Close this issue when the error is repaired. It is not opened again.";
        Self {
            subject: Subject::Error(error.fingerprint.clone()),
            state: State::Occurs,
            former: Vec::new(),
            label: "error",
            title: title("Error of several tests", &error.title),
            text: text(&sentence, &facts, advice),
            sentence,
        }
    }

    /// Whether an issue about the problem may have this title, also one from before the test was broken.
    pub(super) fn has_title(&self, title: &str) -> bool {
        let name = |title: &str| title.split_once(": ").map(|(_, name)| name.to_owned());
        name(title) == name(&self.title)
    }

    /// Whether an issue of this subject is about the problem, also by a former name of the test.
    pub(super) fn is_about(&self, subject: &Subject) -> bool {
        *subject == self.subject || matches!(subject, Subject::Test(test) if self.former.contains(test))
    }
}

/// The state of a test, and the sentence about it.
fn state_of_test(entry: Option<&VerdictEntry>, claim: Option<&WatchedFix>, stable: &str) -> (State, String) {
    let why = entry.map_or_else(String::new, |entry| code(&entry.explanation));
    match (entry, claim) {
        (Some(entry), _) if is_broken(entry) => (State::Broken, format!("The test is broken: {why}.")),
        (_, Some(WatchedFix { fix, shown, .. })) => {
            let fix = format!("fix in {}", short(&fix.revision));
            let runs = format!("{} of {} clean runs", shown.clean_runs, shown.runs_needed);
            match shown.state {
                FixState::Held => (State::Held, format!("The {fix} held on {stable}: {runs}.")),
                FixState::DidNotHold => (
                    State::DidNotHold,
                    format!("The test failed on {stable} after the {fix}."),
                ),
                FixState::Unproved | FixState::Waiting | FixState::Watching | FixState::FailsDifferently => (
                    State::Watched,
                    format!("The {fix} is watched on {stable}: {runs} so far."),
                ),
            }
        }
        (Some(_), None) => (State::Flaky, format!("The test is flaky: {why}.")),
        (None, None) => (
            State::Quiet,
            "The test is neither flaky nor broken by the last 14 days. That alone proves no fix.".to_owned(),
        ),
    }
}

fn facts_of(entry: &VerdictEntry, stable: &str) -> Vec<String> {
    let since = entry.failing_since.as_ref().map(|since| {
        let commit = since.revision.as_deref().map(short);
        let commit = commit.map_or_else(String::new, |commit| format!(", commit {commit}"));
        format!("Fails on {stable} since run {}{commit}", since.run_number)
    });
    // In whole minutes, so that the text does not change with each run.
    let minutes = entry.figures.time_lost_ms.map(|lost| lost / 60_000);
    let minutes = minutes.filter(|minutes| *minutes > 0);
    let owners = entry.ownership.owners.iter();
    let owners: Vec<String> = owners.map(|owner| mention(owner)).collect();
    let facts = [
        since,
        minutes.map(|minutes| format!("Failed attempts in 14 days: {minutes} min")),
        (!owners.is_empty()).then(|| format!("Owners: {}", owners.join(", "))),
    ];
    facts.into_iter().flatten().collect()
}

fn text(sentence: &str, facts: &[String], advice: &str) -> String {
    format!("{sentence}\n\n- {}\n\n{advice}", facts.join("\n- "))
}

fn title(kind: &str, name: &str) -> String {
    let name: String = one_line(name).chars().take(LONGEST_NAME).collect();
    format!("{kind}: {name}")
}

/// An owner's name. One that a code host understands notifies the person or the team.
fn mention(owner: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    match owner.strip_prefix('@') {
        Some(name) if !name.is_empty() && name.chars().all(is_part) => owner.to_owned(),
        _ => code(owner),
    }
}

fn short(revision: &str) -> String {
    code(&revision.chars().take(12).collect::<String>())
}
