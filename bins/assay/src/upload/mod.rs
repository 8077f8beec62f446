//! Sending reports to a server's ingest listener: the body, the request with its retries, and the spool.

pub(crate) mod address;
pub(crate) mod annotation;
pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod flags;
pub(crate) mod sending;
pub(crate) mod server;
pub(crate) mod spool;
