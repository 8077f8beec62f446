//! Sentences for verdicts and signals, with counts that a reader can check.

use assay_domain::{
    observation::RunFacts,
    verdict::{Signal, VerdictStatus},
};

use crate::{
    config::ENOUGH_RUNS,
    model::{calendar::Calendar, project_rates::branches_usually_break},
    participation::Presence,
    timeline::Chain,
    verdict::{status::FailedTest, streak},
};

/// The failures on the stable branch from which on it names their only variant.
const VARIANT_FAILURES_ON_STABLE: usize = 2;

/// The sentence of a failing test's verdict.
pub(crate) fn of(failed_test: &FailedTest<'_, '_>, status: VerdictStatus, reason: Option<Signal>) -> String {
    let sentence = sentence_of_verdict(failed_test, status, reason);
    let ends = &failed_test.findings.ends;
    if let Some(left_at) = ends.left_at.filter(|_| status != VerdictStatus::Broken) {
        return format!(
            "{sentence}; {}",
            streak::not_run_since(failed_test.test_counts, left_at)
        );
    }
    let on_variant = match reason {
        Some(Signal::FailureRateFlaky | Signal::RetryRate | Signal::SameShaFlip) => one_variant(failed_test),
        Some(_) | None => String::new(),
    };
    match ends.failing_now {
        Some(end) if status == VerdictStatus::Flaky => {
            let streak = streak::sentence(failed_test.test_counts, &end);
            format!("{sentence}{on_variant}; failing now: {}", uncapitalized(&streak))
        }
        Some(_) | None => sentence + &on_variant,
    }
}

fn sentence_of_verdict(
    failed_test: &FailedTest<'_, '_>,
    status: VerdictStatus,
    reason: Option<Signal>,
) -> String {
    let now = failed_test.findings.ends.failing_now;
    match (status, reason, now) {
        (VerdictStatus::Failing, Some(Signal::MassFailure), Some(end)) => {
            return streak::sentence(failed_test.test_counts, &end);
        }
        (VerdictStatus::Healthy, Some(Signal::FailingOffStable), _) if now.is_none() => {
            let branch = uncapitalized(&sentence(failed_test, Signal::FailingOffStable));
            let stable = failed_test.test_counts.timeline.on_stable_branch();
            return if failed_test.test_counts.column.presence.on_stable_chain {
                format!("Passes{stable}; {branch}")
            } else {
                sentence(failed_test, Signal::FailingOffStable)
            };
        }
        (_, Some(reason), _) => return sentence(failed_test, reason),
        (_, None, _) => {}
    }
    if status == VerdictStatus::InsufficientData {
        let dropped =
            failed_test.test_counts.column.presence.seen - failed_test.test_counts.column.presence.considered;
        let mass_failures = match dropped {
            0 => String::new(),
            1 => " (1 more was a mass failure)".to_owned(),
            many => format!(" ({many} more were mass failures)"),
        };
        return format!(
            "Only {}{mass_failures}, {} with a failure; {ENOUGH_RUNS} are needed",
            runs(failed_test.test_counts.column.presence.considered),
            failed_test.findings.runs.failing
        );
    }
    if let Some(end) = &failed_test.findings.ends.failing_now {
        return streak::sentence(failed_test.test_counts, end);
    }
    let failed = format!(
        "A failed attempt in {} of {}",
        failed_test.findings.runs.failing,
        runs(failed_test.test_counts.column.presence.considered)
    );
    match failed_test.incidents() {
        0 => format!("{failed}; breakages and their fixes explain them"),
        incidents => format!(
            "{failed}; passed and failed on the same code {}, by a flake or by something outside of the code",
            times(incidents)
        ),
    }
}

/// The variant on which all failures of a flaky test are, or all on the stable branch, if it has several.
fn one_variant(failed_test: &FailedTest<'_, '_>) -> String {
    let (timeline, variants) = (
        failed_test.test_counts.timeline,
        failed_test.test_counts.column.variants,
    );
    let place = if failed_test.findings.chain_counts.failing_variants == 1 {
        failing_chains(failed_test)
            .next()
            .map(|chain| ("".to_owned(), chain))
    } else {
        // What a branch failed elsewhere may be its own breakage.
        let on_stable: Vec<_> = failing_chains(failed_test).filter(|chain| chain.stable).collect();
        let first = on_stable
            .first()
            .filter(|_| on_stable.len() >= VARIANT_FAILURES_ON_STABLE);
        let only = first.filter(|first| on_stable.iter().all(|chain| chain.lane == first.lane));
        only.map(|chain| (timeline.on_stable_branch(), *chain))
    };
    let Some((place, chain)) = place.filter(|_| variants > 1) else {
        return String::new();
    };
    let others = match variants - 1 {
        1 => "the other variant".to_owned(),
        others => format!("{others} other variants"),
    };
    format!(";{place} on {} only, not on {others}", named(chain))
}

