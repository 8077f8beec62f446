//! The fields of an upload beside the report files. The parsers are those of `assay-admin import`.

use std::collections::BTreeMap;

use assay_domain::{
    owners::OwnersFile, recording::RunContext, renames::RenamesFile, run::CiProvider, test::TestName,
};
use assay_ingest::{CiValues, Flags, UploadField, ci::CiContext, values};
use assay_reports::{Format, KnownFiles};

use crate::error::IngestError;

/// Most tests of a rerun: as many as an answer explains.
const MOST_RERUN_TESTS: usize = 200;

/// The field of this name. Any other name is refused.
pub(crate) fn field_of(name: &str) -> Result<UploadField, IngestError> {
    UploadField::of(name).ok_or_else(|| {
        let mut names: Vec<&str> = UploadField::ALL.iter().map(|field| field.name()).collect();
        names.sort_unstable();
        IngestError::BadField {
            name: format!("{:?}", IngestError::excerpt(name)),
            rule: format!("there is no such field; the fields are {}", names.join(", ")),
        }
    })
}

/// The fields as received, each at most once.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawFields(BTreeMap<UploadField, String>);

impl RawFields {
    /// Adds a field.
    pub(crate) fn add(&mut self, field: UploadField, value: Vec<u8>) -> Result<(), IngestError> {
        let bad = |rule: &str| IngestError::bad(field.name(), rule);
        let value = String::from_utf8(value).map_err(|_| bad("expected text in UTF-8"))?;
        let most = field.most_chars();
        if value.chars().count() > most {
            return Err(bad(&format!("expected at most {most} characters")));
        }
        if self.0.insert(field, value).is_some() {
            return Err(bad("given twice; give it once"));
        }
        Ok(())
    }

    /// The memory that the known files, the owners file, the renames file and the tests of a rerun take once they are parsed.
    pub(crate) fn bytes_of_known_files(&self) -> usize {
        /// A path in its list and in two orders, beside its text.
        const PATH: usize = 128;
        let known = self.0.get(&UploadField::KnownFiles);
        let known = known.map_or(0, |files| 2 * files.len() + PATH * files.lines().count());
        let owners = [
            UploadField::Owners,
            UploadField::OwnersFiles,
            UploadField::Renames,
            UploadField::Rerun,
        ];
        let owners = owners.iter().filter_map(|field| self.0.get(field));
        known + owners.map(|text| 2 * text.len()).sum::<usize>()
    }

    fn parsed<T, E: ToString>(
        &mut self,
        field: UploadField,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, IngestError> {
        self.0
            .remove(&field)
            .map(|text| parse(&text).map_err(|error| IngestError::bad(field.name(), error.to_string())))
            .transpose()
    }
}

/// How the upload of an old run is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackfillJudgement {
    /// By a later upload.
    Later,
    /// Now, without messages.
    Silent,
}

fn judgement(text: &str) -> Result<BackfillJudgement, &'static str> {
    match text {
        "later" => Ok(BackfillJudgement::Later),
        "silent" => Ok(BackfillJudgement::Silent),
        _ => Err("expected later or silent"),
    }
}

/// The fields of an upload, parsed.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) flags: Flags,
    pub(crate) ci: CiContext,
    /// The variable of each value of `ci`: (value, variable).
    pub(crate) sources: Vec<(String, String)>,
    pub(crate) format: Option<Format>,
    pub(crate) root: Option<String>,
    pub(crate) known_files: Option<KnownFiles>,
    pub(crate) owners: Option<OwnersFile>,
    pub(crate) renames: Option<RenamesFile>,
    /// The only tests whose results are stored, because a gate ran them again.
    pub(crate) rerun: Option<Vec<TestName>>,
    /// The project that the key must belong to.
    pub(crate) project: Option<String>,
    /// Whether results of one name in a file are attempts of one execution.
    pub(crate) retries_as_attempts: bool,
    /// The exit status of the test command.
    pub(crate) command_status: Option<u8>,
    /// Whether files more than a day from the upload are left out.
    pub(crate) skip_cached: bool,
    pub(crate) dry_run: bool,
    /// How an old run is judged.
    pub(crate) judgement: Option<BackfillJudgement>,
    /// Whether the answer includes the causes of the report's failures.
    pub(crate) failures: bool,
    /// The offset from UTC of the machine that ran the tests.
    pub(crate) utc_offset_minutes: Option<i32>,
}

impl TryFrom<RawFields> for Fields {
    type Error = IngestError;

