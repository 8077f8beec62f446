//! Attempts to deliver messages.

use assay_domain::{
    store::{Attempt, DueMessage, MessageKey, Outbox, OutboxProject, Store, StoreError},
    timestamp::{DAY_MS, Timestamp},
};

use super::{Notifier, PassReport, of_json};
use crate::{Outgoing, SendError, Target, content::bounded};

/// The first pause after a failed attempt, in milliseconds. Each is twice as long as the one before.
const FIRST_PAUSE_MS: i64 = 5_000;
/// The longest pause, in milliseconds.
const LONGEST_PAUSE_MS: i64 = 60 * 60_000;
/// Longest reason of a failed attempt, in characters.
const REASON_CHARS: usize = 300;
/// Most messages to one target about one project in a pass.
const MOST_AT_ONCE: usize = 20;

impl<S: Store + Outbox> Notifier<'_, S> {
    /// Sends the due messages of a project to a target, in their order. Returns false if the target did not take one.
    pub(super) fn deliver(
        &self,
        project: &OutboxProject,
        target: &Target,
        report: &mut PassReport,
        clock: &dyn Fn() -> Timestamp,
    ) -> Result<bool, StoreError> {
        for _ in 0..MOST_AT_ONCE {
            let Some(message) = self.store.due(project.project.id, &target.name, clock())? else {
                return Ok(true);
            };
            let key = MessageKey {
                project: project.project.id,
                target: &target.name,
                number: message.number,
            };
            let outcome = self.attempt(target, message, clock);
            match &outcome {
                Attempt::Delivered { .. } => report.delivered += 1,
                Attempt::Failed { reason, next } => {
                    report.failed += 1;
                    let name = &target.name;
                    match next {
                        Some(_) => log::warn!("{name:?} did not take a message: {reason}"),
                        None => log::error!(
                            "{name:?} did not take a message for a day, and it is given up: {reason}"
                        ),
                    }
                }
            }
            self.store.note_attempt(key, &outcome, clock())?;
            if matches!(outcome, Attempt::Failed { .. }) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn attempt(&self, target: &Target, message: DueMessage, clock: &dyn Fn() -> Timestamp) -> Attempt {
        let sent = of_json(&message.content)
            .map_err(|error| SendError::new(format!("its content cannot be read: {error}")))
            .and_then(|content| {
                target.channel.send(&Outgoing {
                    id: message.id,
                    at: message.created_at,
                    now: clock(),
                    content: &content,
                    thread: message.thread,
                })
            });
        match sent {
            Ok(receipt) => Attempt::Delivered { receipt },
            Err(error) => {
                let pause = pause(message.attempts, (self.jitter)()).max(wanted_pause(&error));
                let next = clock().plus_ms(pause);
                // A restart tries it again, until it is dropped.
                let is_in_time = next.since_ms(message.created_at) < DAY_MS;
                Attempt::Failed {
                    // It may have words of the target.
                    reason: bounded(&error.reason, REASON_CHARS),
                    next: is_in_time.then_some(next),
                }
            }
        }
    }
}

/// The pause after an attempt that failed: between half and the whole of an exponential backoff, in milliseconds.
#[expect(clippy::as_conversions, reason = "an hour in milliseconds fits both types")]
fn pause(attempts: u32, jitter: f64) -> i64 {
    let whole = 2_i64
        .checked_pow(attempts)
        .and_then(|factor| factor.checked_mul(FIRST_PAUSE_MS))
        .map_or(LONGEST_PAUSE_MS, |pause| pause.min(LONGEST_PAUSE_MS));
    let half = whole / 2;
    half + (half as f64 * jitter.clamp(0.0, 1.0)) as i64
}

/// The pause that a target wants, in milliseconds.
fn wanted_pause(error: &SendError) -> i64 {
    error.retry_after.map_or(0, |wanted| {
        i64::try_from(wanted.as_millis())
            .unwrap_or(LONGEST_PAUSE_MS)
            .min(LONGEST_PAUSE_MS)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_target_may_want_a_longer_pause_of_at_most_an_hour() {
        let wanted = |seconds: u64| SendError {
            retry_after: Some(Duration::from_secs(seconds)),
            ..SendError::new(String::new())
        };
        assert_eq!(wanted_pause(&wanted(120)), 120_000);
        assert_eq!(wanted_pause(&wanted(u64::MAX)), LONGEST_PAUSE_MS);
        assert_eq!(wanted_pause(&SendError::new(String::new())), 0);
    }

    #[test]
    fn pauses_grow_to_an_hour_and_vary_by_half() {
        assert_eq!((pause(0, 0.0), pause(0, 1.0)), (2_500, 5_000));
        assert_eq!((pause(3, 0.0), pause(3, 1.0)), (20_000, 40_000));
        for attempts in [10, 62, 63, u32::MAX] {
            assert_eq!(
                (pause(attempts, 0.0), pause(attempts, 1.0)),
                (1_800_000, 3_600_000)
            );
        }
    }
}
