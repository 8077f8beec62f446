//! Recomputes every count of a verdict from the test's history in the API.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    generated_history::instant,
    imported::{ImportedHistory, test_of},
    recount::Recount,
};

#[test]
fn every_count_can_be_recomputed_from_the_history_route() {
    let imported = ImportedHistory::new(4, true);
    let (live, _) = imported.flaky_list();
    let mut shown = BTreeSet::new();
    for entry in &live {
        let history = imported.get_test(&test_of(entry), "?days=30&");
        let recount = Recount::of(&history, &entry["evidence"]);
        check_evidence(&recount, entry, &mut shown);
        check_entry(&recount, entry);
    }
    // The status route returns every other test, too.
    for (test, verdict) in imported.stored_verdicts() {
        let history = imported.get_test(&test, "?days=30&");
        if verdict["awaitingFirstWrite"] == true {
            let now = verdict["evaluatedAt"].as_str();
            assert_eq!(now, None, "{test:?}");
            continue;
        }
        let recount = Recount::of(&history, &verdict["evidence"]);
        check_evidence(&recount, &verdict, &mut shown);
        check_figures(&recount, &verdict);
    }
    // Signals that no test shows would be unchecked.
    for signal in [
        "consecutive_failures",
        "failure_rate_broken",
        "same_sha_flip",
        "retry_rate",
        "failure_rate_flaky",
        "flip_rate",
        "isolated_failure",
        "mass_failure",
        "failing_off_stable",
        "variant_specific",
        "unrelated_branches",
        "resolved",
    ] {
        assert!(shown.contains(signal), "no test shows {signal}");
    }
}

/// A recomputed signal: value, threshold, and runs, newest first.
type ExpectedSignal = (f64, f64, Vec<String>);

fn check_evidence(recount: &Recount, verdict: &Value, shown: &mut BTreeSet<String>) {
    let evidence = &verdict["evidence"];
    let context = format!("{verdict:#}");
    assert_eq!(evidence["runsSeen"], recount.all_runs.len(), "{context}");
    assert_eq!(evidence["runsSkipped"], recount.skipped, "{context}");
    assert_eq!(
        evidence["runsDropped"],
        recount.all_runs.len() - recount.considered.len(),
        "{context}"
    );
    let signals: BTreeMap<&str, &Value> = evidence["signals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|signal| (signal["signal"].as_str().unwrap(), signal))
        .collect();
    let expected = expected(recount, verdict);
    assert_eq!(
        signals.keys().copied().collect::<Vec<_>>(),
        expected.keys().copied().collect::<Vec<_>>(),
        "{context}"
    );
    for (signal, (value, threshold, runs)) in expected {
        let answered = signals[signal];
        assert_eq!(answered["value"].as_f64(), Some(value), "{signal}: {context}");
        assert_eq!(
            answered["threshold"].as_f64(),
            Some(threshold),
            "{signal}: {context}"
        );
        assert!(value >= threshold, "{signal}: {context}");
        assert_eq!(answered["runsTotal"], runs.len(), "{signal}: {context}");
        assert_eq!(
            answered["runs"],
            json!(runs[..runs.len().min(20)]),
            "{signal}: {context}"
        );
        shown.insert(signal.to_owned());
    }
    if let Some(reason) = verdict["statusReason"].as_str() {
        let detail = signals[reason]["detail"].as_str().unwrap();
        assert!(
            detail.starts_with(verdict["explanation"].as_str().unwrap()),
            "{context}"
        );
    }
}

/// The active signals by the counts and by the two probabilities of the answer.
fn expected(recount: &Recount, verdict: &Value) -> BTreeMap<&'static str, ExpectedSignal> {
    let real = |count: usize| count as f64;
    let score = verdict["flakeScore"].as_f64().unwrap();
    let signal_field = |signal: &str, field: &str| {
        let signals = verdict["evidence"]["signals"].as_array().unwrap();
        let answered = signals.iter().find(|answered| answered["signal"] == signal);
        answered.map_or(Value::Null, |answered| answered[field].clone())
    };
    let mut signals: BTreeMap<&'static str, ExpectedSignal> = BTreeMap::new();
    let considered = real(recount.considered.len().max(1));
    let recovered = recount.runs(|run| run.recovered());
    let failed = recount.runs(|run| run.failed());
    let of_route = recount.contradictions();
    let (mut contradictions, mut contradicting) = (of_route.len(), recount.newest_first(of_route.concat()));
    // The history has one outcome a run. Every shard runs this test, and only the attempts route shows executions of one
    // run that contradict each other.
    let name = verdict["testName"]
        .as_str()
        .or(verdict["test"]["name"].as_str())
        .unwrap();
    if name.ends_with(" 23") {
        let value = signal_field("same_sha_flip", "value")
            .as_f64()
            .unwrap_or_default();
        let runs = signal_field("same_sha_flip", "runs");
        let runs: Vec<String> = serde_json::from_value(runs).unwrap_or_default();
        assert!(value >= real(contradictions), "{verdict:#}");
        assert!(contradicting.iter().all(|run| runs.contains(run)), "{verdict:#}");
        (contradictions, contradicting) = (value as usize, runs);
    }
    let episodes = recount.episodes();
    let incidents = recovered.len() + contradictions;
    let episodic = episodes > recount.open_episodes() && score >= 0.5;
    let breakage = recount.breakage(&signal_field("consecutive_failures", "runs"));
    if !recovered.is_empty() {
        let value = real(recovered.len()) / considered;
        signals.insert("retry_rate", (value, 1.0 / considered, recovered));
    }
    if contradictions > 0 {
        signals.insert("same_sha_flip", (real(contradictions), 1.0, contradicting));
    }
    if episodic {
        signals.insert("failure_rate_flaky", (score, 0.5, failed.clone()));
    }
    let flips = recount.flips();
    let excess: usize = flips.iter().map(|chain| chain.len().saturating_sub(2)).sum();
    if excess >= 2 {
        let (flips, pairs) = (flips.concat(), real(recount.pairs().max(1)));
        let threshold = real(flips.len() - excess + 2) / pairs;
        let value = real(flips.len()) / pairs;
        signals.insert("flip_rate", (value, threshold, recount.newest_first(flips)));
    }
    if let Some(streak) = &breakage {
        signals.insert("consecutive_failures", (real(streak.len()), 2.0, streak.clone()));
        if let Some(probability) = signal_field("failure_rate_broken", "value").as_f64() {
            signals.insert("failure_rate_broken", (probability, 0.75, streak.clone()));
        }
    }
    if episodes == 1 && incidents == 0 && !episodic && breakage.is_none() {
        signals.insert("isolated_failure", (1.0, 1.0, failed));
    }
    let mass_failures = recount.mass_failures();
    if !mass_failures.is_empty() {
        signals.insert("mass_failure", (real(mass_failures.len()), 1.0, mass_failures));
    }
    if let Some(streak) = recount.off_stable() {
        signals.insert("failing_off_stable", (real(streak.len()), 2.0, streak));
    }
    let failing = recount.runs(|run| run.any_failed);
    if failing.len() >= 2 && recount.failing_variants() == 1 && recount.variants() > 1 {
        signals.insert("variant_specific", (real(failing.len()), 2.0, failing));
    }
    let unrelated = recount.unrelated_branches();
    if unrelated.len() >= 3 {
        signals.insert("unrelated_branches", (real(unrelated.len()), 3.0, unrelated));
    }
    // Whether the test would be flaky without the passes since its last failure.
    let flaky = episodic || (incidents > 0 && score >= 0.4);
    let (passes, needed) = recount.passes_since();
    let broken = verdict["status"] == "broken";
    let enough = recount.considered.len() >= 5 || incidents > 0;
    let fails_now = recount.fails_now();
    if flaky && !broken && !fails_now && enough && passes.len() >= needed {
        signals.insert("resolved", (real(passes.len()), real(needed), passes));
    }
    signals
}

