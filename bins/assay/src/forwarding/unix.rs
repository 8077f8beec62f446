//! Signals of Unix.

use std::{
    fs, io,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use signal_hook::{
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2},
    flag::register_conditional_default,
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
    low_level::siginfo::{Cause, Origin},
};

use super::{Ended, Place};

/// The signals with which CI services, shells and people end or query a command.
const FORWARDED: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Those that end a program.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
/// The time that a command has to end by itself after its limit.
const GRACE: Duration = Duration::from_secs(2);
/// The interval in which a command with a limit is looked at.
const INTERVAL: Duration = Duration::from_millis(20);

/// Whether signals have their default effect. The handlers of the first command serve all later ones.
static HAS_ENDED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Forwards signals to commands until it is dropped. Afterwards they have their default effect. Signals that were ignored at the start stay ignored, also by the command. `nohup` and the background jobs of a shell expect that.
pub(crate) struct Forwarding {
    signals: SignalsInfo<WithOrigin>,
    /// Whether signals have their default effect.
    has_ended: Arc<AtomicBool>,
    /// The first signal to end.
    ending: Option<i32>,
}

impl Forwarding {
    /// Starts to handle the signals.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let is_first = HAS_ENDED.get().is_none();
        let has_ended = Arc::clone(HAS_ENDED.get_or_init(Arc::default));
        has_ended.store(false, Ordering::Relaxed);
        // A handler would give the signal its default effect in the command.
        let ignored = ignored_signals();
        let handled = || {
            FORWARDED
                .into_iter()
                .filter(|signal| ignored & mask(*signal) == 0)
        };
        for signal in handled().filter(|_| is_first) {
            register_conditional_default(signal, Arc::clone(&has_ended))?;
        }
        // The system reports the end of the command by a signal, too.
        let signals = SignalsInfo::new(handled().chain([SIGCHLD]))?;
        Ok(Self {
            signals,
            has_ended,
            ending: None,
        })
    }

    /// Runs a command and forwards signals to it until it has ended.
    pub(crate) fn run(&mut self, command: &mut Command, place: Place) -> io::Result<Ended> {
        let limit = match place {
            Place::Terminal => None,
            Place::Group(limit) => {
                command.process_group(0).stdin(Stdio::null());
                limit
            }
        };
        let early: Vec<Origin> = self.signals.pending().collect();
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        for origin in &early {
            self.forward(pid, place, origin);
        }
        let limit = limit.map(|limit| Instant::now() + limit);
        let mut ended_at: Option<Instant> = None;
        // The status is not taken here, so that the process id cannot be reused while signals are forwarded to it.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error is found again below.
        while matches!(waitid(WaitId::Pid(pid), options), Ok(None)) {
            let origins: Vec<Origin> = match limit {
                None => self.signals.wait().collect(),
                Some(_) => {
                    thread::sleep(INTERVAL);
                    self.signals.pending().collect()
                }
            };
            for origin in &origins {
                self.forward(pid, place, origin);
            }
            let now = Instant::now();
            match (limit, ended_at) {
                (Some(limit), None) if now >= limit => {
                    ended_at = Some(now);
                    end_group(pid, Signal::TERM);
                }
                (_, Some(ended)) if now >= ended + GRACE => end_group(pid, Signal::KILL),
                (_, Some(_) | None) => {}
            }
        }
        if ended_at.is_some() {
            // Its own children may have ignored the first signal.
            end_group(pid, Signal::KILL);
        }
        Ok(Ended {
            status: child.wait()?,
            timed_out: ended_at.is_some(),
            signal: self.ending,
        })
    }

    fn forward(&mut self, pid: Pid, place: Place, origin: &Origin) {
        if origin.signal == SIGCHLD {
            return;
        }
        if ENDING.contains(&origin.signal) {
            self.ending = self.ending.or(Some(origin.signal));
        }
        let Some(signal) = Signal::from_named_raw(origin.signal) else {
            return;
        };
        match place {
            // A terminal also sends Ctrl-C and similar signals to the command, which would get them twice.
            Place::Terminal if matches!(origin.cause, Cause::Kernel) => {}
            // A process that has just ended needs no signal.
            Place::Terminal => _ = kill_process(pid, signal),
            Place::Group(_) => end_group(pid, signal),
        }
    }
}

/// Sends a signal to a command's process group. One that has just ended needs none.
fn end_group(pid: Pid, signal: Signal) {
    let _ = kill_process_group(pid, signal);
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }
}

/// The signal that ended a command.
pub(crate) fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// The signals that this process ignores, as a sum of their masks. Only Linux reports them. Elsewhere the sum is 0.
fn ignored_signals() -> u64 {
    fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| ignored_in(&status))
        .unwrap_or(0)
}

/// The ignored signals in the text of `/proc/self/status`.
fn ignored_in(status: &str) -> Option<u64> {
    let masks = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(masks.trim(), 16).ok()
}

/// The mask of a signal: signal 1 is the lowest bit.
const fn mask(signal: i32) -> u64 {
    1 << (signal - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ignored_signals_are_read_from_the_status_of_a_process() {
        let status =
            "Name:\tassay\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001007\nSigCgt:\t0000000000000010\n";
        let ignored = ignored_in(status).unwrap();
        assert_eq!(
            FORWARDED.map(|signal| ignored & mask(signal) != 0),
            [true, true, true, false, false, false]
        );
        assert_eq!(ignored_in("Name:\tassay\n"), None);
    }
}
