//! Forwards signals to a command that runs on behalf of this program. The only code that depends on the system.

use std::{process::ExitStatus, time::Duration};

#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{Forwarding, signal_of};
#[cfg(not(unix))]
pub(crate) use windows::{Forwarding, signal_of};

/// The exit status of a shell for a program that a signal ended.
pub(crate) fn code_of(signal: i32) -> u8 {
    u8::try_from(signal.saturating_add(128)).unwrap_or(1)
}

/// Where a command runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// In the terminal and the process group of this program.
    Terminal,
    /// In a process group of its own, without standard input, for at most this time. The group ends with it.
    Group(Option<Duration>),
}

/// The end of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Whether it was ended because its time was over.
    pub(crate) timed_out: bool,
    /// The signal to end that this program got meanwhile.
    pub(crate) signal: Option<i32>,
}
