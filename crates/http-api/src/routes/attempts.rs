//! The attempts of one test in one run.

use std::io;

use assay_answers::prompt::{self, Place};
use assay_domain::{
    attempt::{Attachment, AttemptStatus, ErrorDetail, ShardTag},
    project::ProjectTag,
    run::RunTag,
    test::TestName,
    test_attempts::{StoredAttempt, TestAttempts},
};
use assay_http::{Unanswerable, single_test};
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// List the attempts of a test in a run
    ///
    /// The attempts of one test in one run, by execution and oldest first, with their errors and a prompt for an
    /// assistant that has the repository open.
    ///
    /// Cost: cheap.
    LIST {
        path: "/projects/{projectId}/runs/{runId}/tests/{testName}",
        handler: list,
        id: "listAttempts",
        tag: "Runs",
        query: ["filePath"],
        large: true,
        tagged: true,
        answer: AttemptList,
        example: "attempts",
    }
}

fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let file = call.query().file()?;
    let project = call.project()?;
    let lookup = call.store.attempts(&project, call.run_id()?, &call.test(file))?;
    let attempts = single_test(lookup.ok_or(Unanswerable::RunNotFound)?)?;
    let page = call.pages.map(|pages| {
        let TestName { name, file_path } = &attempts.test;
        pages.attempts(project.id, &attempts.run.id, name, file_path.as_deref())
    });
    Answer::tagged(&AttemptList::new(project.tag(), &attempts, page.as_deref())?)
}

/// The attempts of one test in one run.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptList<'a> {
    /// The project.
    project: ProjectTag,
    /// The run.
    run: &'a RunTag,
    /// The test.
    test: &'a TestName,
    /// By execution, the worst outcome last; within an execution oldest first. Never empty.
    attempts: Vec<AttemptEntry<'a>>,
    /// The number of omitted attempts between the oldest and the newest. An answer has at most 4 MB.
    omitted_attempts: u32,
}

/// One attempt.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptEntry<'a> {
    /// Its execution, from 0. A test has several executions if several shards ran it or if it was repeated on purpose.
    /// A second execution is not a retry.
    execution: u32,
    /// Its index among the attempts of its execution, from 0.
    retry: u32,
    /// The same in words: `first try`, `retry #1`, and so on.
    label: String,
    /// Its status.
    status: AttemptStatus,
    /// Its duration in milliseconds.
    duration_ms: Option<u64>,
    /// The most milliseconds that it may take, of a failed attempt whose report says it: that of Playwright.
    timeout_ms: Option<u64>,
    /// The browser or Playwright project that it ran in.
    browser_name: Option<&'a str>,
    /// Why it was skipped, if the report says so.
    skip_reason: Option<&'a str>,
    /// Its errors, the first error first.
    errors: &'a [ErrorDetail],
    /// The number of omitted errors. Errors are omitted from an attempt that would fill half an answer.
    omitted_errors: u32,
    /// The files that the report names, such as screenshots and traces. Their contents are not stored.
    #[cfg_attr(test, schema(max_items = 20))]
    attachments: &'a [Attachment],
    /// What a failed attempt printed, if the report has it; of a long text the last 64,000 bytes.
    output: Option<&'a str>,
    /// The prompt for an assistant that has the repository open; none for an attempt that did not fail.
    copy_prompt: Option<String>,
    /// The shard that ran it; none in a run without shards.
    shard: Option<ShardTag>,
}

impl<'a> AttemptList<'a> {
    /// `page` is the public address of the test's page in the run.
    fn new(project: ProjectTag, stored: &'a TestAttempts, page: Option<&str>) -> Result<Self, ApiError> {
        let place = || Place {
            project: &project.name,
            page,
        };
        let entry = |attempt: &'a StoredAttempt| AttemptEntry {
            execution: attempt.execution,
            retry: attempt.retry,
            label: prompt::label(attempt.retry),
            status: attempt.status,
            duration_ms: attempt.duration_ms,
            timeout_ms: attempt.output.timeout_ms,
            browser_name: attempt.browser_name.as_deref(),
            skip_reason: attempt.skip_reason.as_deref(),
            errors: &attempt.errors,
            omitted_errors: 0,
            attachments: &attempt.output.attachments,
            output: attempt.output.console.as_deref(),
            // Without the cause: the engine would have to judge the run, and the route costs one look-up.
            copy_prompt: prompt::of(place(), stored, attempt, None),
            shard: attempt.shard,
        };
        let (attempts, omitted) = fit(stored.attempts.iter().map(entry).collect())?;
        Ok(Self {
            attempts,
            omitted_attempts: stored.omitted.saturating_add(omitted),
            run: &stored.run,
            test: &stored.test,
            project,
        })
    }
}

