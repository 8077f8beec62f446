//! The body of an upload: the unchanged report files and the run's context, as compressed `multipart/form-data`.

use std::{
    collections::HashSet,
    io,
    path::{Component, Path},
};

use anyhow::Context as _;
use assay_domain::{owners::OwnersFile, renames::RenamesFile, test::TestName};
use assay_ingest::{
    CiValues, Flags, UploadField,
    values::{LONGEST_FILE_NAME, MOST_KNOWN_FILE_BYTES},
};
use assay_reports::{Format, SourceFile, ci::CiContext};
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
    /// Compresses the fields and the files.
    pub fn new(fields: &[Field], files: &[SourceFile]) -> anyhow::Result<Self> {
        let boundary = format!("assay-{:032x}", rand::random::<u128>());
        let mut out = zstd::Encoder::new(Vec::new(), LEVEL)?;
        write_parts(&mut out, &boundary, fields, files).context("compressing the reports")?;
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
) -> io::Result<()> {
    for (name, value) in fields {
        write!(
            out,
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        )?;
    }
    let mut names = HashSet::new();
    for file in files {
        let name = unused(file_name(&file.name), &mut names);
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

/// The context of a run.
pub struct Facts<'a> {
    /// The values that the user gave.
    pub flags: &'a Flags,
    /// The format that the user gave.
    pub format: Option<Format>,
    /// The checkout's root that the user named.
    pub root: Option<&'a str>,
    /// The values of CI.
    pub ci: &'a CiContext,
    /// The checkout's files, relative to its root.
    pub known_files: Option<Vec<String>>,
    /// The only tests whose results are stored, of a rerun.
    pub rerun: Option<&'a [TestName]>,
    /// The owners file of the checkout.
    pub owners: Option<OwnersFile>,
    /// The renames file of the checkout.
    pub renames: Option<RenamesFile>,
    /// The project that the key must belong to.
    pub project: Option<&'a str>,
    /// Whether results of one name in a file are attempts of one execution.
    pub retries_as_attempts: bool,
    /// The exit status of the test command.
    pub command_status: Option<u8>,
    /// Whether files more than a day from the upload are left out.
    pub skip_cached: bool,
    /// Whether nothing is stored.
    pub dry_run: bool,
    /// Whether the answer explains the report's failures.
    pub failures: bool,
    /// The machine's offset from UTC.
    pub utc_offset_minutes: Option<i32>,
}

impl Facts<'_> {
    /// Returns the fields of the request, and warnings.
    pub fn fields(&self) -> (Vec<Field>, Vec<String>) {
        let Flags {
            run_key,
            shard,
            context,
            attempt,
            replace,
            started_at,
            duration_ms,
            artifacts_url,
        } = self.flags;
        let (known_files, warning) = self.known_file_names();
        let text = |value: Option<&str>| value.map(str::to_owned);
        let owners = self.owners.as_ref();
        let of_owners = |text: fn(&OwnersFile) -> &String| {
            let value = owners.map(text).filter(|text| !text.is_empty());
            value.cloned()
        };
        let fields = [
            (UploadField::Project, text(self.project)),
            (UploadField::RunKey, run_key.clone()),
            (UploadField::Shard, shard.map(|shard| shard.to_string())),
            (UploadField::Suite, context.suite.clone()),
            (UploadField::Branch, context.branch.clone()),
            (UploadField::Commit, context.commit_sha.clone()),
            (UploadField::TestedRevision, context.tested_revision.clone()),
            (UploadField::Message, context.commit_message.clone()),
            (UploadField::Author, context.author_name.clone()),
            (
                UploadField::PullRequest,
                context.pull_request_number.map(|number| number.to_string()),
            ),
            (UploadField::PullRequestTitle, context.pull_request_title.clone()),
            (
                UploadField::Provider,
                context.ci_provider.map(|provider| provider.to_string()),
            ),
            (UploadField::RunUrl, context.run_url.clone()),
            (UploadField::MergeBase, context.merge_base.clone()),
            (
                UploadField::ArtifactsUrl,
                artifacts_url.as_ref().map(ToString::to_string),
            ),
            (UploadField::Attempt, attempt.map(|attempt| attempt.to_string())),
            (UploadField::Replace, replace.then(|| "true".to_owned())),
            (UploadField::StartedAt, started_at.map(|at| at.to_string())),
            (
                UploadField::DurationMs,
                duration_ms.map(|length| length.to_string()),
            ),
            (UploadField::Format, self.format.map(|format| format.to_string())),
            (UploadField::Root, text(self.root)),
            (
                UploadField::Ci,
                self.ci.provider.map(|_| ci_values(self.ci).to_string()),
            ),
            (UploadField::KnownFiles, known_files),
            (
                UploadField::Rerun,
                self.rerun.map(|tests| serde_json::json!(tests).to_string()),
            ),
            (UploadField::Owners, owners.map(|owners| owners.text.clone())),
            (UploadField::OwnersPath, of_owners(|owners| &owners.path)),
            (UploadField::OwnersFiles, of_owners(|owners| &owners.files)),
            (
                UploadField::Renames,
                self.renames.as_ref().map(|renames| renames.text.clone()),
            ),
            (
                UploadField::RetriesAsAttempts,
                self.retries_as_attempts.then(|| "true".to_owned()),
            ),
            (
                UploadField::CommandStatus,
                self.command_status.map(|status| status.to_string()),
            ),
            (
                UploadField::SkipCached,
                self.skip_cached.then(|| "true".to_owned()),
            ),
            (UploadField::DryRun, self.dry_run.then(|| "true".to_owned())),
            (UploadField::Failures, self.failures.then(|| "true".to_owned())),
            (
                UploadField::UtcOffset,
                self.utc_offset_minutes.map(assay_ingest::values::utc_offset_text),
            ),
        ];
        let given = fields
            .into_iter()
            .filter_map(|(field, value)| Some((field, value?)))
            .collect();
        (given, warning.into_iter().collect())
    }

    /// The checkout's file names, one a line. Too long a list is left out, with a warning.
    fn known_file_names(&self) -> (Option<String>, Option<String>) {
        let names = self.known_files.as_ref().map(|names| names.join("\n"));
        match names.filter(|names| !names.is_empty()) {
            Some(names) if names.len() > MOST_KNOWN_FILE_BYTES => {
                let warning = format!(
                    "the checkout's file names exceed {} MiB; tests of reports that name only classes have no file",
                    MOST_KNOWN_FILE_BYTES >> 20
                );
                (None, Some(warning))
            }
            names => (names, None),
        }
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
