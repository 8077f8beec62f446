//! Judges a test history without a database: reads reports or CSV, returns verdicts.
//!
//! A [`Collector`] accepts recordings of reports and rows of CSV in any order. Of each run it stores only the data that
//! the engine and the page need: bitmaps, and the few results that are not plain passes. [`Collector::judge`] returns
//! an [`Analysis`], which serializes to JSON and renders to one self-contained page ([`page()`]).
//!
//! The same function as in the store builds the observations, so that an offline verdict equals a stored one of the
//! same results and time.

mod causes;
mod collector;
mod csv;
mod interner;
mod page;
mod part;
mod run_parts;
mod verdicts;

pub use assay_domain::outcomes::{Outcome, Strip};

pub use causes::{CausedFailure, Causes, FailureSelection, NoSuchRun, RunGate, cause_words};
pub use collector::Collector;
pub(crate) use csv::is_history;
pub use csv::{CsvError, read_csv};
pub use page::page;
pub use verdicts::{Analysis, AnalyzedTest, ErrorCount, NothingToJudge, ReportErrorCount, RunBar};
