//! The causes of one result of a test: the model's probabilities, split by cause.
//!
//! `docs/causes.md` explains the model. [`sequence`] orders a test's results, and [`links`] relates each to earlier ones.
//! [`prediction`] is the state of the code before a result, and [`parts`] the forward-backward pass over all of them.
//! [`stable_branch`] learns what failures of the stable branch come from, [`texts`] weighs the error text, and [`facts`]
//! has the counts of the sentence.

mod crowds;
mod facts;
mod links;
mod mended;
mod parts;
mod prediction;
mod sequence;
mod stable_branch;
mod texts;
mod window;
mod witnesses;

#[cfg(test)]
mod golden;

pub use facts::{CalendarFacts, CauseFacts, EndedStreaks, SameError};
pub use texts::ErrorTexts;
pub use window::{FailureCause, Probabilities, any_mine, mine_and_shared};
