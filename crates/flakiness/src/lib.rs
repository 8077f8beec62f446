//! The flakiness engine: turns observations and a time into verdicts with their evidence.
//!
//! It is pure: no I/O, no clock, no errors. The same observations and the same `now` give the same verdicts to the last
//! digit, whatever the order of runs and tests. `docs/engine.md` explains the model.
//!
//! [`Engine`] is the entry point. A program without a store builds its [`History`](domain::observation::History) with
//! [`HistoryBuilder`].

// Re-exported, so that a program that judges its own history depends on one crate only.
pub use assay_domain as domain;

pub use config::{ENGINE_VERSION, constants};
pub use engine::Engine;
pub use history_builder::{HistoryBuilder, ObservedAttempt, ObservedRun};
pub use model::calendar::DAYS_READ as CALENDAR_DAYS;
pub use model::causes::{
    CalendarFacts, CauseFacts, EndedStreaks, ErrorTexts, FailureCause, Probabilities, SameError, any_mine,
    mine_and_shared,
};
pub use model::rate_if_flaky;
pub use port::Diagnose;

mod config;
pub mod durations;
mod engine;
mod history_builder;
mod model;
mod numbers;
mod participation;
pub mod plan;
mod port;
mod timeline;
mod verdict;
