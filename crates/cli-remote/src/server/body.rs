//! The body of an upload: the unchanged report files and the run's context, as compressed `multipart/form-data`.

use std::{
    collections::HashSet,
    fs, io,
    path::{Component, Path},
};

use anyhow::Context as _;
use assay_ingest::{
    CiValues, Flags, UploadField,
    ci::CiContext,
    values::{LONGEST_FILE_NAME, MOST_KNOWN_FILE_BYTES},
};
use assay_reports::SourceFile;
use serde_json::{Value, json};

/// The default level of Zstandard. A JSON report shrinks to a twentieth, at some hundred megabytes a second.
const LEVEL: i32 = 3;

/// A body that is ready to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The separator of its parts.
    pub boundary: String,
    /// Compressed with Zstandard.
    pub bytes: Vec<u8>,
}

impl Body {
    /// Compresses the fields and the files. A file below the checkout is named by its path there, wherever the command runs:
    /// two folders of a repository are two, and not one that is tested twice.
    pub fn new(fields: &[Field], files: &[SourceFile], checkout: Option<&Path>) -> anyhow::Result<Self> {
        let boundary = format!("assay-{:032x}", rand::random::<u128>());
        let mut out = zstd::Encoder::new(Vec::new(), LEVEL)?;
        write_parts(&mut out, &boundary, fields, files, checkout).context("compressing the reports")?;
        Ok(Self {
            boundary,
            bytes: out.finish().context("compressing the reports")?,
        })
    }

    /// Its media type.
    pub fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }
}