    fn try_from(mut raw: RawFields) -> Result<Self, IngestError> {
        let ci = raw.parsed(UploadField::Ci, |text| serde_json::from_str::<CiValues>(text))?;
        let ci = ci.map(CiValues::into_context).transpose();
        let (ci, sources) = ci
            .map_err(|error| IngestError::bad(UploadField::Ci.name(), error))?
            .unwrap_or_default();
        Ok(Self {
            flags: Flags {
                run_key: raw.parsed(UploadField::RunKey, values::run_key)?,
                shard: raw.parsed(UploadField::Shard, values::shard)?,
                context: RunContext {
                    branch: raw.parsed(UploadField::Branch, assay_ingest::name)?,
                    commit_sha: raw.parsed(UploadField::Commit, values::revision)?,
                    commit_message: raw.parsed(UploadField::Message, values::message)?,
                    author_name: raw.parsed(UploadField::Author, values::line)?,
                    tested_revision: raw.parsed(UploadField::TestedRevision, values::revision)?,
                    pull_request_number: raw.parsed(UploadField::PullRequest, pull_request)?,
                    pull_request_title: raw.parsed(UploadField::PullRequestTitle, values::line)?,
                    ci_provider: raw.parsed(UploadField::Provider, str::parse::<CiProvider>)?,
                    suite: raw.parsed(UploadField::Suite, values::line)?,
                    run_url: raw.parsed(UploadField::RunUrl, values::web_address)?,
                    base_branch: raw.parsed(UploadField::BaseBranch, assay_ingest::name)?,
                    merge_base: raw.parsed(UploadField::MergeBase, values::commit_hash)?,
                },
                attempt: raw.parsed(UploadField::Attempt, values::attempt)?,
                replace: raw.parsed(UploadField::Replace, boolean)?.unwrap_or(false),
                started_at: raw.parsed(UploadField::StartedAt, str::parse)?,
                duration_ms: raw.parsed(UploadField::DurationMs, duration_ms)?,
                artifacts_url: raw.parsed(UploadField::ArtifactsUrl, str::parse)?,
            },
            ci,
            sources,
            format: raw.parsed(UploadField::Format, format)?.flatten(),
            root: raw.parsed(UploadField::Root, values::message)?,
            known_files: raw.parsed(UploadField::KnownFiles, known_files)?,
            owners: owners(&mut raw)?,
            renames: raw.parsed(UploadField::Renames, renames)?,
            rerun: raw.parsed(UploadField::Rerun, rerun)?,
            project: raw.parsed(UploadField::Project, assay_ingest::name)?,
            retries_as_attempts: raw
                .parsed(UploadField::RetriesAsAttempts, boolean)?
                .unwrap_or(false),
            command_status: raw.parsed(UploadField::CommandStatus, command_status)?,
            skip_cached: raw.parsed(UploadField::SkipCached, boolean)?.unwrap_or(false),
            dry_run: raw.parsed(UploadField::DryRun, boolean)?.unwrap_or(false),
            judgement: raw.parsed(UploadField::Judgement, judgement)?,
            failures: raw.parsed(UploadField::Failures, boolean)?.unwrap_or(false),
            utc_offset_minutes: raw.parsed(UploadField::UtcOffset, values::utc_offset)?,
        })
    }
}

fn pull_request(text: &str) -> Result<i64, &'static str> {
    let number = text.parse().ok().filter(|number| *number >= 1);
    number.ok_or("expected a whole number from 1")
}

fn duration_ms(text: &str) -> Result<u64, String> {
    let duration = text
        .parse()
        .ok()
        .filter(|duration| *duration <= values::LONGEST_DURATION_MS);
    duration.ok_or_else(|| {
        format!(
            "expected whole milliseconds, at most {}",
            values::LONGEST_DURATION_MS
        )
    })
}

fn command_status(text: &str) -> Result<u8, &'static str> {
    text.parse().map_err(|_| "expected a whole number from 0 to 255")
}

fn format(text: &str) -> Result<Option<Format>, String> {
    match text {
        "auto" => Ok(None),
        word => word
            .parse()
            .map(Some)
            .map_err(|error| format!("{error}, or auto")),
    }
}

fn boolean(text: &str) -> Result<bool, &'static str> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("expected true or false"),
    }
}

/// The tests of a rerun.
fn rerun(text: &str) -> Result<Vec<TestName>, String> {
    let tests: Vec<TestName> = serde_json::from_str(text)
        .map_err(|error| format!("expected a JSON array of tests with name and filePath: {error}"))?;
    match tests.len() {
        1..=MOST_RERUN_TESTS => Ok(tests),
        count => Err(format!("expected 1 to {MOST_RERUN_TESTS} tests, got {count}")),
    }
}

/// The owners file. An empty text takes all owners away.
fn owners(raw: &mut RawFields) -> Result<Option<OwnersFile>, IngestError> {
    let any = |text: &str| Ok::<_, std::convert::Infallible>(text.to_owned());
    let path = raw.parsed(UploadField::OwnersPath, |path| {
        assay_ingest::one_line(path, OwnersFile::LONGEST_PATH)
    })?;
    let files = raw.parsed(UploadField::OwnersFiles, any)?;
    let Some(text) = raw.parsed(UploadField::Owners, any)? else {
        return Ok(None);
    };
    let has_owners = !text.trim().is_empty();
    let path = path.unwrap_or_else(|| "owners".to_owned());
    Ok(Some(match has_owners {
        true => OwnersFile {
            path,
            text,
            files: files.unwrap_or_default(),
        },
        false => OwnersFile::default(),
    }))
}

