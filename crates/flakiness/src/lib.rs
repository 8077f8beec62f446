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

pub use config::{Config, ENGINE_VERSION, Thresholds};
pub use engine::Engine;
pub use history_builder::{HistoryBuilder, ObservedAttempt, ObservedRun};
pub use model::causes::{CauseFacts, ErrorTexts, FailureCause, Probabilities, SameError};
pub use port::Diagnose;

mod config;
mod engine;
mod history_builder;
mod model;
mod numbers;
mod participation;
mod port;
mod timeline;
mod verdict;