/// The sentence of a test without a failed attempt.
pub(crate) fn of_clean(presence: Presence) -> String {
    let seen = presence.seen;
    if seen == 0 && presence.skipped == 0 {
        "Only in runs that are not complete yet".to_owned()
    } else if seen == 0 {
        format!("Skipped in {}", all_runs(presence.skipped))
    } else if presence.considered == 0 {
        format!(
            "Passed only in mass failures ({}); {ENOUGH_RUNS} other runs are needed",
            runs(seen)
        )
    } else if !presence.enough {
        format!(
            "Passed in {}; {ENOUGH_RUNS} are needed",
            all_runs(presence.considered)
        )
    } else {
        format!("Passed in {}", all_runs(seen))
    }
}

/// The end of a sentence about a test that failed in a run that does not count yet.
pub(crate) fn unsettled(run: &RunFacts) -> String {
    format!(
        "; failed in run {}, which is not complete and does not count yet",
        run.number
    )
}

/// "of 0.98"; a probability that would be rounded to 1 is "above 0.99".
fn probability(value: f64) -> String {
    if value < 0.995 {
        format!("of {value:.2}")
    } else {
        "above 0.99".to_owned()
    }
}

/// The sentence of a signal, with its counts.
pub(crate) fn sentence(failed_test: &FailedTest<'_, '_>, signal: Signal) -> String {
    let chain_counts = &failed_test.findings.chain_counts;
    match signal {
        Signal::ConsecutiveFailures => failed_test
            .findings
            .ends
            .breakage
            .map(|breakage| streak::sentence(failed_test.test_counts, &breakage.end))
            .unwrap_or_default(),
        Signal::FailureRateBroken => failed_test
            .findings
            .ends
            .breakage
            .map(|breakage| {
                let streak = streak::sentence(failed_test.test_counts, &breakage.end);
                format!(
                    "{streak}; the code is broken with a probability {}",
                    probability(breakage.probability)
                )
            })
            .unwrap_or_default(),
        Signal::SameShaFlip => {
            format!(
                "Passed and failed on the same revision {}",
                times(chain_counts.contradictions)
            )
        }
        Signal::RetryRate => {
            format!(
                "Passed on retry in {} of {}",
                failed_test.findings.runs.recovered,
                runs(failed_test.test_counts.column.presence.considered)
            )
        }
        Signal::FailureRateFlaky => episodes(failed_test),
        Signal::FlipRate => format!(
            "Changed between passing and failing {} among {} pairs of neighbouring runs",
            times(chain_counts.flips),
            failed_test.test_counts.column.pairs
        ),
        Signal::IsolatedFailure => isolated(failed_test),
        Signal::MassFailure => mass_failure(failed_test),
        Signal::FailingOffStable => failed_test
            .findings
            .ends
            .off_stable
            .map(|end| streak::sentence(failed_test.test_counts, &end))
            .unwrap_or_default(),
        Signal::VariantSpecific => format!(
            "All {} failures are on {}, one of {} variants",
            chain_counts.failures,
            failing_chains(failed_test)
                .next()
                .map_or("the default variant", named),
            failed_test.test_counts.column.variants
        ),
        Signal::UnrelatedBranches => format!(
            "Failed on {} branches one after the other and passed in between",
            failed_test.findings.unrelated_branches.len()
        ),
        Signal::Calendar => {
            let calendar = failed_test.calendar.as_ref();
            calendar.map(Calendar::sentence).unwrap_or_default()
        }
        Signal::Resolved => format!(
            "No failure in the last {} after {} in the {} before",
            runs(failed_test.findings.runs.passes_since()),
            failed_test.findings.runs.failing,
            failed_test.findings.runs.until_last_failure
        ),
    }
}

/// The sentence about failing episodes that ended.
fn episodes(failed_test: &FailedTest<'_, '_>) -> String {
    let chain_counts = &failed_test.findings.chain_counts;
    let branch = if chain_counts.episodes_off_stable {
        String::new()
    } else {
        failed_test.test_counts.timeline.on_stable_branch()
    };
    match chain_counts.episodes {
        1 if failed_test.findings.runs.failing == 1 => {
            format!("Failed once{branch} and passed again, and nothing in between looks like a fix")
        }
        1 => format!("Failed in 1 episode{branch}; one breakage and its fix do not explain it"),
        many => {
            format!(
                "Failed in {many} separate episodes{branch}; breakages and their fixes do not explain them"
            )
        }
    }
}

