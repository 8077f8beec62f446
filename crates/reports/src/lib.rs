//! Bytes of a test report to one neutral report; CI variables to run context.
//!
//! Pure: nothing here opens a file, reads the environment or a clock. A caller hands over the bytes of all files of
//! one import and gets one [`Report`], whatever framework wrote them.

mod collect;
mod decode;
mod files;
mod go;
mod input;
mod junit;
mod limits;
mod location;
mod paths;
mod report;
#[cfg(test)]
mod testing;
mod text;
mod time;
mod trx;
mod xml;

pub use files::KnownFiles;
pub use report::{Format, ReadError, Report, ReportedTest, SourceFile};
