//! A verdict as one file: the runs that it used, the constants and the answer. Anyone can compute it again.
//!
//! A file has names of branches, variants, revisions and runs, and the name of its test. It has no key, no text of an error
//! and no name of another test.

use std::{collections::BTreeMap, sync::Arc};

use assay_domain::{
    observation::{Bitmap, Failure, History, Repetition, RunEnding, RunFacts, RunObservations},
    project::{Project, ProjectTag},
    store::{Store, StoreError},
    test::{TestLookup, TestName, TestOrdinal, TestSelector},
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Evidence, Figures, Judge, Judgement, Signal, VerdictStatus},
};
use assay_flakiness::{ENGINE_VERSION, Engine, constants};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::fix::in_engine_window;

/// The form of a verdict's file.
const FORM: &str = "assay-proof-1";
/// Most tests of a file, so that a wrong one takes little memory.
const MOST_TESTS: u32 = 20_000_000;
/// The relative difference up to which two numbers are equal: systems compute logarithms differently in the last digit.
const EQUAL: f64 = 1e-9;

/// A verdict with all that it depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerdictProof {
    /// The form of the file: `assay-proof-1`.
    pub form: String,
    /// What was judged.
    pub question: Checked<Question>,
    /// The main constants of the engine.
    pub constants: BTreeMap<String, Vec<f64>>,
    /// The runs of the window.
    pub runs: Vec<Checked<RunRow>>,
    /// The verdict.
    pub answer: Checked<ProvedVerdict>,
}

/// A part of a file with its checksum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checked<T> {
    /// The part.
    pub value: T,
    /// The CRC-32 of its JSON without spaces.
    pub crc32: u32,
}

/// What was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Question {
    /// The version of the engine.
    pub engine: String,
    /// The time of the judgement.
    pub now: Timestamp,
    /// The length of the window in days.
    pub window_days: i64,
    /// The stable branch.
    pub stable_branch: String,
    /// The test.
    pub test: TestName,
    /// Its number in the runs.
    pub number: u32,
    /// The numbers of all tests are below this one.
    pub tests: u32,
    /// The number of runs.
    pub runs: usize,
}

/// A run of one variant. Tests are numbers; lists of them are ranges, each with its first and last number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// Its number.
    pub number: i32,
    /// Its start.
    pub started_at: Timestamp,
    /// Its branch.
    pub branch: Option<String>,
    /// Its revision.
    pub revision: Option<String>,
    /// The merge of the revision that it tested, if it tested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<String>,
    /// Its variant.
    pub variant: String,
    /// Whether every expected shard has reported.
    pub complete: bool,
    /// When an incomplete run counts.
    pub counts_from: Option<Timestamp>,
    /// Whether it failed outside of its tests.
    pub failed_outside_tests: bool,
    /// Its tests.
    pub present: Vec<(u32, u32)>,
    /// Those that were skipped.
    pub skipped: Vec<(u32, u32)>,
    /// Those without a duration.
    pub untimed: Vec<(u32, u32)>,
    /// The tests with a failed attempt: number, whether it passed on retry, failed attempts, their milliseconds.
    pub failures: Vec<(u32, bool, u32, Option<u64>)>,
    /// The tests with several executions: number, executions, failed executions.
    pub repeated: Vec<(u32, u32, u32)>,
    /// The tests under another name: number, and that of the name.
    pub other_names: Vec<(u32, u32)>,
}

/// A verdict as the engine gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProvedVerdict {
    /// The verdict.
    pub status: VerdictStatus,
    /// The primary signal.
    pub status_reason: Option<Signal>,
    /// One sentence.
    pub explanation: String,
    /// The figures.
    pub figures: Figures,
    /// The numbers behind it.
    pub evidence: Evidence,
}

/// Why a file does not prove its answer.
#[derive(Debug, thiserror::Error)]
pub enum NotProved {
    /// It is no such file.
    #[error("it is no file of `assay proof`")]
    Foreign(#[from] serde_json::Error),
    /// It was written in another form.
    #[error("its form {0:?} is not one that this program reads")]
    Form(String),
    /// Another version of the engine judged.
    #[error(
        "engine {0} judged it, and this program has engine {ENGINE_VERSION}; use the program of that version"
    )]
    Engine(String),
    /// A part was changed after it was written.
    #[error("{0} was changed: its checksum is another one")]
    Changed(String),
    /// A number is another one.
    #[error("{place}: the file has {found}, and the computation gives {expected}")]
    Differs {
        /// Where it is in the file.
        place: String,
        /// The value of the file.
        found: String,
        /// The value that was computed.
        expected: String,
    },
}

impl<T: Serialize> Checked<T> {
    /// The part with its checksum.
    pub fn new(value: T) -> Result<Self, serde_json::Error> {
        let crc32 = crc32fast::hash(&serde_json::to_vec(&value)?);
        Ok(Self { value, crc32 })
    }