/// The renames file. An empty text undoes all renames.
fn renames(text: &str) -> Result<RenamesFile, std::convert::Infallible> {
    Ok(RenamesFile {
        text: text.to_owned(),
    })
}

fn known_files(text: &str) -> Result<KnownFiles, std::convert::Infallible> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    Ok(lines.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use assay_domain::recording::ShardIndex;

    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Result<Fields, IngestError> {
        let mut raw = RawFields::default();
        for (name, value) in pairs {
            raw.add(field_of(name)?, value.as_bytes().to_vec())?;
        }
        Fields::try_from(raw)
    }

    #[test]
    fn every_field_is_parsed_as_the_flag_of_its_name() {
        let ci = r#"{"provider": "github-actions", "job": "e2e", "shard": "3", "sources": [["branch", "GITHUB_REF"]], "later": 1}"#;
        let fields = fields(&[
            ("branch", " main "),
            ("commit", "abc"),
            ("shard", "2/5"),
            ("pullRequest", "7"),
            ("startedAt", "2026-11-20T10:00:00Z"),
            ("durationMs", "1500"),
            ("format", "vitest"),
            ("provider", "gitlab-ci"),
            ("knownFiles", "src/a.java\n\n src/b.java\r\n"),
            ("dryRun", "true"),
            ("judgement", "silent"),
            ("utcOffset", "-03:30"),
            ("runUrl", "https://ci.test/7"),
            ("mergeBase", "C0FFEE0123"),
            ("ci", ci),
        ])
        .unwrap();
        assert_eq!(fields.flags.context.branch.as_deref(), Some("main"));
        assert_eq!(fields.flags.context.pull_request_number, Some(7));
        assert_eq!(fields.flags.context.run_url.as_deref(), Some("https://ci.test/7"));
        assert_eq!(fields.flags.context.merge_base.as_deref(), Some("c0ffee0123"));
        assert_eq!(fields.flags.context.ci_provider, Some(CiProvider::GitlabCi));
        assert_eq!(fields.format, Some(Format::Jest));
        assert_eq!((fields.flags.duration_ms, fields.dry_run), (Some(1500), true));
        assert_eq!(fields.judgement, Some(BackfillJudgement::Silent));
        assert_eq!(fields.utc_offset_minutes, Some(-210));
        assert_eq!(fields.ci.provider, Some(CiProvider::GithubActions));
        assert_eq!(fields.ci.job.as_deref(), Some("e2e"));
        assert_eq!(
            fields.ci.shard,
            Some(ShardIndex {
                index: 3,
                total: None
            })
        );
        assert_eq!(fields.sources, [("branch".to_owned(), "GITHUB_REF".to_owned())]);
        assert_eq!(fields.known_files.unwrap().of_path("b.java"), Some("src/b.java"));
    }

    #[test]
    fn a_field_that_is_unknown_doubled_or_wrong_is_refused_by_name() {
        for (pairs, name) in [
            (&[("brnach", "main")][..], "brnach"),
            (&[("branch", "a"), ("branch", "a")], "branch"),
            (&[("branch", "")], "branch"),
            (&[("branch", "a\nb")], "branch"),
            (&[("commit", &"a".repeat(501))], "commit"),
            (&[("root", &"a".repeat(2_001))], "root"),
            (&[("mergeBase", "origin/main")], "mergeBase"),
            (&[("mergeBase", "c0ffee")], "mergeBase"),
            (&[("mergeBase", "")], "mergeBase"),
            (&[("shard", "6/5")], "shard"),
            (&[("pullRequest", "0")], "pullRequest"),
            (&[("pullRequest", "seven")], "pullRequest"),
            (&[("provider", "mine")], "provider"),
            (&[("startedAt", "yesterday")], "startedAt"),
            (&[("durationMs", "-1")], "durationMs"),
            (&[("durationMs", "31536000001")], "durationMs"),
            (&[("format", "xunit3")], "format"),
            (&[("attempt", "0")], "attempt"),
            (&[("replace", "yes")], "replace"),
            (&[("dryRun", "yes")], "dryRun"),
            (&[("utcOffset", "9")], "utcOffset"),
            (&[("utcOffset", "+19:00")], "utcOffset"),
            (&[("utcOffset", "+9:0")], "utcOffset"),
            (&[("failures", "1")], "failures"),
            (&[("runUrl", "javascript:alert(1)")], "runUrl"),
            (&[("ci", "[")], "ci"),
            (&[("ci", r#"{"provider": "mine"}"#)], "ci"),
            (&[("ci", r#"{"shard": "0"}"#)], "ci"),
        ] {
            let error = fields(pairs).unwrap_err();
            assert_eq!(error.code(), "invalid_parameter", "{pairs:?}");
            assert!(error.to_string().contains(name), "{pairs:?}: {error}");
        }
        let mut raw = RawFields::default();
        let error = raw.add(UploadField::Branch, b"\xff".to_vec()).unwrap_err();
        assert!(error.to_string().contains("UTF-8"), "{error}");
    }
}