fn write_parts(
    out: &mut impl io::Write,
    boundary: &str,
    fields: &[Field],
    files: &[SourceFile],
    checkout: Option<&Path>,
) -> io::Result<()> {
    for (name, value) in fields {
        write!(
            out,
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        )?;
    }
    let mut names = HashSet::new();
    for file in files {
        let name = checkout.and_then(|checkout| path_below(checkout, &file.name));
        let name = unused(file_name(name.as_deref().unwrap_or(&file.name)), &mut names);
        write!(
            out,
            "--{boundary}\r\nContent-Disposition: form-data; name=\"report\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        )?;
        out.write_all(&file.bytes)?;
        out.write_all(b"\r\n")?;
    }
    write!(out, "--{boundary}--\r\n")
}

/// The path of a file below a folder, if it is there.
pub fn path_below(folder: &Path, file: &str) -> Option<String> {
    let (file, folder) = (fs::canonicalize(file).ok()?, fs::canonicalize(folder).ok()?);
    Some(file.strip_prefix(folder).ok()?.display().to_string())
}

/// Converts a file's name to one that the server accepts: relative, with `/`, without `..`, quotes and control
/// characters. A long name keeps its end.
fn file_name(name: &str) -> String {
    let parts: Vec<_> = Path::new(name)
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => Some(part.to_string_lossy()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect();
    let joined = parts
        .join("/")
        .replace(|c: char| c.is_control() || matches!(c, '"' | '\\'), "_");
    let surplus = joined.chars().count().saturating_sub(LONGEST_FILE_NAME - 10);
    let end: String = joined.chars().skip(surplus).collect();
    match end.trim_start_matches('/') {
        "" => "report".to_owned(),
        end => end.to_owned(),
    }
}

/// Puts the name into a numbered folder if another file has the same one: `../a.xml` and `a.xml` are two files.
fn unused(name: String, taken: &mut HashSet<String>) -> String {
    let free = match taken.contains(&name) {
        true => (2..)
            .map(|number: u32| format!("{number}/{name}"))
            .find(|name| !taken.contains(name))
            .unwrap_or(name),
        false => name,
    };
    taken.insert(free.clone());
    free
}

/// A field of the request and its value.
pub type Field = (UploadField, String);

/// The fields of a request.
#[derive(Debug, Clone, Default)]
pub struct Fields(pub Vec<Field>);

impl Fields {
    /// The values that the user gave, and those of CI.
    pub fn of(flags: &Flags, ci: &CiContext) -> Self {
        let context = &flags.context;
        let mut fields = Self::default();
        fields.add(UploadField::RunKey, flags.run_key.as_ref());
        fields.add(UploadField::Shard, flags.shard);
        fields.add(UploadField::Suite, context.suite.as_ref());
        fields.add(UploadField::Branch, context.branch.as_ref());
        fields.add(UploadField::Commit, context.commit_sha.as_ref());
        fields.add(UploadField::TestedRevision, context.tested_revision.as_ref());
        fields.add(UploadField::Message, context.commit_message.as_ref());
        fields.add(UploadField::Author, context.author_name.as_ref());
        fields.add(UploadField::PullRequest, context.pull_request_number);
        fields.add(UploadField::PullRequestTitle, context.pull_request_title.as_ref());
        fields.add(UploadField::Provider, context.ci_provider);
        fields.add(UploadField::RunUrl, context.run_url.as_ref());
        fields.add(UploadField::BaseBranch, context.base_branch.as_ref());
        fields.add(UploadField::MergeBase, context.merge_base.as_ref());
        fields.add(UploadField::ArtifactsUrl, flags.artifacts_url.as_ref());
        fields.add(UploadField::Attempt, flags.attempt);
        fields.switch(UploadField::Replace, flags.replace);
        fields.add(UploadField::StartedAt, flags.started_at);
        fields.add(UploadField::DurationMs, flags.duration_ms);
        let has_values = ci.provider.is_some() || ci.attempt.is_some();
        fields.add(UploadField::Ci, has_values.then(|| ci_values(ci)));
        fields
    }

    /// Adds a field that has a value.
    pub fn add(&mut self, field: UploadField, value: Option<impl ToString>) {
        self.0.extend(value.map(|value| (field, value.to_string())));
    }

    /// Adds a field that is on.
    pub fn switch(&mut self, field: UploadField, is_on: bool) {
        self.add(field, is_on.then_some(true));
    }

    /// Adds the checkout's file names. Too long a list is left out, with a warning.
    pub fn add_known_files(&mut self, names: Option<Vec<String>>) -> Option<String> {
        let names = names.map(|names| names.join("\n"));
        let names = names.filter(|names| !names.is_empty())?;
        if names.len() > MOST_KNOWN_FILE_BYTES {
            return Some(format!(
                "the checkout's file names exceed {} MiB; tests of reports that name only classes have no file",
                MOST_KNOWN_FILE_BYTES >> 20
            ));
        }
        self.add(UploadField::KnownFiles, Some(names));
        None
    }
}

/// The known values of CI's variables, as the field `ci`.
fn ci_values(ci: &CiContext) -> Value {
    let mut values = json!(CiValues::from(ci));
    if let Some(values) = values.as_object_mut() {
        values.retain(|_, value| !value.is_null());
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_relative_and_unique() {
        for (name, sent) in [
            ("out/a.xml", "out/a.xml"),
            ("./out//a.xml", "out/a.xml"),
            ("../../out/a.xml", "out/a.xml"),
            ("/tmp/out/a.xml", "tmp/out/a.xml"),
            ("a\"b\\c\nd.xml", "a_b_c_d.xml"),
            ("-", "-"),
            ("..", "report"),
        ] {
            assert_eq!(file_name(name), sent, "{name}");
        }
        let in_folder = |folder| path_below(Path::new(folder), "Cargo.toml");
        assert_eq!(in_folder("..").as_deref(), Some("cli-remote/Cargo.toml"));
        assert_eq!(in_folder("src"), None);
        let long = file_name(&format!("{}/a.xml", "d".repeat(400)));
        assert!(
            long.chars().count() <= LONGEST_FILE_NAME && long.ends_with("/a.xml"),
            "{long}"
        );
        let mut names = HashSet::new();
        let names = ["a.xml", "../a.xml", "../../a.xml"].map(|name| unused(file_name(name), &mut names));
        assert_eq!(names, ["a.xml", "2/a.xml", "3/a.xml"]);
    }
}
