//! Bytes of a test report to one neutral report; CI variables to run context.
//!
//! Pure: nothing here opens a file, reads the environment or a clock. A caller hands over the bytes of all files of
//! one import and gets one [`Report`], whatever framework wrote them.

mod collect;
mod decode;
mod files;
mod input;
mod limits;
mod location;
mod paths;
mod report;
mod text;
mod time;

pub use files::KnownFiles;
pub use report::{Format, ReadError, Report, ReportedTest, SourceFile};
