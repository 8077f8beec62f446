//! Reads test reports of any framework into one neutral report, and CI variables into the context of a run.
//!
//! Pure: this crate does not open files and reads neither the environment nor a clock. A caller passes the bytes of all
//! files of one import and gets one [`Report`].

mod allure;
mod attempt_output;
mod builds;
mod catch2;
mod collect;
mod ctest;
mod ctrf;
mod cucumber;
mod cucumber_messages;
mod dart;
mod decode;
mod detect;
mod duplicates;
mod events;
mod failure;
mod files;
mod format;
mod frame;
mod go;
mod groups;
mod gzip;
mod header;
mod hooks;
mod import;
mod input;
mod jest;
mod json;
mod junit;
mod karate;
mod libtest;
mod limits;
mod location;
mod memory;
mod merge;
mod mocha;
mod notes;
mod nunit;
mod outcome;
mod output;
mod packages;
mod paths;
mod piece;
mod playwright;
mod pytest_json;
mod readers;
mod report;
mod reruns;
mod retries;
mod robot;
mod rspec;
mod stable_names;
mod swift;
mod tap;
mod testng;
mod text;
mod time;
mod trx;
mod vitest;
mod xml;
mod xunit;
mod zip;
mod zone;

pub use builds::build_key;
pub use decode::UnpackedBytes;
pub use files::KnownFiles;
pub use gzip::GzipReader;
pub use import::{
    BEGINNING, NamedReport, Options, PartialReport, is_beside_allure, is_cut_off, looks_like_report, read,
    read_build, read_each, read_readable, why_no_report,
};
pub use karate::{FEATURE_SUFFIX as KARATE_FEATURE_SUFFIX, SUMMARY as KARATE_SUMMARY};
pub use limits::{
    ATTEMPTS as MOST_ATTEMPTS, FILE_BYTES as MOST_FILE_BYTES, IMPORT_BYTES as MOST_IMPORT_BYTES,
    TESTS as MOST_TESTS,
};
pub use memory::Memory;
pub use packages::{within_package, without_package};
pub use paths::{escaped_name as shown_name, shown_path};
pub use report::{Format, ReadError, Report, ReportedTest, SourceFile, UnknownFormat};
pub use retries::UNTOLD_ERROR;
pub use text::title as one_title;
pub use zone::Clocks;
