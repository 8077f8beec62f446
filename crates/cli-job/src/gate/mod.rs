//! The gate: whether the failures of a run may be excused.
//!
//! [`judged`] holds the failures and their causes, from a server or from a history. [`policy`] decides, and [`show`] writes
//! the decision as text, Markdown, JSON or JUnit XML. [`changed`] reads the list of changed files, and [`excuses`]
//! holds what a team accepts until a day. [`reruns`] runs failed
//! tests again until it can decide, by the selections of [`selector`], and
//! [`burn_in`] new tests until it is known how often they fail. [`proof`] writes a decision with all that it depends on.

pub mod burn_in;
pub mod changed;
pub mod excuses;
pub mod judged;
pub mod policy;
pub mod proof;
pub mod reruns;
pub mod selector;
pub mod show;

pub use assay_flakiness::plan;