/// The text after the sentence in the detail of a signal. `pair` has the numbers of the runs that failed and
/// passed on the last contradicted revision.
pub(crate) fn addition(failed_test: &FailedTest<'_, '_>, signal: Signal, pair: Option<(i32, i32)>) -> String {
    match signal {
        Signal::SameShaFlip => pair
            .map(|(failed, passed)| match failed == passed {
                true => format!("; most recently in the executions of run {failed}"),
                false => format!("; most recently it failed in run {failed} and passed in run {passed}"),
            })
            .unwrap_or_default(),
        Signal::FailureRateFlaky => {
            let rate = failed_test.findings.runs.failure_rate();
            let rate = rate.map(|rate| format!("; failure rate {rate:.3}"));
            rate.unwrap_or_default() + &branches_break(failed_test)
        }
        Signal::Resolved => format!("; {} passes were needed", failed_test.findings.runs.passes_needed),
        Signal::ConsecutiveFailures
        | Signal::FailureRateBroken
        | Signal::RetryRate
        | Signal::FlipRate
        | Signal::IsolatedFailure
        | Signal::MassFailure
        | Signal::FailingOffStable
        | Signal::VariantSpecific
        | Signal::UnrelatedBranches
        | Signal::Calendar => String::new(),
    }
}

/// The rate of breaking on branches, if a failure there counts and the project differs from the usual one.
fn branches_break(failed_test: &FailedTest<'_, '_>) -> String {
    let percent = |rate: f64| format!("{:.2} %", rate * 100.0);
    let rates = &failed_test.test_counts.background.rates;
    let rate = percent(rates.branches_break);
    let usual = percent(branches_usually_break(rates.tests));
    if failed_test.findings.chain_counts.episodes_off_stable && rate != usual {
        format!("; a new revision of a branch breaks about {rate} of the project's tests")
    } else {
        String::new()
    }
}

fn mass_failure(failed_test: &FailedTest<'_, '_>) -> String {
    let recovered = failed_test.findings.runs.recovered_in_mass_failures;
    let failed = failed_test.findings.runs.mass_failures - recovered;
    match (failed, recovered) {
        (0, _) => format!(
            "Passed on retry in {} in which many tests failed together",
            runs(recovered)
        ),
        (_, 0) => format!("Failed in {} in which many tests failed together", runs(failed)),
        (_, _) => format!(
            "Failed in {} in which many tests failed together, and passed on retry in {recovered} more",
            runs(failed)
        ),
    }
}

fn isolated(failed_test: &FailedTest<'_, '_>) -> String {
    let failed = failed_test.findings.failed_runs.iter().filter(|run| run.failed);
    let runs_of = failed.filter_map(|run| failed_test.test_counts.timeline.runs.get(run.run));
    let numbers: Vec<i32> = runs_of.map(|run| run.facts.number).collect();
    match numbers.as_slice() {
        [number] => format!("Failed once, in run {number}"),
        [first, .., last] => format!(
            "Failed in one episode of {} from run {first} to run {last}",
            runs(crate::numbers::count(numbers.len()))
        ),
        [] => String::new(),
    }
}

/// The chains of the failures that count.
fn failing_chains<'a, 'h>(failed_test: &'a FailedTest<'_, 'h>) -> impl Iterator<Item = &'a Chain<'h>> {
    let failures = failed_test.test_counts.failures.iter();
    let considered = failures.filter_map(|failure| failed_test.test_counts.considered(failure.position));
    considered.filter_map(|failure| failed_test.test_counts.timeline.chains.get(failure.entry.chain))
}

/// The variant of a chain.
fn named<'h>(chain: &Chain<'h>) -> &'h str {
    match chain.variant {
        "" => "the default variant",
        variant => variant,
    }
}

fn uncapitalized(sentence: &str) -> String {
    let mut rest = sentence.chars();
    rest.next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(rest).collect())
}

fn runs(count: u32) -> String {
    if count == 1 {
        "1 run".to_owned()
    } else {
        format!("{count} runs")
    }
}

fn all_runs(count: u32) -> String {
    match count {
        1 => "its only run".to_owned(),
        _ => format!("all {count} runs"),
    }
}

fn times(count: u32) -> String {
    if count == 1 {
        "1 time".to_owned()
    } else {
        format!("{count} times")
    }
}
