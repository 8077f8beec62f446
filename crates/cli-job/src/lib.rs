//! The decisions of a CI job.
//!
//! [`gate`] decides which failures of a run are excused, [`verify`] whether a flaky test is fixed, [`split`] divides a suite among
//! shards, and [`culprit`] searches for the commit that broke a test. [`runners`] writes their lists of tests as each runner reads them.

pub mod culprit;
pub mod gate;
pub mod issues;
pub mod runners;
pub mod split;
pub mod verify;
