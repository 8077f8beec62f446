//! Forwards signals to a command that runs on behalf of this program. The only code that depends on the system.

#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{Forwarding, signal_of};
#[cfg(not(unix))]
pub(crate) use windows::{Forwarding, signal_of};
