//! Reports from testdata/ and from memory.

use std::path::PathBuf;

use assay_reports::{Options, ReadError, Report, SourceFile};

/// Where the checkout was on the machines that made the reports.
pub(crate) const SHOP: &str = "/home/runner/work/acme-shop/acme-shop";

/// The folder of real reports.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/reports")
}

/// A real report's bytes.
pub(crate) fn file(path: &str) -> SourceFile {
    let bytes = std::fs::read(folder().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    SourceFile {
        name: path.to_owned(),
        bytes,
        modified: None,
    }
}

/// A report from memory.
pub(crate) fn inline(name: &str, bytes: impl Into<Vec<u8>>) -> SourceFile {
    SourceFile {
        name: name.to_owned(),
        bytes: bytes.into(),
        modified: None,
    }
}

/// The folders of real reports and samples.
pub(crate) fn folders() -> Vec<String> {
    let entries = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| !["suites", "words", "hostile"].contains(&&**name));
    names.sort();
    names
}

/// All files of a folder, in order of their names.
pub(crate) fn files_in(path: &str) -> Vec<SourceFile> {
    let mut names: Vec<String> = std::fs::read_dir(folder().join(path))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names.iter().map(|name| file(&format!("{path}/{name}"))).collect()
}

/// Reads files as one import with the root known.
pub(crate) fn rooted(files: Vec<SourceFile>, root: &str) -> Report {
    assay_reports::read(
        files,
        &Options {
            root: Some(root),
            ..Options::default()
        },
    )
    .unwrap()
}

/// Reads files as one import without any option.
pub(crate) fn plain(files: Vec<SourceFile>) -> Result<Report, ReadError> {
    assay_reports::read(files, &Options::default())
}
