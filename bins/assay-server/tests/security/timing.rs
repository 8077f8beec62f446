//! Compares the times for absent and foreign ids. The test is ignored by default, because a person reads its figures.

use std::time::Instant;

use crate::world::World;
use assay_testkit::wire::PersistentConnection;

const ROUNDS: usize = 4_000;

#[test]
#[ignore = "a measurement: its result is in docs/guarantees.md"]
fn timing_of_absent_and_of_foreign_ids() {
    let world = World::new();
    let absent = "01a1fb15-b298-7514-9198-bca91f3e7e8b";
    let (ours, theirs) = (&world.ours, &world.theirs);
    let fingerprint = |of: &str| format!("{}/errors/{of}", ours.project);
    for (what, foreign, absent) in [
        (
            "project",
            format!("{}/settings", theirs.project),
            format!("{absent}/settings"),
        ),
        (
            "run",
            format!("{}/runs/{}", ours.project, theirs.runs[0]),
            format!("{}/runs/{absent}", ours.project),
        ),
        (
            "signature",
            fingerprint(&theirs.fingerprints[0]),
            fingerprint(&"0".repeat(theirs.fingerprints[0].len())),
        ),
    ] {
        let request = |path: &str| {
            format!(
                "GET /api/v1/projects/{path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n\r\n",
                world.keys.good
            )
        };
        let (foreign, absent) = (request(&foreign), request(&absent));
        let mut connection = PersistentConnection::new(world.address);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            // The requests alternate in both orders, so that drift affects both.
            let mut pair = [(&foreign, &mut first), (&absent, &mut second)];
            if round % 2 == 0 {
                pair.reverse();
            }
            for (request, times) in pair {
                let began = Instant::now();
                assert_eq!(connection.send(request.as_bytes(), false).unwrap().status, 404);
                times.push(began.elapsed().as_nanos() as f64 / 1_000.0);
            }
        }
        let (first, second) = (Summary::of(first), Summary::of(second));
        let error = (first.variance / first.count + second.variance / second.count).sqrt();
        println!(
            "{what}: foreign {:.1} µs, absent {:.1} µs (medians); trimmed means differ by {:.2} µs, t = {:.2}",
            first.median,
            second.median,
            first.mean - second.mean,
            (first.mean - second.mean) / error
        );
    }
}

/// The middle ninety percent of some times.
struct Summary {
    median: f64,
    mean: f64,
    variance: f64,
    count: f64,
}

impl Summary {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let trimmed = &times[times.len() / 20..times.len() - times.len() / 20];
        let count = trimmed.len() as f64;
        let mean = trimmed.iter().sum::<f64>() / count;
        let variance = trimmed.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Self {
            median: times[times.len() / 2],
            mean,
            variance,
            count,
        }
    }
}
