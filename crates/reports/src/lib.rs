//! Bytes of a test report to one neutral report; CI variables to run context.
//!
//! Pure: nothing here opens a file, reads the environment or a clock. A caller hands over the bytes of all files of
//! one import and gets one [`Report`], whatever framework wrote them.

mod report;

pub use report::{Format, ReadError, Report, ReportedTest, SourceFile};
