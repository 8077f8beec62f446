//! Signals of Unix.

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    process::{Child, Command, ExitStatus},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::{
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2},
    flag::register_conditional_default,
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
    low_level::siginfo::{Cause, Origin},
};

/// The signals with which CI services, shells and people end or query a command.
const FORWARDED: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Whether signals have their default effect. The handlers of the first command serve all later ones.
static HAS_ENDED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Forwards signals to a command from its start to its end. Afterwards they have their default effect. Signals that
/// were ignored at the start stay ignored, also by the command. `nohup` and the background jobs of a shell expect that.
pub(crate) struct Forwarding {
    signals: SignalsInfo<WithOrigin>,
    /// Whether signals have their default effect.
    has_ended: Arc<AtomicBool>,
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
        Ok(Self { signals, has_ended })
    }

    /// Starts the command and forwards signals to it until it has ended. The caller still has to take its status.
    pub(crate) fn run(mut self, command: &mut Command) -> std::io::Result<Child> {
        let early: Vec<Origin> = self.signals.pending().collect();
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        for origin in &early {
            forward(pid, origin);
        }
        // The status is not taken here, so that the process id cannot be reused while signals are forwarded to it.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // The caller finds an error again when it takes the status.
        while matches!(waitid(WaitId::Pid(pid), options), Ok(None)) {
            for origin in self.signals.wait() {
                // A terminal also sends Ctrl-C and similar signals to the command, which would get them twice.
                if !matches!(origin.cause, Cause::Kernel) {
                    forward(pid, &origin);
                }
            }
        }
        Ok(child)
    }
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

fn forward(pid: Pid, origin: &Origin) {
    if origin.signal == SIGCHLD {
        return;
    }
    if let Some(signal) = Signal::from_named_raw(origin.signal) {
        // A process that has just ended needs no signal.
        let _ = kill_process(pid, signal);
    }
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
