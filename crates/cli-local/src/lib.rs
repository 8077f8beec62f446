//! Reports and histories on this machine, without a server.
//!
//! [`sources`] finds the files, reads the checkout and has the flags that describe a run. [`offline`] reads them into an
//! [`analysis`], which judges without a database. [`history`] reads old runs that a CI service kept.

pub mod analysis;
pub mod history;
pub mod offline;
pub mod sources;
