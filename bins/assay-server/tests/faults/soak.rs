//! A steady load for some minutes, with checks of memory and descriptors.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    load::Load,
    world::{Report, World},
};

/// The interval of imports.
const IMPORT_EVERY: Duration = Duration::from_secs(10);
/// The permitted growth of memory from the end of the first quarter to the end, in megabytes.
const GROWTH_MB: u64 = 16;

/// `ASSAY_SOAK_MINUTES` sets the duration, `ASSAY_SOAK_READERS` the number of readers.
#[test]
#[ignore = "it takes twenty minutes: `just soak`"]
fn memory_and_descriptors_stay_flat() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let whole = Duration::from_secs(60 * number("ASSAY_SOAK_MINUTES", 20));
    let readers = usize::try_from(number("ASSAY_SOAK_READERS", 2)).unwrap();
    let mut world = World::new();
    for build in 1..=20 {
        world.import(&Report::whole(build, 200, 6_000 - i64::from(build)));
    }
    let (began, load) = (Instant::now(), Load::start(&world, readers));
    let mut measurements: Vec<(Duration, u64, usize)> = Vec::new();
    let mut build = 20;
    while began.elapsed() < whole {
        thread::sleep(IMPORT_EVERY);
        build += 1;
        world.import(&Report::whole(build, 200, 6_000 - i64::from(build)));
        let now = (
            began.elapsed(),
            world.server.megabytes(),
            world.server.descriptors(),
        );
        println!(
            "{:>6} s  {:>5} MB  {:>4} descriptors",
            now.0.as_secs(),
            now.1,
            now.2
        );
        measurements.push(now);
    }
    let answers = load.stop();
    let failed = answers.iter().filter(|answer| answer.status != 200).count();
    println!("{} answers, {failed} of them failures", answers.len());
    assert_eq!(failed, 0);
    let settled = measurements
        .iter()
        .find(|(at, ..)| *at * 4 >= whole)
        .expect("it was measured");
    let last = measurements.last().expect("it was measured");
    assert!(
        last.1 <= settled.1 + GROWTH_MB,
        "{} MB, then {} MB",
        settled.1,
        last.1
    );
    let (few, many) = (settled.2, last.2);
    assert!(many <= few + 10, "{few} descriptors, then {many}");
    assert!(world.server.lives());
}
