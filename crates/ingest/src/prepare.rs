//! Converts a report to a recording.

use crate::ci::CiContext;
use assay_domain::{
    part::JobAttempt,
    recording::{CheckoutFiles, ImportReceipt, Recording, Sender, SentReport},
    run::Counts,
    timestamp::Timestamp,
};
use assay_reports::Report;

use crate::{
    bounds::{self, TooLarge},
    choice::{Choice, Chooser, Origin},
    content::{self, Files},
    context,
    flags::Flags,
    results, run_key,
    text::storable_text,
    times,
    values::LONGEST_LINE,
    warnings::{self, Warning},
};

/// A report as received.
#[derive(Debug, Clone)]
pub struct Arrival<'a> {
    /// Its files.
    pub files: Files,
    /// Their content.
    pub report: Report,
    /// The user's flags.
    pub flags: &'a Flags,
    /// The context from CI's variables.
    pub ci: &'a CiContext,
    /// The job's start in CI.
    pub job_started_at: Option<Timestamp>,
}

/// A report that is ready for storing, with the sources of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedReport {
    /// The recording to store.
    pub recording: Recording,
    /// Every value with several possible sources, and the source that was used.
    pub choices: Vec<Choice>,
    warnings: Vec<Warning>,
}

impl PreparedReport {
    /// The outcome of the report's own tests. The run may have more shards.
    pub fn counts(&self) -> Counts {
        results::counts(&self.recording.tests)
    }

    /// Makes it the report that its job itself sent, if it is among the reports of its CI run. The user may have named a
    /// suite and a shard, which the CI service does not know, and the start may be one that is no content.
    pub fn recognise(&mut self, sent: &[SentReport]) {
        let recording = &mut self.recording;
        let own = recording.sender.clone();
        let has_machine = |sender: &Sender| sender.id.is_some() || sender.runner.is_some();
        let may_be_of = |sent: &Sender| match has_machine(&own) {
            true => sent.is_same_job(&own) && sent.attempt.of_job == own.attempt.of_job,
            false => has_machine(sent),
        };
        let (key, context) = (recording.run_key.clone(), recording.context.clone());
        let (shard, content) = (recording.shard, recording.content);
        let build = key.split('\t').next().unwrap_or_default();
        // The reports of one run and shard have one context, and follow each other.
        let (mut of, mut digests) = (None, [content; 2]);
        for sent in sent.iter().filter(|sent| may_be_of(&sent.sender)) {
            if !sent.context.may_have_revision_of(&context) {
                continue;
            }
            if of != Some((&sent.context, sent.shard)) {
                of = Some((&sent.context, sent.shard));
                recording.run_key = run_key::of_suite(build, sent.context.suite.as_deref());
                recording.context = sent.context.clone();
                recording.shard = sent.shard;
                digests = [true, false].map(|is_start_content| {
                    content::digest(recording, is_start_content);
                    recording.content
                });
            }
            if let Some(found) = digests.iter().find(|digest| sent.content == **digest) {
                recording.content = *found;
                recording.sender = sent.sender.clone();
                return;
            }
        }
        (recording.run_key, recording.context) = (key, context);
        (recording.shard, recording.content) = (shard, content);
    }

    /// Warnings about the report for the user.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.iter().map(Warning::to_string).collect()
    }

    /// The warnings that apply once the report is stored: the run's context may have values of an earlier report, and the
    /// run may have other parts.
    pub fn warnings_of(&self, imported: &ImportReceipt) -> Vec<String> {
        let warnings = self
            .warnings
            .iter()
            .filter(|warning| warning.applies_to(&imported.context));
        warnings
            .map(Warning::to_string)
            .chain(warnings::of_standing(&self.recording, imported))
            .chain(warnings::of_renames(&self.recording))
            .chain(warnings::of_claims(imported))
            .collect()
    }
}

/// Converts a report to a recording: chooses between flags, variables and the report, and classifies the errors.
pub fn prepare(arrival: Arrival<'_>, now: Timestamp) -> Result<PreparedReport, TooLarge> {
    let Arrival {
        files,
        report,
        flags,
        ci,
        job_started_at,
    } = arrival;
    bounds::check(&report)?;
    let mut chooser = Chooser::default();
    let context = context::resolve(&flags.context, &ci.context, &report.context, &mut chooser);
    let shard = chooser.first(
        "shard",
        [
            (Origin::Flag, flags.shard),
            (Origin::Report, report.shard),
            (Origin::Variables, ci.shard),
        ],
    );
    let times = times::resolve(
        &times::SourceTimes {
            flag: flags.started_at,
            duration_ms: flags.duration_ms,
            report_start: report.started_at,
            report_end: report.finished_at,
            report_duration_ms: report.duration_ms,
            variables: job_started_at,
            file: files.modified,
            now,
        },
        &mut chooser,
    );
    let code = [context.branch.as_deref(), context.commit_sha.as_deref()];
    let content_key = run_key::of_content(&files.key, code);
    let run_key = run_key::resolve(
        flags.run_key.as_deref(),
        ci.run_key.as_deref(),
        report.run_key.as_deref(),
        &content_key,
        suite_of_key(context.suite.as_deref(), shard.is_some(), flags),
        &mut chooser,
    )?;
    let mut recording = Recording {
        run_key,
        content: [0; 32],
        shard,
        context,
        sender: sender(flags, ci, &files),
        replaces: flags.replace,
        is_backfilled: false,
        started_at: times.started_at,
        finished_at: times.finished_at,
        state: report.state,
        report_errors: report.errors,
        tests: results::classify_tests(report.tests, times.shift_ms, flags.artifacts_url.as_ref()),
        passed_groups: report.passed_groups,
        checkout: CheckoutFiles::default(),
    };
    content::digest(&mut recording, times.repeatable);
    let mut warnings: Vec<Warning> = report.warnings.into_iter().map(Warning::Other).collect();
    warnings.extend(warnings::of(&recording, &chooser.choices, now));
    Ok(PreparedReport {
        recording,
        choices: chooser.choices,
        warnings,
    })
}

/// The job that sends the report.
fn sender(flags: &Flags, ci: &CiContext, files: &Files) -> Sender {
    let line = |text: &Option<String>| text.as_deref().and_then(|text| storable_text(text, LONGEST_LINE));
    let unknown = JobAttempt::default();
    Sender {
        job: line(&ci.job),
        id: line(&ci.job_id),
        runner: line(&ci.runner),
        attempt: JobAttempt {
            of_job: ci.attempt.unwrap_or(unknown.of_job),
            of_command: flags.attempt.unwrap_or(unknown.of_command),
        },
        report_path: line(&files.path),
        report_files: files.count,
    }
}

/// The suite as part of the run key. CI uses a job's name as the suite if there is none. That name must not
/// separate the shards of a run whose key the user gave.
fn suite_of_key<'a>(suite: Option<&'a str>, is_shard: bool, flags: &Flags) -> Option<&'a str> {
    suite.filter(|_| !is_shard || flags.run_key.is_none() || flags.context.suite.is_some())
}

#[cfg(test)]
mod tests;
