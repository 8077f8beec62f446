//! Sends a body, and the uploads that wait in a spool.

use assay_cli_terminal::{
    output,
    progress::{Progress, Work},
    retry::{self, Backoff},
};
use serde_json::Value;

use crate::server::{
    body::Body,
    ingest::{Server, UploadError},
    spool::{Claim, SentWith, Spool},
};

/// A report that was not sent, or whose answer was lost.
pub struct NotSent {
    /// The error of the last attempt.
    pub error: UploadError,
    /// Whether an attempt may have stored the report.
    may_be_stored: bool,
}

impl NotSent {
    /// Adds whether the report is stored, and what happens next. `spooled` is the result of adding it to a spool, with
    /// the spool's name.
    pub fn with_context(self, dry_run: bool, spooled: Option<(anyhow::Result<()>, String)>) -> anyhow::Error {
        let is_unknown = self.may_be_stored && !dry_run;
        let stored = match is_unknown {
            false => "nothing was stored",
            // Its error contains what is known, for example that only the verdicts are not up to date.
            true if self.error.is_failure_of_the_server() => "the server did not complete the upload",
            true => "it is unknown whether the report was stored",
        };
        let context = match spooled {
            Some((Ok(()), name)) => {
                let spool = output::shell_word(&name);
                match self.error.is_the_keys_fault() {
                    true => format!(
                        "{stored}; with a valid key, `assay upload --spool {spool} --any-key` sends it"
                    ),
                    false => format!("{stored}; the next `assay upload --spool {spool}` sends it"),
                }
            }
            Some((Err(problem), _)) => format!("{stored}, and the upload is not kept ({problem:#})"),
            None if is_unknown => format!("{stored}; sending the report again stores it once"),
            None => stored.to_owned(),
        };
        anyhow::Error::new(self.error).context(context)
    }
}

/// The result of sending the uploads of a spool.
pub struct SentWaiting {
    /// How many were sent.
    pub sent: u64,
    /// The last error of an upload that stays in the spool.
    pub failure: Option<UploadError>,
}

/// Sends the uploads of a spool. An upload that the server refuses permanently is set aside. Any other upload that
/// fails stays, and the next one is sent unless it would fail for the same reason.
pub fn send_waiting(
    progress: &dyn Progress,
    server: &Server,
    spool: &Spool,
    any_key: bool,
    backoff: &mut Backoff,
) -> anyhow::Result<SentWaiting> {
    let key = server.key_identifier();
    let with = SentWith { key: &key, any_key };
    let (mut sent, mut of_other_keys, mut failure) = (0_u64, 0_u64, None);
    for path in spool.entries()? {
        let entry = match spool.claim(&path, with) {
            Ok(Claim::Entry(entry)) => entry,
            Ok(Claim::Taken) => continue,
            Ok(Claim::OfAnotherKey) => {
                of_other_keys += 1;
                continue;
            }
            Err(problem) => {
                progress.note(&format!(
                    "warning: an upload of the spool cannot be read, and stays: {problem:#}"
                ));
                continue;
            }
        };
        let name = entry.name();
        let done = match send_waiting_body(progress, server, &entry.body, backoff) {
            Ok(_) => {
                progress.note(&format!("sent {name}, which an earlier upload had kept"));
                sent += 1;
                entry.remove()
            }
            Err(error)
                if error.is_the_reports_fault()
                    || (entry.is_of_this_key && error.is_forbidden_to_the_key()) =>
            {
                entry.set_aside().map(|name| {
                    progress.note(&format!(
                        "warning: an earlier upload was refused, and is kept as {name}: {error}"
                    ));
                })
            }
            Err(error) => {
                progress.note(&format!("warning: {name} is not sent, and stays: {error}"));
                let is_last = error.concerns_every_report();
                failure = Some(error);
                if is_last {
                    break;
                }
                Ok(())
            }
        };
        if let Err(problem) = done {
            progress.note(&format!("warning: the upload stays in the spool: {problem:#}"));
        }
    }
    if of_other_keys > 0 {
        progress.note(&format!(
            "{} in {} for another key; to send with the key of this job, if it is of the same project: `assay upload --spool {} --any-key`",
            match of_other_keys {
                1 => "1 upload waits".to_owned(),
                count => format!("{count} uploads wait"),
            },
            spool.name(),
            output::shell_word(&spool.name()),
        ));
    }
    Ok(SentWaiting { sent, failure })
}

/// Sends a waiting body. An error that may be this body's alone is not retried, because the retries would take the
/// time of the others. The next job sends the body again.
fn send_waiting_body(
    progress: &dyn Progress,
    server: &Server,
    body: &Body,
    backoff: &mut Backoff,
) -> Result<Value, UploadError> {
    let sent = retry::until_expired(progress, backoff, "not sent yet", || {
        match send_once(progress, server, body) {
            Err(error) if error.concerns_every_report() => Err(error),
            sent => Ok(sent),
        }
    });
    sent.flatten()
}

/// Sends a body until it is stored or refused, or the time is over.
pub fn send_body(
    progress: &dyn Progress,
    server: &Server,
    body: &Body,
    backoff: &mut Backoff,
) -> Result<Value, NotSent> {
    // The answer of an earlier attempt than the last one may be lost, too.
    let mut may_be_stored = false;
    let sent = retry::until_expired(progress, backoff, "not sent yet", || {
        send_once(progress, server, body).inspect_err(|error| may_be_stored |= error.may_be_stored())
    });
    sent.map_err(|error| NotSent { error, may_be_stored })
}

/// Sends a body once.
fn send_once(progress: &dyn Progress, server: &Server, body: &Body) -> Result<Value, UploadError> {
    let length = u64::try_from(body.bytes.len()).unwrap_or(u64::MAX);
    server.send(body, &*progress.begin(Work::Send(length)))
}
