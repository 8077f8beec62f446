//! Converts a received body to a report that is ready for storing: parses its head, its fields and its files.

use std::{collections::HashSet, sync::Arc};

use actix_web::http::header::{self, HeaderMap};
use assay_access::check::IngestGrant;
use assay_answers::failures::{ReportFailures, report_failures};
use assay_domain::{
    id::ProjectId,
    recording::CheckoutFiles,
    store::{RecordError, Recorder},
    test::TestName,
    timestamp::Timestamp,
};
use assay_ingest::{Arrival, Files, PreparedReport};
use assay_reports::{Clocks, Memory, Options, SourceFile, UnpackedBytes};
use percent_encoding::percent_decode_str;

use crate::{
    app::AppState,
    body::ReceivedBody,
    error::IngestError,
    fields::{BackfillJudgement, Fields, RawFields, field_of},
    limits::Limits,
    memory::UploadMemory,
    parts::{self, Shape},
};

/// The head of an upload.
pub(crate) struct Head {
    pub(crate) shape: Shape,
    /// The fields of a raw body, which are in the query.
    query: RawFields,
    client: Option<String>,
}

impl Head {
    /// Reads the head of a request.
    pub(crate) fn of(headers: &HeaderMap, query: &str) -> Result<Self, IngestError> {
        let shape = Shape::of(headers)?;
        let mut fields = RawFields::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).collect::<Vec<u8>>();
            fields.add(field_of(&String::from_utf8_lossy(&decode(name)))?, decode(value))?;
        }
        if !shape.is_raw() && !query.is_empty() {
            return Err(IngestError::bad(
                "the query",
                "with multipart/form-data the fields are parts; send them with curl -F",
            ));
        }
        let client = headers
            .get(header::USER_AGENT)
            .and_then(|value| value.to_str().ok());
        Ok(Self {
            shape,
            query: fields,
            client: client.map(str::to_owned),
        })
    }
}

/// An upload that is ready for storing.
pub(crate) struct ParsedUpload {
    pub(crate) prepared: PreparedReport,
    /// The variable of each value of `ci`: (value, variable).
    pub(crate) sources: Vec<(String, String)>,
    pub(crate) dry_run: bool,
    /// How an old run is judged.
    pub(crate) judgement: Option<BackfillJudgement>,
    /// Whether the answer includes the causes of the report's failures.
    pub(crate) includes_failures: bool,
    pub(crate) failures: Option<ReportFailures>,
    /// Bytes on the wire.
    pub(crate) bytes: u64,
    /// Bytes of the report files, after unpacking.
    pub(crate) unpacked_bytes: u64,
    pub(crate) files: u32,
    pub(crate) client: Option<String>,
    /// The memory that the report takes.
    _memory: Arc<UploadMemory>,
}

/// Reads fields and reports of a body that has this size, within the memory. Blocks.
pub(crate) fn parse(
    app: &AppState,
    grant: &IngestGrant,
    head: &Head,
    (received, size): (&ReceivedBody, u64),
    memory: Arc<UploadMemory>,
) -> Result<ParsedUpload, IngestError> {
    let now = (app.clock)();
    memory.demand(usize::try_from(size).unwrap_or(usize::MAX))?;
    let (files, fields) = parts::collect(&received.file, &head.shape, &app.limits)?;
    let raw = if head.shape.is_raw() {
        head.query.clone()
    } else {
        fields
    };
    memory.demand(raw.bytes_of_known_files())?;
    let mut fields = Fields::try_from(raw)?;
    check_project(grant, fields.project.as_deref())?;
    if fields.judgement.is_some() && !grant.terms.backfill {
        let rule = "only for a key of `assay-admin key create-ingest --backfill`";
        return Err(IngestError::bad("judgement", rule));
    }
    let file_count = u32::try_from(files.len()).unwrap_or(u32::MAX);
    let before = memory.used();
    let reading = Reading {
        recorder: &*app.recorder,
        project: grant.project,
        is_backfill: grant.terms.backfill,
        limits: &app.limits,
        memory: &memory,
    };
    let (mut prepared, unpacked_bytes) = reading.prepare(files, &fields, now)?;
    if grant.terms.pull_requests_only {
        // Anybody may have the key, and would choose where a person goes.
        assay_ingest::drop_file_addresses(&mut prepared.recording);
    }
    prepared.recording.is_backfilled = fields.judgement.is_some();
    if prepared.recording.is_backfilled {
        let sent = app.recorder.sent_reports(grant.project, &prepared.recording)?;
        prepared.recognise(&sent);
    }
    prepared.recording.checkout = CheckoutFiles {
        owners: fields.owners.take(),
        renames: fields.renames.take(),
    };
    if let Some(rerun) = &fields.rerun {
        // The gate ran the other tests only to run these in their company.
        let rerun: HashSet<&TestName> = rerun.iter().collect();
        prepared.recording.tests.retain(|test| rerun.contains(&test.test));
    }
    if prepared.recording.tests.is_empty() && prepared.recording.report_errors.is_empty() {
        return Err(IngestError::NothingToStore);
    }
    grant
        .rules()
        .check(&prepared.recording, &grant.stable_branch, now)?;
    // The files are gone.
    memory.give_back(before);
    memory.settle();
    Ok(ParsedUpload {
        prepared,
        sources: fields.sources,
        dry_run: fields.dry_run,
        judgement: fields.judgement,
        includes_failures: fields.failures,
        failures: None,
        bytes: received.bytes,
        unpacked_bytes,
        files: file_count,
        client: head.client.clone(),
        _memory: memory,
    })
}

