//! Bounds of the starts of runs: of a request's period, of retention, of some runs.

use assay_domain::{period::Period, project::Project};

use crate::db::column::At;

/// Bounds of the start of visible runs in a period.
pub(crate) fn visible(project: &Project, period: &Period) -> (At, At) {
    let (from, to) = project.visible_part(period.from, period.to);
    (At(from), At(to))
}

/// Bounds of the start of all visible runs.
pub(crate) const fn retention_bounds(project: &Project) -> (At, At) {
    (At(project.visible_from), At(project.visible_to))
}

/// The first and the last of some starts, as bounds with which any plan can exclude partitions.
pub(crate) fn span(starts: &[At]) -> Option<(At, At)> {
    starts.iter().copied().min().zip(starts.iter().copied().max())
}
