//! The text of a comment: its headline, its Markdown, and its annotations.

use std::{collections::BTreeSet, fmt::Write as _};

use assay_domain::{
    cause::{Action, Cause},
    id::ProjectId,
    owners::Ownership,
    run::{Counts, RunStatus},
    timestamp::Timestamp,
};

use super::{Annotation, Comment, Described};
use crate::{
    changes::{self, ChangedTests, RunChanges},
    commit::CommitResults,
    ejection::Ejection,
    links::{self, PublicPages},
    markdown::{code, fenced, one_line},
    numbers::short,
    prompt::{self, Place},
};

/// Longest comment, in characters: GitHub takes 65,536.
const LONGEST: usize = 60_000;
/// Longest prompt, in bytes.
const LONGEST_PROMPT: usize = 6_000;
/// Most tests of a change, and most owners of a failure, that the comment names.
const MOST_NAMED: usize = 5;
/// Most runs that lack results in the comment.
const MOST_INCOMPLETE: usize = 10;

/// Everything that the comment says.
pub(super) struct Text<'a> {
    pub(super) ejection: Option<&'a Ejection>,
    pub(super) results: &'a CommitResults,
    pub(super) changes: &'a [RunChanges],
    pub(super) failures: &'a [Described<'a>],
    pub(super) pages: Option<&'a PublicPages>,
    pub(super) project: ProjectId,
    pub(super) project_name: &'a str,
}

