//! `assay-admin import` killed at random moments, and repeated.

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::{
    quiet, snapshot,
    world::{Report, World},
};

/// The number of kills. `ASSAY_KILLS` sets it.
const KILLS: u32 = 15;

#[test]
fn an_import_killed_and_repeated_equals_one_left_alone() {
    let _shared = quiet::shared();
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let kills = number("ASSAY_KILLS").unwrap_or(KILLS);
    let seed = number("ASSAY_SEED").unwrap_or(1);
    let history = history();

    let undisturbed = World::new();
    let began = Instant::now();
    for report in &history {
        undisturbed.import(report);
    }
    let typical = began.elapsed() / u32::try_from(history.len()).unwrap();
    let expected = snapshot::of(&undisturbed);

    let mut random = StdRng::seed_from_u64(seed.into());
    let disturbed = World::new();
    let mut killed = 0;
    for (index, report) in (1..).zip(&history) {
        // Spread evenly over the history.
        while killed * u32::try_from(history.len()).unwrap() < kills * index {
            let moment = typical.mul_f64(random.random_range(0.0..1.1));
            killed += u32::from(killed_after(moment, disturbed.import_command(report)));
        }
        disturbed.import(report);
    }
    println!("{killed} imports of about {typical:?} killed");
    snapshot::assert_same(&snapshot::of(&disturbed), &expected, &format!("seed {seed}"));

    // Repeating everything once more changes nothing.
    for report in &history {
        disturbed.import(report);
    }
    snapshot::assert_same(&snapshot::of(&disturbed), &expected, &format!("seed {seed}"));
}

/// Whether the program was still running when it was killed.
fn killed_after(moment: Duration, mut command: Command) -> bool {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(moment);
    let ran = child.try_wait().unwrap().is_none();
    // The program may have exited already.
    let _ = child.kill();
    child.wait().unwrap();
    ran
}

/// Sharded and unsharded runs, oldest first.
fn history() -> Vec<Report> {
    let mut reports = Vec::new();
    for build in 1..=5 {
        let age_s = (100 - i64::from(build)) * 3_600;
        let parts = if build % 2 == 0 { 2 } else { 1 };
        reports.extend((1..=parts).map(|part| Report {
            build,
            shard: (parts > 1).then_some((part, parts)),
            tests: 25,
            age_s,
        }));
    }
    reports
}
