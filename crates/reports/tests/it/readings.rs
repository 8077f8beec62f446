//! The files of `testdata/readings`: reports as text, and what the readers make of them in a snapshot beside each.
//!
//! `====` begins a reading and may have a title. `---- NAME` begins a file of it. Lines before the first reading say why.

use std::{fmt::Write as _, fs, path::Path};

use assay_reports::SourceFile;

use crate::{
    render::render,
    support::{inline, plain},
};

#[test]
fn reports_as_text_are_read_as_their_snapshots_show() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/readings");
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for path in paths {
            let name = path.file_stem().unwrap().to_str().unwrap();
            insta::assert_snapshot!(name, readings(&fs::read_to_string(&path).unwrap()));
        }
    });
}

/// Each reading of a text: its title and its report, or why it is refused.
fn readings(text: &str) -> String {
    let mut out = String::new();
    let text = format!("\n{}", text.strip_suffix('\n').unwrap_or(text));
    for reading in text.split("\n====").skip(1) {
        let (title, rest) = reading.split_once('\n').unwrap();
        writeln!(out, "===={title}").unwrap();
        let files: Vec<SourceFile> = format!("\n{rest}")
            .split("\n---- ")
            .skip(1)
            .map(|file| {
                let (name, content) = file.split_once('\n').unwrap();
                inline(name, content)
            })
            .collect();
        match plain(files) {
            Ok(report) => out += &render(&report),
            Err(error) => writeln!(out, "refused: {error}").unwrap(),
        }
    }
    out
}
