//! The odds that a crowd of failures on a new revision comes from the change.

use assay_domain::timestamp::Timestamp;

use crate::{config::MASS_FAILURE, model::background::Background, timeline::Timeline};

/// The odds that a crowd on a new revision comes from the change and not from the run.
const OWN: f64 = 1.0;
/// The same shortly after a mass failure of another branch.
const NEAR: f64 = 0.5;
/// How long another branch's mass failure counts.
const NEAR_MS: i64 = 6 * 3_600_000;

/// The odds by position.
pub(crate) fn odds(timeline: &Timeline<'_>, background: &Background) -> Vec<f64> {
    let mut odds = vec![OWN; timeline.entries.len()];
    let mut recent: Vec<(Timestamp, Option<&str>)> = Vec::new();
    for position in timeline.newest_first.iter().rev() {
        let Some(entry) = timeline.entries.get(*position) else {
            continue;
        };
        let run = &entry.observed.run;
        recent.retain(|(at, _)| run.started_at.since_ms(*at) <= NEAR_MS);
        let branch = run.branch.as_deref();
        if recent.iter().any(|(_, other)| *other != branch)
            && let Some(odds) = odds.get_mut(*position)
        {
            *odds = NEAR;
        }
        let beta = background.beta.get(*position).copied().unwrap_or(0.0);
        if beta >= MASS_FAILURE {
            recent.push((run.started_at, branch));
        }
    }
    odds
}
