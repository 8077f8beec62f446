//! Messages about edges: which are sent when, their content, and their delivery.
//!
//! A judgement writes edges to the outbox (`assay_domain::edge`). A pass of the [`Notifier`] goes through four steps,
//! each with its own state in the database, so that a killed program continues where it was:
//!
//! 1. [`settle()`]: an edge becomes certain, or a later judgement takes it back.
//! 2. [`plan()`]: for each target, which settled edges are sent now, and which wait.
//! 3. `compose`: the content of the message, from the stored results.
//! 4. delivery: the message is sent until the target takes it.
//!
//! Nothing here opens a socket. A [`Channel`] does.

mod channel;
mod compose;
mod content;
mod digest;
mod file;
mod notifier;
mod plan;
mod schedule;
mod settle;
mod target;
pub mod text;

pub use channel::{Channel, Outgoing, Receipt, SendError};
pub use compose::{Reader, changes, test_message};
pub use content::{Content, Group, Tone};
pub use digest::digest;
pub use file::{FileChannel, FileFormat};
pub use notifier::{Notifier, PassReport, Preview, Sending};
pub use plan::{Decision, plan};
pub use schedule::{DigestTimes, Every, Period, QuietHours, TimeOfDay, Zone};
pub use settle::{Settlement, settle};
pub use target::{Scope, Target};
