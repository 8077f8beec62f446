//! The flakiness engine: observations and a time in, verdicts with their evidence out.
