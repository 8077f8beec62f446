//! The counts in a failure's sentence, which a reader can repeat.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    slice,
};

use assay_domain::test::TestOrdinal;

use super::{
    links::{ChainFacts, PullRequests, ResultFacts},
    parts::{BEFORE, CROWD, DRIFT, FLAKE, Parts},
    sequence::TestResults,
    texts::{ErrorTexts, Share, TextShares, WindowTexts},
    witnesses::{Witnesses, share_pull_request},
};
use crate::{
    config::NAMED_RUNS,
    model::{Outcome, calendar::Calendar},
    numbers::count,
    timeline::{Entry, Timeline},
};

/// How long a failure on another branch counts as a sign of a change outside of the code.
const NEAR_MS: i64 = 2 * assay_domain::timestamp::DAY_MS;

/// The counts behind the sentence of a failure. Runs are identified by their indexes in the history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CauseFacts {
    /// Whether the run names its revision or its branch; otherwise causes cannot be distinguished.
    pub causes_distinguishable: bool,
    /// Whether no other branch ran in the window and the test has not passed, so that nothing shows whether the branch broke
    /// it. The engine leaves it false; the caller knows the window.
    pub nothing_compares: bool,
    /// The first of the stable branch's newest runs without the test, if it left that branch. The engine leaves it empty, too.
    pub left_stable: Option<usize>,
    /// Whether the run is on the stable branch.
    pub on_stable: bool,
    /// Other runs of the stable branch with the test; for a failure on it, those before.
    pub stable_runs: u32,
    /// Those of them in which it failed finally.
    pub stable_failed: u32,
    /// Whether these are the runs of the failure's variant, which is one of several.
    pub stable_variant: bool,
    /// The newest stable runs in which it passed, at most 20.
    pub stable_passes: Vec<usize>,
    /// Whether its newest stable run failed, in the order of revisions; none if there is no stable run.
    pub stable_last_failed: Option<bool>,
    /// The number of failed stable runs at the end.
    pub stable_streak: u32,
    /// The failing streaks of the window, for a failure of the stable chain; else none.
    pub stable_streaks: EndedStreaks,
    /// For a failure on the stable branch: the revisions of the window that began failing streaks on several variants,
    /// and those of them after which most of these tests kept failing.
    pub shared_streaks: EndedStreaks,
    /// Whether a crowd of failures is at least as probable as a change outside of the code.
    pub in_crowd: bool,
    /// Whether it failed in a crowd of the stable branch that failed in the run before or after it, too, and lasts.
    pub in_lasting_crowd: bool,
    /// Other runs with a pass, or with a failure, not in a row, that is a flake with a probability of at least 0.5.
    pub good_runs: u32,
    /// Those of them with such a failure.
    pub good_failed: u32,
    /// Those of these with the same error.
    pub good_same_error: u32,
    /// If all failures on good code are of one of several variants, the newest of them: then the runs on good code are those
    /// of its variant.
    pub good_variant: Option<usize>,
    /// The newest of the runs on good code that failed, at most 20.
    pub flakes: Vec<usize>,
    /// The first run of the episode around this failure in its chain; none if the failure itself begins it.
    pub episode_since: Option<usize>,
    /// Whether the test passed in its chain before that episode.
    pub passed_before: bool,
    /// The first run of the stable chain's episode before this failure.
    pub stable_since: Option<usize>,
    /// The first run of the stable chain that passed after that episode; none while it lasts.
    pub stable_mended: Option<usize>,
    /// Whether the base of the branch is known, and in that episode.
    pub stable_at_base: bool,
    /// Whether that episode began with the same error.
    pub stable_same_error: bool,
    /// Whether that episode always fails with one text, at least twice, and this failure has another one.
    pub stable_other_error: bool,
    /// The numbers of variants on which this revision of the branch failed, and on which it ran.
    pub variants: (u32, u32),
    /// Tests that failed finally in the run.
    pub failed_in_run: u32,
    /// The first other run of this chain and revision in which the test passed.
    pub passed_on_revision: Option<usize>,
    /// The last earlier result on another branch off the stable one without its pull requests, if it is a failure of the two
    /// days before this failure.
    pub failed_elsewhere: Option<usize>,
    /// The first of the failures in a row with which another branch with one of its pull requests ended before.
    pub failed_with_change: Option<usize>,
    /// The times at which the test fails by the calendar. The runs on good code and those of the stable branch are then those
    /// at such times, if the failure is, or those at other times.
    pub calendar: Option<CalendarFacts>,
    /// Whether the error has a text that can be recognised.
    pub recognisable: bool,
    /// The places where the same error occurred.
    pub same_error: SameError,
}

