//! Regression tests: histories that an earlier engine judged wrongly.

use assay_flakiness::{
    Engine,
    domain::{
        observation::History,
        timestamp::Timestamp,
        verdict::{Judge as _, Signal, Verdict, VerdictStatus},
    },
};

use crate::{
    history::{START_MS, add, letters, run},
    judgements::{HOUR_MS, Story},
};

const BROWSERS: [&str; 3] = ["chrome", "firefox", "webkit"];

#[test]
fn a_breakage_on_three_variants_at_once_is_not_flaky() {
    let at = |text: &str| Story::new().on_variants("main", &BROWSERS, &[text; 3]).verdict();
    let failing = at("20P F");
    assert_eq!(failing.status, VerdictStatus::Failing, "{failing:?}");
    assert!(failing.figures.flake_score < 0.1, "{failing:?}");
    let fixed = at("20P F 10P");
    assert_eq!(fixed.status, VerdictStatus::Healthy, "{fixed:?}");
    assert_eq!(fixed.reason, Some(Signal::IsolatedFailure));
    assert!(fixed.figures.flake_score < 0.4, "{fixed:?}");
    assert_eq!(at("20P FF").status, VerdictStatus::Broken);
}

#[test]
fn a_flake_on_one_of_three_variants_is_flaky_whichever_it_is() {
    for flaky in 0..3 {
        let mut texts = ["40P"; 3];
        texts[flaky] = "10P F 14P F 14P";
        let verdict = Story::new().on_variants("main", &BROWSERS, &texts).verdict();
        assert_eq!(verdict.status, VerdictStatus::Flaky, "{flaky}: {verdict:?}");
        assert!(verdict.signals.contains(&Signal::VariantSpecific));
    }
}

/// Pull requests of one run each, with these results.
fn pull_requests(text: &str) -> Story {
    let mut story = Story::new();
    for (number, (_, letter)) in (1..).zip(letters(text)) {
        story = story.on(&format!("pull-{number}"), "", &letter.to_string());
    }
    story
}

/// 13 failures in 198 runs. Two of the pull requests failed twice. Two failed right after another one, without a pass
/// in between, so nine of the eleven count as unrelated.
#[test]
fn a_test_that_fails_on_eleven_unrelated_pull_requests_is_flaky() {
    let text = "47P F 6P FF 7P F 11P F 18P F 11P F 10P FF 7P F 4P F 16P F 12P F 36P";
    let mut story = pull_requests(text);
    for (again, first) in [(64, 48), (132, 119)] {
        let same = story.history.runs[first - 1].run.branch.clone();
        story.history.runs[again - 1].run.branch = same;
    }
    let judgement = story.judgement();
    assert_eq!(judgement.verdict.status, VerdictStatus::Flaky, "{judgement:?}");
    let mut signals = judgement.evidence.signals.iter();
    let unrelated = signals.find(|signal| signal.signal == Signal::UnrelatedBranches);
    let unrelated = unrelated.unwrap();
    assert_eq!((unrelated.value, unrelated.threshold), (9.0, 3.0));
    assert_eq!(
        unrelated.detail,
        "Failed on 9 branches one after the other and passed in between"
    );
    assert_eq!(unrelated.runs_total, 9);
}

#[test]
fn a_test_that_fails_on_three_per_cent_of_unrelated_pull_requests_is_flaky() {
    let verdict = pull_requests("20P F 5P F P F P F 84P F PPP F PP F PP F 79P F 123P").verdict();
    assert_eq!(verdict.status, VerdictStatus::Flaky, "{verdict:?}");
    assert!(verdict.signals.contains(&Signal::UnrelatedBranches));
}

#[test]
fn a_test_that_fails_on_fifteen_of_328_pull_requests_is_flaky() {
    let text = "28P F 23P F 15P F 11P F 26P F 8P F 12P F 30P F 15P F 33P F 14P F 22P F 62P F PPP FF 11P";
    let verdict = pull_requests(text).verdict();
    assert_eq!(verdict.status, VerdictStatus::Flaky, "{verdict:?}");
    assert!(verdict.figures.flake_score > 0.95, "{verdict:?}");
}

