//! The causes of one result of a test: the model's probabilities, split by cause.
//!
//! `docs/causes.md` explains the model. [`parts`] is the forward-backward pass over one test, and [`sequence`] orders
//! the test's results for it. [`stable_branch`] learns what failures of the stable branch come from.
//! [`texts`] weighs the error text, and [`facts`] has the counts of the sentence.

mod crowds;
mod facts;
mod parts;
mod sequence;
mod stable_branch;
mod texts;
mod window;
mod witnesses;

#[cfg(test)]
mod golden;

pub use facts::{CauseFacts, EndedStreaks, SameError};
pub use texts::ErrorTexts;
pub use window::{FailureCause, Probabilities};