    /// Checks the checksum of the part at a place of the file.
    pub fn check(&self, place: impl Into<String>) -> Result<(), NotProved> {
        match crc32fast::hash(&serde_json::to_vec(&self.value)?) == self.crc32 {
            true => Ok(()),
            false => Err(NotProved::Changed(place.into())),
        }
    }
}

impl VerdictProof {
    /// The proof of the verdict on a test at `now`, over the runs of the window; none if it has no result there.
    pub fn new(
        history: &History,
        test: (TestName, TestOrdinal),
        now: Timestamp,
    ) -> Result<Option<Self>, serde_json::Error> {
        let (name, number) = test;
        let Some(answer) = judged(history, number, now) else {
            return Ok(None);
        };
        let question = Question {
            engine: ENGINE_VERSION.to_owned(),
            now,
            window_days: ENGINE_WINDOW_DAYS,
            stable_branch: history.stable_branch.to_string(),
            test: name,
            number,
            tests: history.tests,
            runs: history.runs.len(),
        };
        let runs = history.runs.iter().map(RunRow::from);
        Ok(Some(Self {
            form: FORM.to_owned(),
            question: Checked::new(question)?,
            constants: named_constants(),
            runs: runs.map(Checked::new).collect::<Result<_, _>>()?,
            answer: Checked::new(answer)?,
        }))
    }

    /// Reads a file, or an answer of the API that holds one.
    pub fn read(text: &str) -> Result<Self, NotProved> {
        of_form(text, FORM)
    }

    /// Computes the verdict again. The error names the first place that differs.
    pub fn check(&self) -> Result<(), NotProved> {
        let question = &self.question.value;
        self.question.check("question")?;
        same_engine(&question.engine, &self.constants, &named_constants())?;
        let days = json!(ENGINE_WINDOW_DAYS);
        compare("question.windowDays", &json!(question.window_days), &days, 0.0)?;
        same_number("question.runs", question.runs, self.runs.len())?;
        for (place, run) in self.runs.iter().enumerate() {
            let name = format!("runs[{place}] (run {})", run.value.number);
            run.check(name.as_str())?;
            if run.value.largest_test() >= Some(question.tests.min(MOST_TESTS)) {
                return Err(NotProved::Changed(name));
            }
        }
        let history = History {
            stable_branch: question.stable_branch.as_str().into(),
            tests: question.tests,
            runs: self.runs.iter().map(|run| run.value.observed()).collect(),
        };
        let computed = judged(&history, question.number, question.now);
        same_answer(&self.answer, &computed)
    }
}

/// Reads a file of this form, or an answer of the API that holds one.
pub fn of_form<T: DeserializeOwned>(text: &str, form: &str) -> Result<T, NotProved> {
    let mut value: Value = serde_json::from_str(text)?;
    if let Some(of_answer) = value.get_mut("proof") {
        value = of_answer.take();
    }
    let found = value.get("form").and_then(Value::as_str).unwrap_or_default();
    match found == form {
        true => Ok(serde_json::from_value(value)?),
        false => Err(NotProved::Form(found.to_owned())),
    }
}

/// Whether this program has the engine and the constants of a file.
pub fn same_engine(
    engine: &str,
    found: &BTreeMap<String, Vec<f64>>,
    constants: &BTreeMap<String, Vec<f64>>,
) -> Result<(), NotProved> {
    match engine == ENGINE_VERSION {
        true => compare("constants", &json!(found), &json!(constants), 0.0),
        false => Err(NotProved::Engine(engine.to_owned())),
    }
}

/// Whether a file has as many parts as it says.
pub fn same_number(place: &str, found: usize, parts: usize) -> Result<(), NotProved> {
    compare(place, &json!(found), &json!(parts), 0.0)
}

/// Whether the answer of a file is the computed one.
pub fn same_answer<T: Serialize>(answer: &Checked<T>, computed: &impl Serialize) -> Result<(), NotProved> {
    compare("answer", &json!(answer.value), &json!(computed), EQUAL)?;
    answer.check("answer")
}

/// The main constants of the engine by their names.
pub fn named_constants() -> BTreeMap<String, Vec<f64>> {
    let named = constants().into_iter();
    named.map(|(name, values)| (name.to_owned(), values)).collect()
}

fn judged(history: &History, test: TestOrdinal, now: Timestamp) -> Option<ProvedVerdict> {
    let Judgement { verdict, evidence } = Engine::default().judge_tests(history, now, &[test]).pop()?;
    Some(ProvedVerdict {
        status: verdict.status,
        status_reason: verdict.reason,
        explanation: verdict.explanation,
        figures: verdict.figures,
        evidence,
    })
}