/// The figures of the status route.
fn check_figures(recount: &Recount, verdict: &Value) {
    let context = format!("{verdict:#}");
    let failing = recount.runs(|run| run.any_failed).len();
    let considered = recount.considered.len();
    assert_eq!(verdict["runsConsidered"], considered, "{context}");
    let rate = (considered > 0).then(|| failing as f64 / considered as f64);
    assert_eq!(verdict["failureRate"].as_f64(), rate, "{context}");
    let flips = recount.flips().concat().len();
    let flip_rate = if flips == 0 {
        0.0
    } else {
        flips as f64 / recount.pairs() as f64
    };
    assert_eq!(verdict["flipRate"].as_f64(), Some(flip_rate), "{context}");
    assert_eq!(verdict["failureStreak"], recount.failure_streak(), "{context}");
    let last = recount.all_runs.last().map(|run| {
        json!({
            "runId": run.run, "runNumber": run.number, "status": run.status, "startedAt": instant(run.started_at),
        })
    });
    assert_eq!(verdict["lastRun"], json!(last), "{context}");
    let signals: BTreeSet<&str> = verdict["evidence"]["signals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|signal| signal["signal"].as_str().unwrap())
        .collect();
    let labels = [("flips", "flip_rate"), ("retries", "retry_rate")];
    let labels: Vec<&str> = labels
        .into_iter()
        .filter(|(_, signal)| signals.contains(signal))
        .map(|(label, _)| label)
        .collect();
    assert_eq!(verdict["labels"], json!(labels), "{context}");
    let failing_on: Vec<Value> = recount
        .failing_on()
        .into_iter()
        .map(|(branch, streak, since)| json!({"branch": branch, "streak": streak, "sinceRun": since}))
        .collect();
    assert_eq!(verdict["failingOn"], json!(failing_on), "{context}");
    check_status(recount, verdict, &signals);
}

/// Checks the verdict against the counts and the two probabilities.
fn check_status(recount: &Recount, verdict: &Value, signals: &BTreeSet<&str>) {
    let score = verdict["flakeScore"].as_f64().unwrap();
    let incident = signals.contains("retry_rate") || signals.contains("same_sha_flip");
    let expected = if signals.contains("failure_rate_broken") {
        "broken"
    } else if recount.considered.len() < 5 && !incident {
        if recount.fails_now() {
            "failing"
        } else {
            "insufficient_data"
        }
    } else if signals.contains("resolved") {
        "healthy"
    } else if signals.contains("failure_rate_flaky") || (incident && score >= 0.4) {
        "flaky"
    } else if recount.fails_now() {
        "failing"
    } else {
        "healthy"
    };
    assert_eq!(verdict["status"], expected, "{verdict:#}");
}

/// Checks the fields that only the flaky list has.
fn check_entry(recount: &Recount, entry: &Value) {
    check_figures(recount, entry);
    assert_eq!(entry["runsInWindow"], recount.all_runs.len(), "{entry:#}");
    assert_eq!(entry["timeLostMs"].as_u64(), recount.time_lost(), "{entry:#}");
    assert!(
        entry["status"] == "flaky" || entry["status"] == "broken",
        "{entry:#}"
    );
}