/// The times at which a test fails by the calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarFacts {
    /// One sentence without a full stop, such as "Failed on 4 of 4 weekend days (UTC) and on none of 9 other days".
    pub sentence: String,
    /// Whether the failure is at such a time.
    pub explains: bool,
}

/// The failing streaks of all tests on the variants of the stable branch that are known to have lasted or passed again.
/// The failures of mass failures do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndedStreaks {
    /// Those of at least three failures in a row.
    pub lasted: u32,
    /// All of them.
    pub all: u32,
}

/// How often the error of a failure occurred elsewhere in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SameError {
    /// Other failures of the test.
    pub here: u32,
    /// Those of them that are most probably flakes.
    pub as_flake: u32,
    /// Those of them on the stable branch.
    pub on_stable: u32,
    /// Those of them on other branches than the failure's own and the stable one.
    pub other_branches: u32,
    /// Other tests.
    pub other_tests: u32,
    /// Other tests of the run.
    pub in_this_run: u32,
}

/// The failures of one run, counted once for all its tests.
#[derive(Debug, Default)]
pub(crate) struct FailureCounts {
    /// Tests that failed finally.
    failed: u32,
    /// Failures with a text.
    with_text: u32,
    by_text: HashMap<u32, SharedText>,
}

/// The failures of one run with the same text.
#[derive(Debug, Clone, Copy, Default)]
struct SharedText {
    failures: u32,
    tests: u32,
}

impl FailureCounts {
    /// The failures of a run on all its variants.
    pub(crate) fn of(timeline: &Timeline<'_>, texts: &ErrorTexts, run: usize) -> Self {
        let mut failed: BTreeSet<TestOrdinal> = BTreeSet::new();
        let mut by_test: BTreeMap<(u32, TestOrdinal), u32> = BTreeMap::new();
        for entry in variant_runs(timeline, run) {
            let failures = entry.failures.iter().filter(|failure| !failure.recovered);
            failed.extend(failures.map(|failure| failure.test));
            for (test, text) in texts.of_run(entry.source) {
                *by_test.entry((*text, *test)).or_default() += 1;
            }
        }
        let mut run_failures = Self {
            failed: count(failed.len()),
            ..Self::default()
        };
        for ((text, _), failures) in by_test {
            let shared = run_failures.by_text.entry(text).or_default();
            shared.failures += failures;
            shared.tests += 1;
            run_failures.with_text += failures;
        }
        run_failures
    }

    fn of_text(&self, text: u32) -> SharedText {
        self.by_text.get(&text).copied().unwrap_or_default()
    }
}

/// The variant runs of a run.
fn variant_runs<'t, 'h>(timeline: &'t Timeline<'h>, run: usize) -> impl Iterator<Item = &'t Entry<'h>> {
    let positions = timeline.runs.get(run).map(|run| run.positions.as_slice());
    let positions = positions.unwrap_or_default().iter();
    positions.filter_map(|position| timeline.entries.get(*position))
}

/// The data that all tests of a window share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowContext<'a, 'h> {
    pub(crate) timeline: &'a Timeline<'h>,
    pub(crate) texts: &'a ErrorTexts,
    pub(crate) window_texts: &'a WindowTexts,
    /// The failures of the runs in question, by run.
    pub(crate) runs: &'a BTreeMap<usize, FailureCounts>,
}