#[test]
fn branches_that_fail_without_a_pass_in_between_are_not_unrelated() {
    let on_branches = |between: &str| {
        let mut story = Story::new().on("main", "", "20P");
        for branch in ["one", "two", "three", "four"] {
            story = story.on(branch, "", "F").on_variants("main", &[""], &[between]);
        }
        story.verdict().signals.contains(&Signal::UnrelatedBranches)
    };
    assert!(on_branches("P"));
    // The stable branch is broken, and every branch has it from there.
    assert!(!on_branches("F"));
}

#[test]
fn two_branches_that_fail_may_both_have_broken_the_test() {
    let mut story = Story::new().on("main", "", "20P");
    for branch in ["one", "two", "one", "two", "one"] {
        story = story.on_variants(branch, &[""], &["F"]);
        story = story.on_variants("main", &[""], &["P"]);
    }
    let verdict = story.verdict();
    assert!(
        !verdict.signals.contains(&Signal::UnrelatedBranches),
        "{verdict:?}"
    );
}

#[test]
fn a_contradiction_within_one_revision_makes_a_test_flaky() {
    let verdict = Story::new().on("main", "", "P [FFPF] F 25P").verdict();
    assert_eq!(
        (verdict.status, verdict.reason),
        (VerdictStatus::Flaky, Some(Signal::SameShaFlip)),
        "{verdict:?}"
    );
    let later = Story::new().on("main", "", "P [FFPF] F 54P").verdict();
    assert_eq!(later.status, VerdictStatus::Healthy, "{later:?}");
}

#[test]
fn a_revision_that_runs_every_night_may_break_without_a_change() {
    let nightly = |text: &str| {
        let mut story = Story::new().on("main", "", text);
        for run in &mut story.history.runs {
            let age = story.hours - i64::from(run.run.number);
            run.run.started_at = run.run.started_at.plus_days(-age);
        }
        story.verdict()
    };
    let verdict = nightly("[10P FF]");
    assert_eq!(verdict.status, VerdictStatus::Broken, "{verdict:?}");
    // An hour apart, the same results contradict each other.
    let rerun = Story::new().on("main", "", "[10P FF]").verdict();
    assert!(
        rerun.figures.broken_probability < verdict.figures.broken_probability,
        "{rerun:?}"
    );
}

#[test]
fn a_breakage_that_a_merged_pull_request_brought_along_is_no_flake() {
    let after = |text: &str| {
        let story = Story::new().on("main", "", "12P").on("pull", "", "F");
        story.on_variants("main", &[""], &[text]).verdict()
    };
    assert_eq!(after("F").status, VerdictStatus::Failing);
    assert_eq!(after("FF").status, VerdictStatus::Broken);
    assert_eq!(after("FFF").status, VerdictStatus::Broken);
    let fixed = after("FF 10P");
    assert_eq!(fixed.status, VerdictStatus::Healthy, "{fixed:?}");
    assert!(fixed.figures.flake_score < 0.2, "{fixed:?}");
}

#[test]
fn a_branch_that_was_fixed_before_the_merge_does_not_explain_a_breakage() {
    let pull = |text: &str| {
        let story = Story::new().on("main", "", "12P").on("pull", "", text);
        let merged = story.on_variants("main", &[""], &["F"]);
        merged.verdict().figures.flake_score
    };
    assert!(pull("F") < 0.3, "{}", pull("F"));
    assert!(pull("FP") > 0.6, "{}", pull("FP"));
}

#[test]
fn three_pull_requests_that_each_broke_and_fixed_a_test_are_no_flaky_test() {
    let mut story = Story::new().on("main", "", "30P");
    for pull in ["one", "two", "three"] {
        story = story.on(pull, "", "[FF] P").on_variants("main", &[""], &["3P"]);
    }
    let verdict = story.verdict();
    assert_eq!(verdict.status, VerdictStatus::Healthy, "{verdict:?}");
}

