//! Judgement of a test history without a database: reports or CSV in, verdicts out.
//!
//! A [`Collector`] takes recordings of reports and rows of CSV as they come and keeps of each run only what the
//! engine and the page need: bitmaps, and the few results that are no plain pass. [`Collector::judge`] makes an
//! [`Analysis`] of it, which serializes to JSON and renders to one self-contained page ([`page()`]).
//!
//! The observations are built by the same function as the store's, so that an offline verdict equals a stored one
//! of the same results and time.

mod analysis;
mod causes;
mod collector;
mod csv;
mod interner;
mod page;
mod part;

pub use assay_components::{history::Strip, strip::Outcome};

pub use analysis::{Analysis, ErrorCount, Judged, NothingToJudge, RunBar};
pub use causes::{CausedFailure, Causes, NoSuchRun, RunGate, Wanted};
pub use collector::Collector;
pub use csv::{CsvError, read_csv};
pub use page::page;