/// The largest size of an answer's attempts in bytes. The rest of the answer has a few kilobytes.
const MOST_BYTES: usize = 3_900_000;

/// The attempts that fit into an answer, half of the space for the oldest and half for the newest, and the number of
/// omitted attempts.
fn fit(mut attempts: Vec<AttemptEntry<'_>>) -> Result<(Vec<AttemptEntry<'_>>, u32), ApiError> {
    let mut lengths = attempts.iter().map(json_length).collect::<Result<Vec<_>, _>>()?;
    if lengths.iter().sum::<usize>() <= MOST_BYTES {
        return Ok((attempts, 0));
    }
    for (attempt, length) in attempts.iter_mut().zip(&mut lengths) {
        while *length > MOST_BYTES / 2
            && let Some((_, remaining_errors)) = attempt.errors.split_last()
        {
            attempt.errors = remaining_errors;
            attempt.omitted_errors += 1;
            *length = json_length(&*attempt)?;
        }
    }
    let fitting = |lengths: &mut dyn Iterator<Item = &usize>| {
        let mut room = MOST_BYTES / 2;
        lengths
            .take_while(|length| match room.checked_sub(**length) {
                Some(rest) => {
                    room = rest;
                    true
                }
                None => false,
            })
            .count()
    };
    let oldest = fitting(&mut lengths.iter());
    let newest = fitting(&mut lengths.iter().skip(oldest).rev());
    let omitted = attempts.len() - oldest - newest;
    attempts.drain(oldest..oldest + omitted);
    Ok((attempts, u32::try_from(omitted).unwrap_or(u32::MAX)))
}

/// The size of a value as JSON in bytes.
fn json_length(value: &impl Serialize) -> Result<usize, serde_json::Error> {
    struct Length(usize);
    impl io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    serde_json::to_writer(&mut length, value)?;
    Ok(length.0)
}

#[cfg(test)]
mod tests {
    use assay_domain::{run::RunTag, timestamp::Timestamp};

    use super::*;

    fn list(attempts: Vec<Vec<usize>>) -> (Vec<(u32, usize, u32)>, u32, usize) {
        let error = |length: usize| ErrorDetail {
            message: Some("\n".repeat(length)),
            ..ErrorDetail::default()
        };
        let attempt = |(retry, errors): (u32, Vec<usize>)| StoredAttempt {
            execution: 0,
            retry,
            status: AttemptStatus::Failed,
            duration_ms: None,
            browser_name: None,
            skip_reason: None,
            output: Default::default(),
            errors: errors.into_iter().map(error).collect(),
            shard: None,
        };
        let stored = TestAttempts {
            run: RunTag {
                id: "019aa3f4-5b1c-7def-8a3b-0123456789ab".parse().unwrap(),
                run_number: 1,
                branch: None,
            },
            started_at: Timestamp::from_unix_ms(0),
            commit_sha: None,
            tested_revision: None,
            test: TestName {
                name: "t".to_owned(),
                file_path: None,
            },
            verdict: None,
            attempts: (0..).zip(attempts).map(attempt).collect(),
            omitted: 3,
        };
        let project = ProjectTag {
            id: "019aa3f4-5b1c-7def-8a3b-0123456789ab".parse().unwrap(),
            name: "shop".to_owned(),
        };
        let list = AttemptList::new(project, &stored, None).unwrap();
        let length = serde_json::to_vec(&list).unwrap().len();
        let entries = list
            .attempts
            .iter()
            .map(|attempt| (attempt.retry, attempt.errors.len(), attempt.omitted_errors));
        (entries.collect(), list.omitted_attempts, length)
    }

    #[test]
    fn an_answer_keeps_the_oldest_and_the_newest_attempts_within_four_megabytes() {
        // Each line break takes two bytes.
        let (entries, omitted, _) = list(vec![vec![400_000]; 4]);
        assert_eq!((entries.len(), omitted), (4, 3));
        let (entries, omitted, length) = list(vec![vec![400_000]; 12]);
        assert_eq!(entries, [(0, 1, 0), (1, 1, 0), (10, 1, 0), (11, 1, 0)]);
        assert_eq!(omitted, 8 + 3);
        assert!((3_000_000..4_000_000).contains(&length), "{length}");
    }

    #[test]
    fn an_attempt_that_would_fill_half_an_answer_keeps_its_first_errors() {
        let (entries, omitted, length) = list(vec![vec![1_000], vec![200_000; 20], vec![1_000]]);
        assert_eq!(entries, [(0, 1, 0), (1, 4, 16), (2, 1, 0)]);
        assert_eq!(omitted, 3);
        assert!(length < 4_000_000, "{length}");
    }
}
