//! The gate: whether the failures of a run may be excused.
//!
//! [`judged`] holds the failures and their causes, from a server or from a history. [`policy`] decides, and [`show`]
//! writes the decision as text, Markdown, JSON or JUnit XML. [`record`] sends it to the server.

pub(crate) mod flags;
pub(crate) mod judged;
pub(crate) mod policy;
pub(crate) mod record;
pub(crate) mod show;
mod statuses;
pub(crate) mod stored;

pub(crate) use statuses::means_failed_tests;
