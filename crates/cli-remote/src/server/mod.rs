//! A client of a server: [`ingest`] sends reports and decisions to the ingest listener, [`read_api`] asks the read API.
//!
//! [`sending`] retries an upload and empties the [`spool`], where uploads wait that could not be sent. [`address`] has what
//! both clients need: where the server is, and the key. [`installation`] asks without a key what an address serves.

pub mod address;
pub mod annotation;
pub mod answer;
pub mod body;
pub mod http;
pub mod ingest;
pub mod installation;
pub mod job_token;
pub mod login;
pub mod read_api;
pub mod sending;
pub mod spool;
