//! Windows has no signals: the console sends Ctrl-C to every program in it, also to the command.

use std::{
    io,
    process::{Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{Ended, Place};

/// The interval in which a command with a limit is looked at.
const INTERVAL: Duration = Duration::from_millis(20);

/// Starts commands.
pub(crate) struct Forwarding;

impl Forwarding {
    /// Does nothing.
    pub(crate) fn start() -> anyhow::Result<Self> {
        Ok(Self)
    }

    /// Runs the command.
    pub(crate) fn run(&mut self, command: &mut Command, place: Place) -> io::Result<Ended> {
        let limit = match place {
            Place::Terminal => None,
            Place::Group(limit) => {
                command.stdin(Stdio::null());
                limit
            }
        };
        let mut child = command.spawn()?;
        let mut timed_out = false;
        if let Some(ends) = limit.map(|limit| Instant::now() + limit) {
            while child.try_wait()?.is_none() {
                if Instant::now() >= ends {
                    timed_out = true;
                    // Its children, too.
                    let _ = Command::new("taskkill")
                        .args(["/T", "/F", "/PID", &child.id().to_string()])
                        .output();
                    child.kill()?;
                }
                thread::sleep(INTERVAL);
            }
        }
        Ok(Ended {
            status: child.wait()?,
            timed_out,
            signal: None,
        })
    }
}

/// The signal that ended a command.
pub(crate) const fn signal_of(_: ExitStatus) -> Option<i32> {
    None
}