/// One test's results with the model's probabilities.
#[derive(Debug)]
pub(crate) struct TestDiagnosis<'a, 'h> {
    shared: WindowContext<'a, 'h>,
    test: TestOrdinal,
    chains: &'a [ChainFacts],
    /// By chain.
    pull_requests: &'a [PullRequests],
    parts: &'a [Option<Parts>],
    witnesses: &'a [Witnesses],
    calendar: Option<&'a Calendar>,
    /// All results, in the order of the sequence.
    results: Vec<JudgedResult<'a, 'h>>,
}

/// A result of the test, with the model's probabilities.
#[derive(Debug, Clone, Copy)]
struct JudgedResult<'a, 'h> {
    index: usize,
    chain: usize,
    run: usize,
    outcome: Outcome,
    entry: &'a Entry<'h>,
    variant: usize,
    /// Whether the calendar fails the test at this time.
    by_calendar: bool,
    /// The revision of the stable branch at which its code left it.
    base: Option<usize>,
    /// The text of a failure, if it has one.
    text: Option<u32>,
    /// The probability that a failure is a flake.
    flake: f64,
    /// The probability that the code was broken at a failure.
    broken: f64,
}

impl<'a, 'h> TestDiagnosis<'a, 'h> {
    pub(crate) fn new(
        shared: WindowContext<'a, 'h>,
        test: TestOrdinal,
        results: &'a TestResults,
        parts: &'a [Option<Parts>],
    ) -> Self {
        let WindowContext { timeline, texts, .. } = shared;
        let each = results.sequence.results.iter().zip(&results.positions).zip(parts);
        let judged =
            |(index, ((result, position), parts)): (usize, ((&ResultFacts, &usize), &Option<Parts>))| {
                let entry = timeline.entries.get(*position)?;
                let part = |part: usize| parts.and_then(|parts| parts.get(part).copied()).unwrap_or(0.0);
                let failed = result.outcome.had_failure();
                Some(JudgedResult {
                    index,
                    chain: result.chain,
                    run: *timeline.run_of.get(*position)?,
                    outcome: result.outcome,
                    entry,
                    variant: results.sequence.chains.get(result.chain)?.variant,
                    by_calendar: result.calendar > 0.0,
                    base: result.base,
                    text: if failed {
                        texts.of(entry.source, test)
                    } else {
                        None
                    },
                    flake: part(FLAKE),
                    broken: 1.0 - part(FLAKE) - part(CROWD),
                })
            };
        Self {
            shared,
            test,
            chains: &results.sequence.chains,
            pull_requests: &results.sequence.pull_requests,
            parts,
            witnesses: &results.witnesses,
            calendar: results.calendar.as_ref(),
            results: each.enumerate().filter_map(judged).collect(),
        }
    }

