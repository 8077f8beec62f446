//! The flakiness engine: observations and a time in, verdicts with their evidence out.
//!
//! Pure: no I/O, no clock, no errors. The same observations and the same `now` give the same verdicts to the last
//! digit, in whatever order the runs and tests come. `docs/engine.md` explains the model.
//!
//! The way in is [`Engine`]; a program without a store builds its [`History`](domain::observation::History) with
//! [`HistoryBuilder`].

// A program that judges a history of its own needs the vocabulary of the history and of the verdicts; with this it
// depends on one crate.
pub use assay_domain as domain;

pub use builder::{HistoryBuilder, ObservedAttempt, ObservedRun};
pub use causes::{CauseFacts, ErrorTexts, FailureCause, Probabilities, SameError};
pub use config::{Config, Thresholds};
pub use engine::{ENGINE_VERSION, Engine};
pub use port::Diagnose;

mod background;
mod block;
mod builder;
mod causes;
mod code;
mod column;
mod config;
mod counter;
mod ends;
mod engine;
mod evidence;
mod executed;
mod explanation;
mod failures;
mod filter;
mod findings;
mod layout;
mod model;
mod numbers;
mod outcomes;
mod port;
mod positions;
mod product;
mod row;
mod sheet;
mod signals;
mod status;
mod streak;
mod tally;
mod timeline;
mod trajectory;
