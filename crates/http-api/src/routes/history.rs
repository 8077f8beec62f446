//! A test's history.

use assay_domain::{
    history::{Counting, HistoryRest, NotCounted, Occurrence},
    period::Period,
    project::{Project, ProjectTag},
    store::Store,
    test::TestName,
};
use assay_http::single_test;
use serde::Serialize;

use crate::{
    answer::{Answer, NextEntries, entries},
    call::Call,
    error::ApiError,
    route::route,
};

route! {
    /// Show the history of a test
    ///
    /// The results of the test in the runs of the period, on every branch, newest first. The oldest occurrence with
    /// `anyFailedAttempt` is its first failure. A test that passed on retry has the `status` `passed` there. `counted` says
    /// whether its verdict counts the result.
    ///
    /// Cost: moderate.
    LIST {
        path: "/projects/{projectId}/tests/{testName}",
        handler: list,
        id: "getTestHistory",
        tag: "Tests",
        query: ["filePath", "days"],
        large: true,
        tagged: false,
        answer: HistoryAnswer,
        example: "history",
    }
}

fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let query = call.query();
    let file = query.file()?;
    let period = query.period()?;
    let project = call.project()?;
    let test = call.test(file);
    let history = single_test(call.store.history(&project, &test, &period)?)?;
    let verdict = single_test(call.store.verdict(&project, &test)?)?;
    let mut counting = Counting::by(verdict.stored.as_ref().map(|stored| &stored.evidence));
    let answer = Answer::of(&HistoryAnswer {
        project: project.tag(),
        test: history.test,
        written_name: history.written_name,
        period,
        stable_branch: history.stable_branch,
        occurrences: with_counted(history.occurrences, &mut counting),
    })?;
    match history.rest {
        Some(rest) => {
            let rest = Some(rest);
            let older = OlderOccurrences {
                project,
                rest,
                counting,
            };
            answer.with_further_entries(Box::new(older), [0; 32])
        }
        None => Ok(answer),
    }
}

/// The occurrences beyond those of the first read.
struct OlderOccurrences {
    project: Project,
    rest: Option<HistoryRest>,
    counting: Counting,
}

impl NextEntries for OlderOccurrences {
    fn next(&mut self, store: &dyn Store) -> Result<Option<Vec<u8>>, ApiError> {
        let Some(rest) = self.rest.take() else {
            return Ok(None);
        };
        let (occurrences, rest) = store.history_part(&self.project, rest)?;
        self.rest = rest;
        entries(&with_counted(occurrences, &mut self.counting)).map(Some)
    }

    fn bytes(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.revisions.bytes())
    }
}

/// The results, newest first, each with whether it counts.
fn with_counted(occurrences: Vec<Occurrence>, counting: &mut Counting) -> Vec<HistoryEntry> {
    let entries = occurrences.into_iter().map(|result| {
        let (counted, not_counted_because) = counting.next(&result);
        HistoryEntry {
            result,
            counted,
            not_counted_because,
        }
    });
    entries.collect()
}

/// The result of a test in one run.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
struct HistoryEntry {
    #[serde(flatten)]
    result: Occurrence,
    /// Whether the test's verdict counts it; null before the first verdict, and for results that are older than the 20 mass
    /// failures which the evidence names, if there are more.
    counted: Option<bool>,
    /// Why not; null if it counts.
    not_counted_because: Option<NotCounted>,
}

/// The results of a test in the runs of a period.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryAnswer {
    /// The project.
    project: ProjectTag,
    /// The test.
    test: TestName,
    /// The name in the newest report, if the stored one lacks the parts that change from run to run.
    written_name: Option<String>,
    /// The period.
    #[serde(rename = "window")]
    period: Period,
    /// The stable branch.
    stable_branch: String,
    /// One entry per run, newest first.
    occurrences: Vec<HistoryEntry>,
}
