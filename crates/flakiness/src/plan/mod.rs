//! Plans further runs: which test runs again, how often and with what, so that it answers a question within a budget.
//! `docs/reruns.md` explains the models and their constants.

pub mod bisection;
pub mod burn_in;
pub mod fix;
pub mod reruns;