/// Explains the failures of a report from the stored runs. Blocks.
pub(crate) fn explain(
    app: &AppState,
    grant: &IngestGrant,
    parsed: ParsedUpload,
) -> Result<ParsedUpload, IngestError> {
    let now = (app.clock)();
    let project = app
        .keys
        .project_of_key(grant.project, now)?
        .ok_or(RecordError::NoProject(grant.project))?;
    let report = (&parsed.prepared.recording, grant.rules());
    let failures = report_failures(&*app.store, &*app.judge, &project, report, now)?;
    Ok(ParsedUpload {
        failures: Some(failures),
        ..parsed
    })
}

/// What the reading of an upload needs.
struct Reading<'a> {
    recorder: &'a dyn Recorder,
    project: ProjectId,
    /// Whether the key accepts runs of any time.
    is_backfill: bool,
    limits: &'a Limits,
    memory: &'a Arc<UploadMemory>,
}

impl Reading<'_> {
    /// Reads the reports like `assay-admin import`. Also returns the bytes of the files, after unpacking.
    fn prepare(
        &self,
        files: Vec<SourceFile>,
        fields: &Fields,
        now: Timestamp,
    ) -> Result<(PreparedReport, u64), IngestError> {
        let file_counts = Files::of(&files);
        let root = fields.root.as_deref().or(fields.ci.workspace_root.as_deref());
        let memory: Arc<dyn Memory> = Arc::<UploadMemory>::clone(self.memory);
        let before = self.memory.used();
        let limit = usize::try_from(self.limits.unpacked_bytes).unwrap_or(usize::MAX);
        let unpacked_bytes = UnpackedBytes::new(limit);
        let mut options = Options {
            format: fields.format,
            root,
            known_files: fields.known_files.as_ref(),
            clocks: Clocks {
                utc_offset_minutes: fields.utc_offset_minutes,
                now: Some(now),
            },
            keeps_written_names: false,
            retries_as_attempts: fields.retries_as_attempts,
            are_new: !self.is_backfill && fields.flags.started_at.is_none(),
            skips_cached: fields.skip_cached,
            command_status: fields.command_status,
            memory: Some(&memory),
            unpacked_bytes: Some(&unpacked_bytes),
        };
        let mut report = assay_reports::read(&files, &options)?;
        if report.has_unstable_names() && !self.recorder.stores_stable_names(self.project)? {
            drop(report);
            self.memory.give_back_to(before);
            unpacked_bytes.clear();
            options.keeps_written_names = true;
            report = assay_reports::read(&files, &options)?;
        }
        let arrival = Arrival {
            files: file_counts,
            report,
            flags: &fields.flags,
            ci: &fields.ci,
            job_started_at: None,
        };
        let unpacked = u64::try_from(unpacked_bytes.taken()).unwrap_or(u64::MAX);
        Ok((assay_ingest::prepare(arrival, now)?, unpacked))
    }
}

/// Checks the project, if the request names one, against the key's project.
fn check_project(grant: &IngestGrant, requested: Option<&str>) -> Result<(), IngestError> {
    let is_key_project =
        |project: &str| project == grant.project_name || project == grant.project.to_string();
    match requested {
        Some(project) if !is_key_project(project) => Err(IngestError::WrongProject {
            key_project: grant.project_name.clone(),
        }),
        Some(_) | None => Ok(()),
    }
}