/// The test failed in 27 % of its runs before the last streak.
#[test]
fn a_job_that_failed_in_one_run_of_four_is_broken_after_twelve_more_failures() {
    let nights =
        "[FP] P PP [PPPFPPP] [PPF] [FP] F P PP P F P F P PP P F 5P P P P F [PPPPPPPF] F P F P F P P PP P P";
    let after_nights = |more: &str| Story::new().on("main", "", &format!("{nights} {more}")).verdict();
    let now = after_nights("[FFF] F");
    assert_eq!(now.status, VerdictStatus::Flaky, "{now:?}");
    assert_eq!(now.figures.failure_streak, 4);
    let later = after_nights("[FFF] F 8F");
    assert_eq!(later.status, VerdictStatus::Broken, "{later:?}");
}

#[test]
fn a_flaky_test_that_breaks_is_broken_once_a_flake_does_not_explain_the_streak() {
    let nights = "4P F 3P F 5P F 2P F 3P F 6P FF 2P F 4P F 3P F 5P";
    let after_nights = |failures: u32| {
        let text = format!("{nights} {failures}F");
        Story::new().on("main", "", &text).verdict().status
    };
    assert_eq!(after_nights(2), VerdictStatus::Flaky);
    assert_eq!(after_nights(8), VerdictStatus::Broken);
}

#[test]
fn twenty_passes_do_not_resolve_a_test_that_failed_now_and_then() {
    let verdict = |passes: u32| {
        let text = format!("PPRPRPRP {passes}P");
        Story::new().on("main", "", &text).verdict()
    };
    assert_eq!(verdict(22).status, VerdictStatus::Flaky);
    assert_eq!(verdict(30).reason, Some(Signal::Resolved));
}

/// The first of two tests. The second one passes in every run; the first one runs on every `gap`-th revision only.
fn beside_another(results: &str, gap: usize) -> Verdict {
    let letters: Vec<char> = letters(results).into_iter().map(|(_, letter)| letter).collect();
    let revisions = letters.len() * gap;
    let at = |number: usize| START_MS + i64::try_from(number).unwrap() * HOUR_MS;
    let runs = (0..revisions).map(|number| {
        let ordinal = i32::try_from(number + 1).unwrap();
        let mut run = run(ordinal, at(number + 1), Some("main"), Some(number.to_string()));
        if number % gap == 0 {
            add(&mut run, 0, letters[number / gap]);
        }
        add(&mut run, 1, 'P');
        run
    });
    let history = History {
        stable_branch: "main".into(),
        tests: 2,
        runs: runs.collect(),
    };
    let now = Timestamp::from_unix_ms(at(revisions + 1));
    Engine::default().verdicts(&history, now).remove(0)
}

#[test]
fn a_breakage_and_its_fix_between_two_runs_of_a_test_are_no_flake() {
    let everywhere = beside_another("12P F 12P", 1);
    assert_eq!(everywhere.status, VerdictStatus::Flaky, "{everywhere:?}");
    let seldom = beside_another("12P F 12P", 4);
    assert_eq!(seldom.status, VerdictStatus::Healthy, "{seldom:?}");
    // A second failure is no coincidence.
    let twice = beside_another("12P F 6P F 6P", 4);
    assert_eq!(twice.status, VerdictStatus::Flaky, "{twice:?}");
}

#[test]
fn a_test_that_failed_now_and_then_needs_more_passes_the_rarer_it_failed() {
    let verdict = |passes: u32| {
        Story::new()
            .on("main", "", &format!("9P F 9P F {passes}P"))
            .verdict()
    };
    assert_eq!(verdict(80).status, VerdictStatus::Flaky);
    assert_eq!(verdict(130).reason, Some(Signal::Resolved));
}
