//! A decision as one file: the failures with their probabilities, the reruns, the rules and the answer. Anyone can decide
//! again. The file has the names of the failed tests.

use std::collections::BTreeMap;

use assay_answers::{
    failures::{BLOCKS_FROM, CLEAR, PROVEN_FROM},
    proof::{Checked, NotProved, named_constants, of_form, same_answer, same_engine, same_number},
};
use assay_domain::cause::Cause;
use assay_flakiness::{ENGINE_VERSION, plan::reruns::Suspect};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    burn_in::BurnInResults,
    excuses::{MOST_DAYS, MOST_MINE},
    judged::{JudgedFailure, JudgedRun},
    policy::{self, CROWD, Decision, Rules},
    reruns::Reruns,
    show,
};

/// The form of a decision's file.
const FORM: &str = "assay-decision-1";

/// A decision with all that it depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecisionProof {
    /// The form of the file: `assay-decision-1`.
    form: String,
    /// What was decided.
    question: Checked<Question>,
    /// The main constants of the engine and of the gate.
    constants: BTreeMap<String, Vec<f64>>,
    /// The failed and recovered tests.
    failures: Vec<Checked<FailureRow>>,
    /// The decision, with the probability that this change broke any test.
    answer: Checked<Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Question {
    engine: String,
    rules: Rules,
    run: JudgedRun,
    /// The number of failed and recovered tests in the file.
    failures: usize,
    burn_in: Option<BurnInResults>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureRow {
    failure: JudgedFailure,
    rerun: Option<RerunRow>,
}

/// What reruns show of a test, and its cause as the engine judges it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RerunRow {
    test: Suspect,
    cause: Cause,
}

impl DecisionProof {
    /// The proof of a decision by these rules.
    pub fn new(decision: &Decision, rules: &Rules) -> Result<Self, serde_json::Error> {
        let (judged, mut reruns) = match &decision.reruns {
            Some(reruns) => {
                let (judged, tests) = reruns.parts();
                (judged, tests.collect::<Vec<_>>().into_iter())
            }
            None => (&decision.judged, Vec::new().into_iter()),
        };
        let rows = judged.failures.iter().map(|failure| {
            // Only tests that failed in the end run again.
            let rerun = (!failure.recovered).then(|| reruns.next()).flatten();
            Checked::new(FailureRow {
                failure: failure.clone(),
                rerun: rerun.map(|(test, cause)| RerunRow { test, cause }),
            })
        });
        let failures: Vec<Checked<FailureRow>> = rows.collect::<Result<_, _>>()?;
        let question = Question {
            engine: ENGINE_VERSION.to_owned(),
            rules: rules.clone(),
            run: JudgedRun {
                failures: Vec::new(),
                ..judged.clone()
            },
            failures: failures.len(),
            burn_in: decision.burn_in.clone(),
        };
        Ok(Self {
            form: FORM.to_owned(),
            question: Checked::new(question)?,
            constants: constants(),
            failures,
            answer: Checked::new(answer(decision))?,
        })
    }

    /// Reads a file.
    pub fn read(text: &str) -> Result<Self, NotProved> {
        of_form(text, FORM)
    }

    /// Decides again. The error names the first place that differs.
    pub fn check(&self) -> Result<Decision, NotProved> {
        let question = &self.question.value;
        self.question.check("question")?;
        same_engine(&question.engine, &self.constants, &constants())?;
        same_number("question.failures", question.failures, self.failures.len())?;
        let mut run = question.run.clone();
        let mut reran = Vec::new();
        for (place, row) in self.failures.iter().enumerate() {
            row.check(format!("failures[{place}] ({})", row.value.failure.test_name))?;
            run.failures.push(row.value.failure.clone());
            reran.extend(row.value.rerun.iter().map(|row| (row.test, row.cause)));
        }
        if !reran.is_empty() {
            let mut reruns = Reruns::of(run, reran);
            reruns.judge_again(None);
            run = reruns.judged();
        }
        let mut decision = policy::decide(&run, &question.rules);
        if let Some(results) = &question.burn_in {
            decision.add_burn_in(results.clone());
        }
        same_answer(&self.answer, &answer(&decision))?;
        Ok(decision)
    }
}

/// The constants of the engine, and those by which the gate decides.
fn constants() -> BTreeMap<String, Vec<f64>> {
    let mut named = named_constants();
    let days = u32::try_from(MOST_DAYS).map_or(f64::MAX, f64::from);
    let of_gate = [
        f64::from(PROVEN_FROM),
        f64::from(CROWD),
        BLOCKS_FROM,
        CLEAR,
        MOST_MINE,
        days,
    ];
    named.insert("gate".to_owned(), of_gate.to_vec());
    named
}

/// The decision as `assay gate --json` prints it, with the judgement that it is based on.
fn answer(decision: &Decision) -> Value {
    json!({
        "decision": show::json(decision),
        "mine": decision.judged.mine,
        "action": decision.judged.action,
    })
}

#[cfg(test)]
mod tests;
