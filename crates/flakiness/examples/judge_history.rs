//! Judges a history that a program built itself, without a server or a database.
//!
//! `cargo run -p assay-flakiness --example judge_history`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use assay_flakiness::{
    Engine, HistoryBuilder, ObservedRun,
    domain::{
        attempt::AttemptStatus::{Failed, Passed},
        test::TestName,
        timestamp::{BadTimestamp, DAY_MS, Timestamp},
        verdict::Judge,
    },
};

fn main() -> Result<(), BadTimestamp> {
    let start: Timestamp = "2026-11-01T08:00:00Z".parse()?;
    let pays = TestName {
        name: "basket > pays".to_owned(),
        file_path: Some("basket.spec.ts".to_owned()),
    };
    let ships = TestName {
        name: "order > ships".to_owned(),
        file_path: Some("order.spec.ts".to_owned()),
    };

    let mut history = HistoryBuilder::new("main");
    for number in 0..20_i64 {
        let run = ObservedRun {
            started_at: start.plus_ms(number * DAY_MS / 2),
            id: format!("build {number}"),
            branch: Some("main".to_owned()),
            revision: Some(format!("commit {number}")),
            variant: String::new(),
        };
        // One test passes on retry now and then, the other fails from the eighteenth run on.
        if number % 6 == 5 {
            history.observe(&run, &pays, [Failed, Passed]);
        } else {
            history.observe(&run, &pays, [Passed]);
        }
        history.observe(&run, &ships, [if number < 17 { Passed } else { Failed }]);
    }

    let (history, names) = history.build();
    for (name, judgement) in names
        .iter()
        .zip(Engine::default().judge(&history, start.plus_days(10)))
    {
        let verdict = judgement.verdict;
        println!("{}: {}. {}.", name.name, verdict.status, verdict.explanation);
        for signal in judgement.evidence.signals {
            println!(
                "  {} ({}): {}",
                signal.signal,
                signal.runs.join(", "),
                signal.detail
            );
        }
    }
    Ok(())
}
