//! Forwards signals to a command that runs on behalf of this program.

use std::{
    process::{Child, Command},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2},
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
    low_level::{
        emulate_default_handler,
        siginfo::{Cause, Origin},
    },
};

/// The signals with which CI services, shells and people end or query a command.
const FORWARDED: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Forwards signals to a command from its start to its end.
pub(crate) struct Forwarding {
    phase: Arc<Mutex<Phase>>,
}

/// The effect of a signal.
enum Phase {
    /// The command is about to start: signals are forwarded once it runs.
    Starting(Vec<i32>),
    /// Signals are forwarded to this process, which has not been waited for.
    Running(Pid),
    /// Signals have their default effect.
    Ended,
}

impl Forwarding {
    /// Starts to handle the signals.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let mut signals = SignalsInfo::<WithOrigin>::new(FORWARDED)?;
        let phase = Arc::new(Mutex::new(Phase::Starting(Vec::new())));
        let shared = Arc::clone(&phase);
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for origin in signals.forever() {
                handle(
                    &mut shared.lock().unwrap_or_else(PoisonError::into_inner),
                    &origin,
                );
            }
        })?;
        Ok(Self { phase })
    }

    /// Starts the command, and forwards signals to it from then on.
    pub(crate) fn spawn(&self, command: &mut Command) -> std::io::Result<Child> {
        // Signals that arrive meanwhile are handled when the command runs. A terminal sends its signals to both.
        let mut phase = self.lock();
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        if let Phase::Starting(early) = std::mem::replace(&mut *phase, Phase::Running(pid)) {
            for signal in early {
                forward(pid, signal);
            }
        }
        Ok(child)
    }

    /// Waits until the command has ended. The caller still has to take its status.
    pub(crate) fn until_ended(self, child: &Child) -> anyhow::Result<()> {
        let pid = Pid::from_child(child);
        // The status is not taken here, so that the process id cannot be reused while signals are forwarded to it.
        let ended = loop {
            match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(rustix::io::Errno::INTR) => {}
                ended => break ended,
            }
        };
        *self.lock() = Phase::Ended;
        ended?;
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        *self.lock() = Phase::Ended;
    }
}

fn handle(phase: &mut Phase, origin: &Origin) {
    // A terminal also sends Ctrl-C and similar signals to the command, which would get them twice.
    let is_of_the_terminal = matches!(origin.cause, Cause::Kernel);
    match phase {
        Phase::Starting(signals) => signals.push(origin.signal),
        Phase::Running(_) if is_of_the_terminal => {}
        Phase::Running(pid) => forward(*pid, origin.signal),
        Phase::Ended => {
            // If this fails, the program runs to its end.
            let _ = emulate_default_handler(origin.signal);
        }
    }
}

fn forward(pid: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        // A process that has just ended needs no signal.
        let _ = kill_process(pid, signal);
    }
}
