//! The answer to an upload.

use assay_access::check::IngestGrant;
use assay_answers::failures::ReportFailures;
use assay_domain::{
    id::{ProjectId, RunId},
    recording::{Effect, ImportReceipt, ReplacedResults, VerdictChange, VerdictChanges},
    run::{Counts, Outcome},
};
use assay_ingest::{Choice, Origin};
use serde::Serialize;

use crate::parse::ParsedUpload;

/// A project in answers.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct ProjectName {
    /// Its id.
    pub(crate) id: ProjectId,
    /// Its name.
    pub(crate) name: String,
}

impl ProjectName {
    pub(crate) fn of(grant: &IngestGrant) -> Self {
        Self {
            id: grant.project,
            name: grant.project_name.clone(),
        }
    }
}

/// The answer to an upload.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    project: ProjectName,
    /// The run; null for a dry run.
    run_id: Option<RunId>,
    /// The run's number in the project; null for a dry run.
    run_number: Option<i32>,
    /// The shard, or the run itself if it is not sharded; null for a dry run.
    shard_id: Option<RunId>,
    /// The page of the run for people; null for a dry run, and if the server knows no address of its pages.
    url: Option<String>,
    /// The run's outcome so far.
    status: Option<Outcome>,
    /// The counts of the run; for a dry run, those of this report.
    counts: Counts,
    /// The number of tests in this report.
    tests: usize,
    effect: Effect,
    /// Whether the report continues what failed in an earlier attempt.
    continues: bool,
    /// The results that it replaced, if the request asked for that.
    replaced: Option<ReplacedResults>,
    /// Whether nothing was stored because the request asked for a dry run.
    dry_run: bool,
    /// The values of the run, with their sources.
    values: Vec<RunValue>,
    /// The verdicts that changed, at most 1,000 of them.
    verdicts_changed: Vec<VerdictChange>,
    /// The number of verdicts that changed.
    verdicts_changed_total: u64,
    /// Warnings about the reports and their values.
    warnings: Vec<String>,
    /// The causes of this report's failures, if the request asked for them.
    failures: Option<ReportFailures>,
}

/// A value of the run, and its source.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct RunValue {
    /// The name of the value.
    what: &'static str,
    /// The value.
    value: String,
    /// The CI variable, if the client named it, else the kind of source.
    from: String,
}

impl RunValue {
    fn all_of(choices: Vec<Choice>, sources: &[(String, String)]) -> Vec<Self> {
        let from = |choice: &Choice| {
            let named = sources.iter().find(|(what, _)| what == choice.what);
            match (choice.from, named) {
                (Origin::Variables, Some((_, variable))) => variable.clone(),
                (origin, _) => origin.label().to_owned(),
            }
        };
        choices
            .into_iter()
            .map(|choice| Self {
                from: from(&choice),
                what: choice.what,
                value: choice.value,
            })
            .collect()
    }
}

impl Answer {
    pub(crate) fn dry_run(grant: &IngestGrant, parsed: ParsedUpload) -> Self {
        let (counts, warnings) = (parsed.prepared.counts(), parsed.prepared.warnings());
        Self {
            dry_run: true,
            ..Self::of(grant, parsed, counts, warnings)
        }
    }

    pub(crate) fn stored(
        grant: &IngestGrant,
        imported: ImportReceipt,
        parsed: ParsedUpload,
        url: Option<String>,
    ) -> Self {
        let warnings = parsed.prepared.warnings_of(&imported);
        Self {
            run_id: Some(imported.run_id),
            run_number: Some(imported.run_number),
            shard_id: Some(imported.shard_id),
            url,
            status: imported.status,
            effect: imported.effect,
            continues: imported.standing.continues,
            replaced: imported.standing.replaced,
            ..Self::of(grant, parsed, imported.counts, warnings)
        }
    }

    /// What an answer has even if nothing was stored.
    fn of(grant: &IngestGrant, parsed: ParsedUpload, counts: Counts, warnings: Vec<String>) -> Self {
        Self {
            project: ProjectName::of(grant),
            run_id: None,
            run_number: None,
            shard_id: None,
            url: None,
            status: None,
            counts,
            tests: parsed.prepared.recording.tests.len(),
            effect: Effect::Unchanged,
            continues: false,
            replaced: None,
            dry_run: false,
            values: RunValue::all_of(parsed.prepared.choices, &parsed.sources),
            verdicts_changed: Vec::new(),
            verdicts_changed_total: 0,
            warnings,
            failures: parsed.failures,
        }
    }

    /// The answer with the verdicts that changed after the upload.
    pub(crate) fn with_verdicts(self, changes: VerdictChanges) -> Self {
        Self {
            verdicts_changed: changes.listed,
            verdicts_changed_total: changes.total,
            ..self
        }
    }
}