    fn results(&self) -> slice::Iter<'_, JudgedResult<'a, 'h>> {
        self.results.iter()
    }

    /// The results before a result.
    fn before(&self, index: usize) -> slice::Iter<'_, JudgedResult<'a, 'h>> {
        self.results.get(..index).unwrap_or_default().iter()
    }

    /// The final failures around a result in its chain, without any other result between; the result among them.
    fn episode_around(&self, index: usize, chain: usize) -> Vec<&JudgedResult<'a, 'h>> {
        let results: Vec<_> = self.results().filter(|other| other.chain == chain).collect();
        let episodes = results.chunk_by(|a, b| a.outcome.failed() == b.outcome.failed());
        let mut episodes = episodes.filter(|episode| episode.iter().any(|other| other.index == index));
        let episode = episodes
            .next()
            .filter(|episode| episode.iter().all(|other| other.outcome.failed()));
        episode.unwrap_or_default().to_vec()
    }

    /// The final failures of a stable chain before a result, without any other result between: those at the result's base if
    /// that is known and failed, else the latest ones. And whether they are those at the base.
    fn stable_episode(&self, index: usize, chain: usize) -> (Vec<&JudgedResult<'a, 'h>>, bool) {
        let before = self.before(index);
        let before: Vec<_> = before.filter(|other| other.chain == chain).collect();
        let episodes = before.chunk_by(|a, b| a.outcome.failed() == b.outcome.failed());
        let mut failing = episodes.filter(|episode| episode.iter().all(|other| other.outcome.failed()));
        let base = self.results.get(index).and_then(|result| result.base);
        let of_base = before
            .iter()
            .rfind(|other| base == Some(other.entry.revision))
            .map(|last| last.index);
        let is_of_base = |episode: &&[&JudgedResult<'_, '_>]| {
            of_base.is_some_and(|last| episode.iter().any(|other| other.index == last))
        };
        match failing.clone().find(is_of_base) {
            Some(episode) => (episode.to_vec(), true),
            None => (failing.next_back().unwrap_or_default().to_vec(), false),
        }
    }

    /// The first result of a chain after an episode of it, before a result.
    fn mended(&self, index: usize, episode: &[&JudgedResult<'a, 'h>]) -> Option<&JudgedResult<'a, 'h>> {
        let last = episode.last()?;
        let mut before = self.before(index);
        before.find(|other| other.chain == last.chain && other.index > last.index)
    }

    /// The text of a failure, if the text distinguishes failures.
    fn recognisable(&self, failure: &JudgedResult<'_, '_>) -> Option<u32> {
        failure
            .text
            .filter(|text| !self.shared.window_texts.is_common(*text))
    }

    /// The places where the text of a failure occurs; `None` if it has no text that distinguishes failures.
    pub(crate) fn text_counts(&self, index: usize) -> Option<TextShares> {
        let failure = self.results.get(index)?;
        let text = self.recognisable(failure)?;
        let chain = self.chains.get(failure.chain)?;
        let mut counts = TextShares {
            pairs: self.shared.window_texts.pairs,
            other_tests: f64::from(self.shared.window_texts.tests(text).saturating_sub(1)),
            ..TextShares::default()
        };
        for other in self.results().filter(|other| other.index != index) {
            if let Some(of_other) = other.text {
                counts.known.add(of_other == text, 1.0);
                // What other branches failed since the test last passed may be breakages of theirs.
                if !self.is_since_pass(other, failure) {
                    counts.flake.add(of_other == text, other.flake);
                }
            }
        }
        counts.run = self.share_of_run(failure.run, text)?;
        let episode = self.episode_around(index, failure.chain);
        let from_here = episode
            .iter()
            .position(|other| other.entry.revision == failure.entry.revision)
            .unwrap_or(0);
        for (place, other) in episode
            .iter()
            .enumerate()
            .filter(|(_, other)| other.index != index)
        {
            let Some(of_other) = other.text else {
                continue;
            };
            counts.earlier.add(of_other == text, 1.0);
            if place >= from_here {
                counts.this.add(of_other == text, 1.0);
            }
        }
        let begins = episode.first().map_or(index, |first| first.index);
        let before = match chain.base {
            _ if chain.stable => self.stable_episode(begins, failure.chain).0,
            Some(base) => self.stable_episode(index, base).0,
            None => Vec::new(),
        };
        let share = |episode: &[&JudgedResult<'_, '_>]| {
            let mut share = Share::default();
            for other in episode.iter().filter(|other| other.index != index) {
                if let Some(of_other) = other.text {
                    share.add(of_other == text, other.broken);
                }
            }
            share
        };
        counts.before = share(if chain.stable { &episode } else { &before });
        if chain.stable || self.mended(index, &before).is_some() {
            counts.mended = share(&before);
        }
        Some(counts)
    }

    /// Whether a failure of another branch came before this one, and the test has not passed anywhere since.
    fn is_since_pass(&self, other: &JudgedResult<'_, '_>, failure: &JudgedResult<'_, '_>) -> bool {
        let branch = |result: &JudgedResult<'_, '_>| self.chains.get(result.chain).map(|chain| chain.branch);
        let passed_at = self
            .witnesses
            .get(failure.index)
            .and_then(|found| found.passed_at);
        let at = other.entry.started_at();
        branch(other) != branch(failure)
            && at <= failure.entry.started_at()
            && passed_at.is_none_or(|passed_at| at > passed_at)
    }

    /// The share of a text among the other tests' failures in a run.
    fn share_of_run(&self, run: usize, text: u32) -> Option<Share> {
        let (own, own_same) = self.own_failures(run, text);
        let of_run = self.shared.runs.get(&run)?;
        Some(Share {
            of_text: f64::from(of_run.of_text(text).failures - own_same),
            of_all: f64::from(of_run.with_text - own),
        })
    }

    /// The test's own failures in a run that have a text, and those that have this one.
    fn own_failures(&self, run: usize, text: u32) -> (u32, u32) {
        let texts = variant_runs(self.shared.timeline, run)
            .filter_map(|entry| self.shared.texts.of(entry.source, self.test));
        texts.fold((0, 0), |(all, same), other| {
            (all + 1, same + u32::from(other == text))
        })
    }

    /// The counts behind the sentence of a failure.
    pub(crate) fn facts(&self, index: usize) -> Option<CauseFacts> {
        let failure = self.results.get(index)?;
        let chain = *self.chains.get(failure.chain)?;
        let run = &failure.entry.observed.run;
        let mut facts = CauseFacts {
            causes_distinguishable: run.branch.is_some() || run.revision.is_some(),
            on_stable: failure.entry.on_stable_branch,
            recognisable: self.recognisable(failure).is_some(),
            failed_in_run: self.shared.runs.get(&failure.run)?.failed,
            ..CauseFacts::default()
        };
        let part = |part: usize| self.parts.get(index)?.as_ref()?.get(part).copied();
        facts.calendar = self.calendar.map(|calendar| CalendarFacts {
            sentence: calendar.sentence(),
            explains: failure.by_calendar,
        });
        facts.in_crowd = part(CROWD) >= part(DRIFT);
        self.count_stable(failure, &mut facts);
        self.read_stable_end(failure, &mut facts);
        self.count_good(failure, &mut facts);
        self.count_same_error(failure, &mut facts.same_error);
        let episode = self.episode_around(index, failure.chain);
        let earlier = episode.first().filter(|first| first.index != index);
        facts.episode_since = earlier.map(|first| first.entry.source);
        let begins = episode.first().map_or(index, |first| first.index);
        facts.passed_before = self
            .before(begins)
            .any(|other| other.chain == failure.chain && !other.outcome.failed());
        if let Some(base) = chain.base.filter(|_| !chain.stable) {
            let (episode, at_base) = self.stable_episode(index, base);
            facts.stable_at_base = at_base;
            let text = failure.text;
            facts.stable_since = episode.first().map(|first| first.entry.source);
            facts.stable_same_error =
                text.is_some() && episode.first().is_some_and(|first| first.text == text);
            let texts: BTreeSet<Option<u32>> = episode.iter().map(|other| other.text).collect();
            facts.stable_other_error = episode.len() > 1
                && texts.len() == 1
                && text.is_some()
                && !texts.contains(&text)
                && !texts.contains(&None);
            let mended = self.mended(index, &episode);
            facts.stable_mended = mended.map(|first| first.entry.source);
        }
        let of_branch = |other: &JudgedResult<'_, '_>| {
            let other = self.chains.get(other.chain);
            other.is_some_and(|other| other.branch == chain.branch)
        };
        let at_revision: Vec<_> = self
            .results()
            .filter(|other| other.entry.revision == failure.entry.revision && of_branch(other))
            .collect();
        let ran: BTreeSet<usize> = at_revision.iter().map(|other| other.chain).collect();
        let failed = at_revision.iter().filter(|other| other.outcome.failed());
        let failed: BTreeSet<usize> = failed.map(|other| other.chain).collect();
        facts.variants = (count(failed.len()), count(ran.len()));
        let mut reruns = at_revision.iter().filter(|other| other.chain == failure.chain);
        facts.passed_on_revision = reruns
            .find(|other| !other.outcome.failed() && other.run != failure.run)
            .map(|other| other.entry.source);
        let elsewhere = self.before(index).rev().find(|other| {
            let stable = self.chains.get(other.chain).is_none_or(|chain| chain.stable);
            !stable
                && other.variant == failure.variant
                && !of_branch(other)
                && !self.is_same_change(other, failure)
        });
        let is_near = |other: &&JudgedResult<'_, '_>| {
            let apart = run.started_at.since_ms(other.entry.observed.run.started_at);
            let before = self
                .parts
                .get(other.index)
                .and_then(|parts| parts.as_ref()?.get(BEFORE));
            let is_inherited = before.is_some_and(|before| *before >= 0.5);
            other.outcome.failed() && !is_inherited && apart.abs() <= NEAR_MS
        };
        facts.failed_elsewhere = elsewhere.filter(is_near).map(|other| other.entry.source);
        let with_change = self.before(index).rev().find(|other| {
            other.variant == failure.variant && !of_branch(other) && self.is_same_change(other, failure)
        });
        let failing =
            with_change.and_then(|other| self.episode_around(other.index, other.chain).first().copied());
        facts.failed_with_change = failing.map(|first| first.entry.source);
        Some(facts)
    }

    /// Whether the branches of two results have a pull request in common.
    fn is_same_change(&self, one: &JudgedResult<'_, '_>, other: &JudgedResult<'_, '_>) -> bool {
        let both = self
            .pull_requests
            .get(one.chain)
            .zip(self.pull_requests.get(other.chain));
        both.is_some_and(|(one, other)| share_pull_request(one, other))
    }

    /// The results on the stable branch, in the order of revisions: those of the failure's variant, if it has any.
    fn stable_results(&self, failure: &JudgedResult<'_, '_>) -> Vec<&JudgedResult<'a, 'h>> {
        let all = || self.results().filter(|other| other.entry.on_stable_branch);
        let of_variant: Vec<_> = all().filter(|other| other.variant == failure.variant).collect();
        match of_variant.is_empty() {
            true => all().collect(),
            false => of_variant,
        }
    }

    /// Counts the runs of the stable branch.
    fn count_stable(&self, failure: &JudgedResult<'_, '_>, facts: &mut CauseFacts) {
        let mut runs = ByRun::new(self.shared.timeline);
        let results = self.stable_results(failure);
        facts.stable_variant = results.iter().all(|other| other.variant == failure.variant)
            && self.results().any(|other| other.variant != failure.variant);
        for other in results {
            let is_before = !failure.entry.on_stable_branch || other.index < failure.index;
            if is_before && other.run != failure.run && other.by_calendar == failure.by_calendar {
                let first = (other.entry.source, false);
                runs.update(other.run, first, |(_, failed)| *failed |= other.outcome.failed());
            }
        }
        facts.stable_runs = count(runs.values().count());
        facts.stable_failed = count(runs.values().filter(|(_, failed)| *failed).count());
        let passes = runs.values().rev().filter(|(_, failed)| !failed);
        facts.stable_passes = passes.take(NAMED_RUNS).map(|(source, _)| *source).collect();
    }

    /// How the newest stable runs ended, in the order of revisions.
    fn read_stable_end(&self, failure: &JudgedResult<'_, '_>, facts: &mut CauseFacts) {
        let mut runs: Vec<(usize, bool)> = Vec::new();
        for other in self.stable_results(failure) {
            let failed = other.outcome.failed();
            match runs.last_mut() {
                Some((run, any_failed)) if *run == other.run => *any_failed |= failed,
                _ => runs.push((other.run, failed)),
            }
        }
        facts.stable_last_failed = runs.last().map(|(_, failed)| *failed);
        facts.stable_streak = count(runs.iter().rev().take_while(|(_, failed)| *failed).count());
    }

    /// Counts the runs on good code.
    fn count_good(&self, failure: &JudgedResult<'_, '_>, facts: &mut CauseFacts) {
        let text = failure.text;
        let is_good = |other: &&JudgedResult<'_, '_>| {
            other.run != failure.run
                && other.by_calendar == failure.by_calendar
                && (!other.outcome.had_failure() || other.flake >= 0.5 && !other.outcome.is_row())
        };
        let failed = self
            .results()
            .filter(is_good)
            .filter(|other| other.outcome.had_failure());
        let newest = failed
            .clone()
            .max_by_key(|other| (other.entry.started_at(), other.index));
        let only = newest.filter(|newest| {
            let is_other = |other: &JudgedResult<'_, '_>| other.variant != newest.variant;
            !failed.clone().any(is_other) && self.results().any(is_other)
        });
        facts.good_variant = only.map(|only| only.entry.source);
        let mut runs = ByRun::new(self.shared.timeline);
        let is_counted =
            |other: &&JudgedResult<'_, '_>| only.is_none_or(|only| other.variant == only.variant);
        for other in self.results().filter(is_good).filter(is_counted) {
            let failed = other.outcome.had_failure();
            runs.update(other.run, (other.entry.source, false, false), |run| {
                run.1 |= failed;
                run.2 |= failed && text.is_some() && other.text == text;
            });
        }
        facts.good_runs = count(runs.values().count());
        facts.good_failed = count(runs.values().filter(|(_, failed, _)| *failed).count());
        facts.good_same_error = count(runs.values().filter(|(.., same)| *same).count());
        let flakes = runs.values().rev().filter(|(_, failed, _)| *failed);
        facts.flakes = flakes.take(NAMED_RUNS).map(|(source, ..)| *source).collect();
    }

    fn count_same_error(&self, failure: &JudgedResult<'_, '_>, same: &mut SameError) {
        let Some(text) = failure.text else { return };
        let branch_of = |other: &JudgedResult<'_, '_>| {
            let chain = self.chains.get(other.chain);
            chain.map(|chain| (chain.branch, chain.stable))
        };
        let own = branch_of(failure);
        for other in self.results().filter(|other| other.index != failure.index) {
            if other.text != Some(text) {
                continue;
            }
            same.here += 1;
            same.as_flake += u32::from(other.flake >= 0.5);
            let on_stable = branch_of(other).is_some_and(|(_, stable)| stable);
            same.on_stable += u32::from(on_stable);
            same.other_branches += u32::from(!on_stable && branch_of(other) != own);
        }
        same.other_tests = self.shared.window_texts.tests(text).saturating_sub(1);
        let (_, own) = self.own_failures(failure.run, text);
        let in_run = self
            .shared
            .runs
            .get(&failure.run)
            .map(|run| run.of_text(text).tests);
        same.in_this_run = in_run.unwrap_or(0).saturating_sub(own.min(1));
    }
}

/// One value per run, in the order of time; none for a run without the test. For thousands of runs a map is several
/// times slower.
struct ByRun<T>(Vec<Option<T>>);

impl<T: Clone> ByRun<T> {
    fn new(timeline: &Timeline<'_>) -> Self {
        Self(vec![None; timeline.runs.len()])
    }

    /// Changes the value of a run, after initializing it with `first` if the run has none.
    fn update(&mut self, run: usize, first: T, change: impl FnOnce(&mut T)) {
        if let Some(value) = self.0.get_mut(run) {
            change(value.get_or_insert(first));
        }
    }

    /// The values of the runs that have one.
    fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.0.iter().flatten()
    }
}
