//! Divides the tests of a suite among machines by their usual durations.
//!
//! The input is the list that the runner itself writes, so no test that the runner knows is left out. Its entries are
//! *units*: what the runner can select, which is a test, a file, a class or a package. [`Listing::parse`] reads the list,
//! [`Plan::new`] divides the units among shards, and [`Share::list`] writes those of one shard for the runner.
//!
//! Every machine computes the whole plan. The plan depends only on the list, the timings and the number of shards, so the
//! machines agree without talking to each other. Each unit is in exactly one shard.

mod listing;
mod plan;
mod share;
mod timing;

pub use listing::{Listing, ListingError, Runner};
pub use plan::{Plan, Shard};
pub use share::Share;
pub use timing::{TimedRun, Timing, Timings};
