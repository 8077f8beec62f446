//! Sends a decision to the server, so that the pages show what was excused.

use std::time::Instant;

use assay_cli_job::gate::policy::Decision;
use assay_cli_remote::server::{address::MissingSetting, http};
use assay_cli_terminal::{
    message,
    retry::{self, Backoff},
};
use assay_domain::{id::RunId, run::CiProvider};
use serde::Deserialize;
use serde_json::Value;

use crate::{errors, sender::Sender};

/// The run or upload of a decision.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionTarget {
    run_id: RunId,
    /// None for a whole run.
    shard_id: Option<RunId>,
}

impl DecisionTarget {
    /// A whole run.
    pub(crate) const fn run(run_id: RunId) -> Self {
        Self {
            run_id,
            shard_id: None,
        }
    }

    /// The run.
    pub(crate) const fn run_id(self) -> RunId {
        self.run_id
    }

    /// The report that the server stored with this answer.
    pub(crate) fn of_answer(answer: &Value) -> anyhow::Result<Self> {
        Self::deserialize(answer)
            .map_err(|error| anyhow::anyhow!("the server's answer does not name the stored report: {error}"))
    }
}

/// Sends a decision. If it is not stored, prints a warning; the exit status does not change.
pub(crate) fn store(
    sender: &Sender<'_>,
    target: anyhow::Result<DecisionTarget>,
    decision: &Decision,
    deadline: Instant,
) {
    let sent = target.and_then(|target| {
        let body = decision.to_record(target.run_id, target.shard_id);
        let mut backoff = Backoff::until(deadline);
        let progress = sender.global.progress();
        let sent = retry::until_expired(progress, &mut backoff, "the decision is not stored yet", || {
            sender.server.decide(&body, http::until(deadline))
        });
        sent.map_err(anyhow::Error::new)
    });
    if let Err(error) = sent {
        not_stored(sender.ci.provider, decision, &error);
    }
}

/// Prints that a decision is not stored, and why. It is a warning unless no ingest key was given. Without that and an
/// excused test nothing is printed.
pub(crate) fn not_stored(provider: Option<CiProvider>, decision: &Decision, error: &anyhow::Error) {
    let excuses = decision.excused() > 0;
    let text = |why: &str| match excuses {
        true => format!("the gate's decision is not stored, so the pages do not show what it excused: {why}"),
        false => format!("the gate's decision is not stored: {why}"),
    };
    match error.downcast_ref::<MissingSetting>() {
        Some(missing) if excuses => message!("{}", text(missing.message())),
        Some(_) => {}
        None => {
            let advice = errors::advice(error).map_or_else(String::new, |advice| format!("; {advice}"));
            errors::warn(provider, &text(&format!("{error:#}{advice}")));
        }
    }
}
