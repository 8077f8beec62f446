//! Windows has no signals: the console sends Ctrl-C to every program in it, also to the command.

use std::{
    io,
    process::{Child, Command, ExitStatus},
};

/// Starts commands.
pub(crate) struct Forwarding;

impl Forwarding {
    /// Does nothing.
    pub(crate) fn start() -> anyhow::Result<Self> {
        Ok(Self)
    }

    /// Starts the command. The caller waits for it.
    pub(crate) fn run(self, command: &mut Command) -> io::Result<Child> {
        command.spawn()
    }
}

/// The signal that ended a command.
pub(crate) const fn signal_of(_: ExitStatus) -> Option<i32> {
    None
}