/// Compares two values. The error names the first place that differs.
fn compare(place: &str, found: &Value, expected: &Value, tolerance: f64) -> Result<(), NotProved> {
    let differs = || NotProved::Differs {
        place: place.to_owned(),
        found: found.to_string(),
        expected: expected.to_string(),
    };
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let others = found.keys().filter(|key| !expected.contains_key(*key));
            for key in expected.keys().chain(others) {
                let [found, expected] = [found, expected].map(|map| map.get(key).unwrap_or(&Value::Null));
                compare(&format!("{place}.{key}"), found, expected, tolerance)?;
            }
            Ok(())
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            let pairs = found.iter().zip(expected).enumerate();
            for (index, (found, expected)) in pairs {
                compare(&format!("{place}[{index}]"), found, expected, tolerance)?;
            }
            Ok(())
        }
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) if (a - b).abs() <= tolerance * a.abs().max(b.abs()) => Ok(()),
            _ => Err(differs()),
        },
        _ if found == expected => Ok(()),
        _ => Err(differs()),
    }
}

impl From<&RunObservations> for RunRow {
    fn from(observed: &RunObservations) -> Self {
        let RunObservations {
            run,
            present,
            skipped,
            untimed,
            failures,
            repeated,
            other_names,
            ending,
        } = observed;
        Self {
            id: run.id.to_string(),
            number: run.number,
            started_at: run.started_at,
            branch: run.branch.as_deref().map(str::to_owned),
            revision: run.revision.as_deref().map(str::to_owned),
            merge: run.merge.as_deref().map(str::to_owned),
            variant: run.variant.to_string(),
            complete: ending.complete,
            counts_from: ending.counts_from,
            failed_outside_tests: ending.failed_outside_tests,
            present: ranges(present),
            skipped: ranges(skipped),
            untimed: ranges(untimed),
            failures: failures
                .iter()
                .map(|failure| {
                    (
                        failure.test,
                        failure.recovered,
                        failure.failed_attempts,
                        failure.lost_ms,
                    )
                })
                .collect(),
            repeated: repeated
                .iter()
                .map(|of| (of.test, of.executions, of.failed))
                .collect(),
            other_names: other_names.clone(),
        }
    }
}

impl RunRow {
    /// The largest number of a test.
    fn largest_test(&self) -> Option<u32> {
        let sets = [&self.present, &self.skipped, &self.untimed];
        sets.into_iter().flatten().map(|(_, last)| *last).max()
    }

    fn observed(&self) -> RunObservations {
        let shared = |text: &Option<String>| text.as_deref().map(Arc::from);
        let failures = self
            .failures
            .iter()
            .map(|(test, recovered, failed_attempts, lost_ms)| Failure {
                test: *test,
                recovered: *recovered,
                failed_attempts: *failed_attempts,
                lost_ms: *lost_ms,
            });
        let repeated = self.repeated.iter().map(|(test, executions, failed)| Repetition {
            test: *test,
            executions: *executions,
            failed: *failed,
        });
        RunObservations {
            present: bitmap(&self.present),
            skipped: bitmap(&self.skipped),
            untimed: bitmap(&self.untimed),
            failures: failures.collect(),
            repeated: repeated.collect(),
            other_names: self.other_names.clone(),
            ending: RunEnding {
                complete: self.complete,
                counts_from: self.counts_from,
                failed_outside_tests: self.failed_outside_tests,
            },
            ..RunObservations::of(RunFacts {
                id: self.id.as_str().into(),
                number: self.number,
                started_at: self.started_at,
                branch: shared(&self.branch),
                revision: shared(&self.revision),
                merge: shared(&self.merge),
                variant: self.variant.as_str().into(),
                ..RunFacts::default()
            })
        }
    }
}

/// A set as ranges, each with its first and last test.
fn ranges(set: &Bitmap) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for test in set.iter() {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(test) => *last = test,
            _ => ranges.push((test, test)),
        }
    }
    ranges
}

fn bitmap(ranges: &[(u32, u32)]) -> Bitmap {
    ranges.iter().flat_map(|(first, last)| *first..=*last).collect()
}

/// The answer of the API with a proof.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProofAnswer {
    /// The project.
    pub project: ProjectTag,
    /// The file of `assay proof`: what was judged, constants, runs, answer. Null if the test has no result in the window.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub proof: Option<VerdictProof>,
}

/// The proof of the stored verdict on a test; none if the test has no result in the window.
pub fn verdict_proof(
    store: &dyn Store,
    project: &Project,
    selector: &TestSelector,
    now: Timestamp,
) -> Result<TestLookup<ProofAnswer>, StoreError> {
    store.verdict(project, selector)?.try_map(|verdict| {
        let judged_at = verdict.stored.map_or(now, |stored| stored.evaluated_at);
        let selector = verdict.test.selector();
        let proof = in_engine_window(store, project, &selector, judged_at, |history, number| {
            let proof = VerdictProof::new(history, (verdict.test.clone(), number), judged_at);
            proof.map_err(|error| StoreError::Failed {
                doing: "writing a proof",
                source: error.into(),
            })
        })?;
        Ok(ProofAnswer {
            project: project.tag(),
            proof: proof.flatten(),
        })
    })
}

#[cfg(test)]
mod tests;
