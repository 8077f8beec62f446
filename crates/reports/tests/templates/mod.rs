//! A template of each format (`testdata/reports/words`): a report whose tests have any names and words for statuses.
//! `{name}`, `{word}` and `{id}` (a number) are of a test. Where a format has no words, `{not}` and `{fault}` are there
//! for a test that failed.

use std::path::Path;

use assay_reports::{Format, SourceFile};

/// A template.
#[derive(Debug)]
pub(crate) struct Template {
    /// Its format, which is the file's name.
    pub(crate) format: Format,
    /// Whether its tests have words.
    #[allow(dead_code, reason = "the benchmark and the test of costs read every template")]
    pub(crate) has_words: bool,
    before: String,
    test: String,
    after: String,
    separator: &'static str,
}

/// The templates of all formats.
pub(crate) fn all() -> Vec<Template> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/reports/words");
    let mut templates: Vec<Template> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| Template::read(&entry.unwrap().path()))
        .collect();
    templates.sort_by_key(|template| template.format);
    let formats: Vec<Format> = templates.iter().map(|template| template.format).collect();
    let mut expected = Format::ALL.to_vec();
    expected.sort_unstable();
    assert_eq!(
        formats, expected,
        "testdata/reports/words has a template of each format"
    );
    templates
}

impl Template {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let is_of_test = |line: &&str| {
            ["{name}", "{word}", "{id}"]
                .iter()
                .any(|mark| line.contains(mark))
        };
        let first = lines.iter().position(is_of_test).unwrap();
        let end = lines.iter().rposition(is_of_test).unwrap() + 1;
        let stem = path.file_stem().unwrap().to_str().unwrap();
        Self {
            format: stem.parse().unwrap(),
            has_words: text.contains("{word}"),
            before: lines[..first].concat(),
            test: lines[first..end].concat(),
            after: lines[end..].concat(),
            separator: if path.extension().is_some_and(|end| end == "json") {
                ","
            } else {
                ""
            },
        }
    }

    /// A report of tests with these names and words. Allure writes a file for each.
    pub(crate) fn files(&self, tests: &[(String, &str)]) -> Vec<SourceFile> {
        let test = |(index, (name, word)): (usize, &(String, &str))| {
            let has_failed = *word == "fail";
            self.test
                .replace("{name}", name)
                .replace("{word}", word)
                .replace("{id}", &(1 + index).to_string())
                .replace("{not}", if has_failed { "not " } else { "" })
                .replace("{fault}", if has_failed { "wrong" } else { "" })
        };
        let tests: Vec<String> = tests.iter().enumerate().map(test).collect();
        let file = |(index, text): (usize, String)| SourceFile {
            name: format!("r/{index}-result"),
            bytes: text.into_bytes(),
            modified: None,
        };
        let texts = if self.format == Format::Allure {
            tests
        } else {
            vec![format!(
                "{}{}{}",
                self.before,
                tests.join(self.separator),
                self.after
            )]
        };
        texts.into_iter().enumerate().map(file).collect()
    }
}
