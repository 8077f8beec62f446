//! Messages: what `assay-notify` could not deliver, and projects without a target.

use assay_cli_terminal::output::{count, shell_word};
use assay_domain::{store::StoreError, timestamp::Timestamp};
use assay_repository::{Inspection, MessagedProject, UndeliveredMessages};

use crate::doctor::check::{Check, NAMED, Status};

/// After how long without `assay-notify` its targets count as gone, in milliseconds. It registers them every hour.
const SEEN_WITHIN_MS: i64 = 3 * 60 * 60_000;

/// Whether messages are delivered.
pub(crate) fn check(inspection: &mut Inspection, now: Timestamp) -> Result<Check, StoreError> {
    let projects = inspection.messaged_projects()?;
    let undelivered = inspection.undelivered_messages()?;
    Ok(of(&projects, &undelivered, now))
}

fn of(projects: &[MessagedProject], undelivered: &[UndeliveredMessages], now: Timestamp) -> Check {
    let mut check = Check::ok(
        "messages",
        match projects.len() {
            0 => "no project has events for messages".to_owned(),
            1 => "1 project has events for messages".to_owned(),
            number => format!("{number} projects have events for messages"),
        },
    );
    let is_served = |project: &&MessagedProject| {
        let seen = project.served_at;
        seen.is_some_and(|at| now.since_ms(at) < SEEN_WITHIN_MS)
    };
    let unserved = projects.iter().filter(|project| !is_served(project));
    for project in unserved.take(NAMED) {
        check = check.with_finding(
            Status::Warn,
            format!(
                "{:?} has events for messages, and assay-notify does not run with a target for it",
                project.name
            ),
            format!(
                "start assay-notify with a target for it, or: assay-admin project set {} --no-chat",
                shell_word(&project.name)
            ),
        );
    }
    let findings = undelivered.iter().map(|messages| {
        (
            undelivered_sentence(messages),
            "correct the target in notify.toml, then restart assay-notify, which tries everything again",
        )
    });
    check.with_first(Status::Warn, findings, " targets", "")
}

fn undelivered_sentence(messages: &UndeliveredMessages) -> String {
    let given_up = match messages.given_up {
        0 => String::new(),
        given_up => format!(", {given_up} of them given up"),
    };
    format!(
        "{} about {:?} to the target {:?} not delivered{given_up}: {}",
        count(messages.messages, "message"),
        messages.project,
        messages.target,
        messages.error.as_deref().unwrap_or("no reason")
    )
}