impl Text<'_> {
    pub(super) fn comment(&self, enabled: bool, now: Timestamp) -> Comment {
        let of = &self.results.commit;
        let marker = format!("<!-- assay project={} ", self.project);
        let state = now.unix_ms();
        let headline = self.headline();
        Comment {
            enabled,
            revision: of.revision.clone(),
            pull_request_number: of.pull_request_number,
            state,
            clean: self.is_clean(),
            action: self.results.gate.action,
            mine: self.results.gate.mine,
            counts: self.results.counts,
            url: self.url(),
            markdown: self.markdown(&format!(
                "{marker}revision={} state={state} action={} -->",
                self.revision(),
                self.results.gate.action.as_str()
            )),
            marker,
            headline,
            annotations: self.annotations(),
        }
    }

    fn is_clean(&self) -> bool {
        let is_kept = |changes: &RunChanges| {
            let is_guessed = changes.renamed.tests.iter().any(|renamed| renamed.guessed);
            !is_guessed && changes.no_longer_reported.total == 0 && changes.newly_skipped.total == 0
        };
        self.ejection.is_none()
            && self.results.status == RunStatus::Passed
            && self.results.counts.passed > 0
            && self.changes.iter().all(is_kept)
    }

    /// The revision as hexadecimal digits for the hidden line, which a text of a report must not end.
    fn revision(&self) -> String {
        let revision = self.results.commit.revision.as_deref().unwrap_or_default();
        let digits: String = revision
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(64)
            .collect();
        if digits.is_empty() {
            "none".to_owned()
        } else {
            digits
        }
    }

    fn url(&self) -> Option<String> {
        let of = &self.results.commit;
        let path = match (of.pull_request_number, &of.revision) {
            (Some(number), _) => links::pull_request(self.project, number),
            (None, Some(revision)) => links::commit(self.project, revision),
            (None, None) => links::run(self.project, &self.results.runs.first()?.id),
        };
        Some(self.pages?.address(&path))
    }

    fn headline(&self) -> String {
        let results = self.results;
        let failed = self.failed();
        let revision = self.revision();
        let short = revision.get(..8).unwrap_or(&revision);
        let percent = (results.gate.mine * 100.0).round();
        if results.counts.failed == 0 {
            return match results.status {
                RunStatus::Passed => self.passed(short),
                RunStatus::Failed => format!("A run of {short} failed with an error outside of its tests"),
                RunStatus::Incomplete => format!("No test failed on {short} so far, and results are missing"),
            };
        }
        if results.on_stable {
            return format!("{failed} on {short}");
        }
        let none_of_them = format!("this change most probably broke none of them ({percent} %)");
        match results.gate.action {
            Action::Pass => format!("{failed} on {short}; {none_of_them}"),
            Action::Rerun if results.gate.only_lacks_results() => {
                format!("{failed} on {short}; {none_of_them}, but a run may lack results")
            }
            Action::Rerun => {
                format!("{failed} on {short}; this change may have broken some ({percent} %): run it again")
            }
            Action::Block => {
                format!("{failed} on {short}; this change broke at least one of them ({percent} %): fix it")
            }
        }
    }

    /// The numbers of passed and skipped tests, where none failed.
    fn passed(&self, short: &str) -> String {
        let Counts { passed, skipped, .. } = self.results.counts;
        let of_passed = match passed {
            0 => format!("No test passed on {short}"),
            _ => format!("{} on {short}", count(passed, "test passed", "tests passed")),
        };
        let so_far = match self.results.absent_suites.is_empty() {
            true => "",
            false => " so far",
        };
        match skipped {
            0 => format!("{of_passed}{so_far}"),
            _ => format!(
                "{of_passed}{so_far}; {}",
                count(skipped, "test was skipped", "tests were skipped")
            ),
        }
    }

    /// The number of failed tests. A test that failed in several suites is one.
    fn failed(&self) -> String {
        let results = self.results;
        let all = results.counts.failed.max(1);
        let tests = results.gate.by_cause.tests().clamp(1, all);
        let words = count(tests, "test failed", "tests failed");
        let suites = results.runs.iter().filter(|run| run.counts.failed > 0).count();
        match (all, tests) {
            (all, tests) if all == tests => words,
            (_, 1) => format!("{words} (on {suites} variants)"),
            (all, _) => format!("{words} ({all} times on {suites} variants)"),
        }
    }

    fn markdown(&self, first_line: &str) -> String {
        let mark = match (self.is_clean(), self.results.gate.action) {
            (true, _) if self.results.absent_suites.is_empty() => "✅ ",
            (false, Action::Block) => "❌ ",
            (true, _) | (false, Action::Pass | Action::Rerun) => "",
        };
        let mut text = format!("{first_line}\n### {mark}Assay: {}\n", self.headline());
        let end = self.end();
        let mut length = text.chars().count() + end.chars().count();
        let suspects: Vec<&Described<'_>> = self
            .failures
            .iter()
            .filter(|failure| failure.is_suspect())
            .collect();
        for failure in &suspects {
            let entry = self.entry(failure);
            length += entry.chars().count();
            if length > LONGEST {
                break;
            }
            text += &entry;
        }
        text + &end
    }

    /// The suite of a failure, if the commit has several.
    fn in_suite(&self, described: &Described<'_>) -> String {
        let suite = described.failure.suite.as_deref();
        let suite = suite.filter(|_| self.results.runs.len() > 1);
        suite.map_or_else(String::new, |suite| format!(" in suite {}", code(suite)))
    }

    /// A failure with its error and a link.
    fn entry(&self, described: &Described<'_>) -> String {
        let failure = &described.failure.failure;
        let name = code(&failure.test_name);
        let linked = match self.pages {
            Some(pages) => {
                let run = &described.failure.run_id;
                let file = failure.file_path.as_deref();
                format!(
                    "[{name}]({})",
                    pages.attempts(self.project, run, &failure.test_name, file)
                )
            }
            None => name,
        };
        let mut entry = format!("\n- {linked}");
        entry += &self.in_suite(described);
        let _ = write!(entry, "\n  {}", code(&failure.explanation));
        if let Some(line) = described.error.line.as_deref().or(failure.title.as_deref()) {
            let _ = write!(entry, "\n  {}", code(line));
        }
        if let Some(file) = described.file() {
            let place = match described
                .error
                .line_number
                .filter(|_| described.error.file.is_some())
            {
                Some(number) => format!("{file}:{number}"),
                None => file.to_owned(),
            };
            let _ = write!(entry, " at {}", code(&place));
        }
        if let Some(owners) = owned_by(&failure.ownership) {
            let _ = write!(entry, "\n  {owners}");
        }
        entry + "\n"
    }

    /// The lines after the failures: the others by cause, missing results, the link, the prompt.
    fn end(&self) -> String {
        let mut end = String::new();
        let lines = [self.ejected(), self.others(), self.not_suspect()];
        let lines = lines.into_iter().flatten().chain(self.changed());
        for line in lines.chain(self.incomplete()).chain(self.absent()) {
            let _ = write!(end, "\n{line}\n");
        }
        if let Some(url) = self.url() {
            let _ = write!(end, "\n[All runs of this commit, with every failure]({url})\n");
        }
        if let Some(prompt) = self.prompt() {
            let _ = write!(
                end,
                "\n<details><summary>Prompt for an assistant</summary>\n\n{}\n\n</details>\n",
                fenced(&prompt)
            );
        }
        end
    }

    /// Why the merge queue did not merge the pull request.
    fn ejected(&self) -> Option<String> {
        let ejection = self.ejection?;
        let run = format!("Run {}", ejection.run_number);
        let page = links::run(self.project, &ejection.run);
        let address = self.pages.map(|pages| pages.address(&page));
        let run = address.map_or(run.clone(), |address| format!("[{run}]({address})"));
        let sentence = ejection.sentence(code);
        Some(format!("**Merge queue:** {run} failed. {sentence}"))
    }

    /// All failed tests by cause, and the recovered ones.
    fn others(&self) -> Option<String> {
        let by_cause = self.results.gate.by_cause.counts().into_iter();
        let named = by_cause.filter(|(_, tests)| *tests > 0).map(|(cause, tests)| {
            let words = match (cause, self.results.on_stable) {
                (Cause::ThisChange, false) => "broken by this change",
                (Cause::ThisChange, true) => "broken by this commit",
                (Cause::EarlierOnBranch, _) => "broken earlier on this branch",
                (Cause::BrokenBefore, false) => "broken before this branch",
                (Cause::BrokenBefore, true) => "broken before this commit",
                (Cause::Flake, _) => "flaky",
                (Cause::Environment, _) => "from the environment",
                (Cause::Unclear, _) => "unclear",
            };
            format!("{tests} {words}")
        });
        let recovered = self.results.counts.recovered;
        let recovered = (recovered > 0).then(|| format!("{recovered} passed on retry"));
        let parts: Vec<String> = named.chain(recovered).collect();
        (!parts.is_empty()).then(|| format!("By cause: {}.", parts.join(", ")))
    }

    /// The names of failed tests that the change most probably did not break.
    fn not_suspect(&self) -> Option<String> {
        let others = self
            .failures
            .iter()
            .filter(|described| described.has_failed() && !described.is_suspect());
        let names = named(others.map(|described| {
            let name = code(&described.failure.failure.test_name);
            format!("{name}{}", self.in_suite(described))
        }))?;
        Some(format!("Failed, most probably not by this change: {names}."))
    }

    /// What changed against the stable branch, in numbers, and the names of skipped, missing and slower tests.
    fn changed(&self) -> Vec<String> {
        type List = fn(&RunChanges) -> &ChangedTests;
        let changes = self.changes;
        let listed = |words: &str, list: List| {
            let total: u64 = changes.iter().map(|changes| list(changes).total).sum();
            let tests = changes.iter().flat_map(|changes| &list(changes).tests);
            let names = named(tests.map(|test| code(&test.name)))?;
            Some(format!("{total} {words}: {names}."))
        };
        let renamed = changes.iter().flat_map(|changes| &changes.renamed.tests);
        let guessed: Vec<_> = renamed
            .filter(|renamed| renamed.guessed)
            .take(MOST_NAMED)
            .collect();
        let advice = match guessed.iter().any(|renamed| renamed.can_be_joined()) {
            true => " A line in `.assay/renames` joins them.",
            false => "",
        };
        let guessed = guessed.iter().map(|renamed| {
            let [from, to] = renamed.in_words().map(|name| code(&name));
            format!("{from} is now {to}")
        });
        let slower_total: u64 = changes.iter().map(|changes| changes.slower.total).sum();
        let slower = changes.iter().flat_map(|changes| &changes.slower.tests);
        let slower = slower.map(|slower| format!("{} {:.1} times", code(&slower.test.name), slower.factor));
        let lines = [
            changes::summary(changes).map(|summary| format!("Against {}: {summary}.", self.base())),
            listed("newly skipped", |changes| &changes.newly_skipped),
            listed("no longer reported", |changes| &changes.no_longer_reported),
            named(guessed).map(|names| format!("Probably renamed: {names}.{advice}")),
            named(slower).map(|names| format!("{slower_total} slower: {names}.")),
        ];
        let selections = changes.iter().filter_map(RunChanges::selection).take(MOST_NAMED);
        let selections = selections.map(|sentence| format!("{sentence}."));
        lines.into_iter().flatten().chain(selections).collect()
    }

    /// The stable branch, at its revision if all runs are compared with the same one.
    fn base(&self) -> String {
        let bases = self.changes.iter().filter_map(|changes| changes.base.as_ref());
        let revisions: BTreeSet<Option<&str>> = bases.map(|base| base.revision.as_deref()).collect();
        match revisions.into_iter().collect::<Vec<_>>().as_slice() {
            [Some(revision)] => format!("the stable branch at {}", code(&short(revision))),
            _ => "the stable branch".to_owned(),
        }
    }

    /// The runs that may lack results.
    fn incomplete(&self) -> impl Iterator<Item = String> {
        let runs = self.results.runs.iter();
        let incomplete = runs.filter_map(|run| Some((run, run.incomplete.as_deref()?)));
        incomplete.take(MOST_INCOMPLETE).map(|(run, reason)| {
            let suite = run
                .suite
                .as_deref()
                .map(|suite| format!(" of suite {}", code(suite)));
            format!(
                "Run {}{} may lack results: {}.",
                run.run_number,
                suite.unwrap_or_default(),
                code(reason)
            )
        })
    }

    /// The suites that have no run.
    fn absent(&self) -> Option<String> {
        let names = named(self.results.absent_suites.iter().map(|suite| code(suite)))?;
        let stable = code(&self.results.stable_branch);
        Some(format!(
            "No run so far, which the newest commit of {stable} has: {names}."
        ))
    }

    /// The prompt for the failure that this change most probably caused.
    fn prompt(&self) -> Option<String> {
        let described = self.failures.iter().find(|failure| failure.is_suspect())?;
        let attempts = described.attempts.as_ref()?;
        let failed = attempts
            .attempts
            .iter()
            .rev()
            .find(|attempt| attempt.status.is_failure())?;
        let test = &attempts.test;
        let run = &described.failure.run_id;
        let page = self
            .pages
            .map(|pages| pages.attempts(self.project, run, &test.name, test.file_path.as_deref()));
        let place = Place {
            project: self.project_name,
            page: page.as_deref(),
        };
        prompt::of_size(
            place,
            attempts,
            failed,
            Some(&described.failure.failure),
            LONGEST_PROMPT,
        )
    }

    /// The failed tests with the highest `mine` first, which is their order.
    fn annotations(&self) -> Vec<Annotation> {
        let failed = self.failures.iter().filter(|failure| failure.has_failed());
        let annotation = |described: &Described<'_>| {
            let failure = &described.failure.failure;
            let error = described.error.line.as_deref().or(failure.title.as_deref());
            let error = error.map_or_else(String::new, |line| format!(". {}", one_line(line)));
            Annotation {
                run_id: described.failure.run_id,
                file: described.file().map(one_line),
                line: described
                    .error
                    .line_number
                    .filter(|_| described.error.file.is_some()),
                title: one_line(&failure.test_name),
                message: format!("{}{error}", one_line(&failure.explanation)),
                is_mine: failure.action != Action::Pass,
            }
        };
        failed.map(annotation).collect()
    }
}

/// The first names of a list; none if it is empty.
fn named(names: impl Iterator<Item = String>) -> Option<String> {
    let names: Vec<String> = names.take(MOST_NAMED).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The owners as code, so that the code host notifies none of them.
fn owned_by(ownership: &Ownership) -> Option<String> {
    let others = match ownership.owners.len() > MOST_NAMED {
        true => " and others",
        false => "",
    };
    let owners = named(ownership.owners.iter().map(|owner| code(owner)))?;
    Some(format!("Owned by {owners}{others}"))
}

fn count(number: u32, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}
