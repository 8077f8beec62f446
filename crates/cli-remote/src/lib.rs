//! What a command line sends to other machines: to a server ([`server`]) and to the code host of a CI job ([`codehost`]).

pub mod codehost;
pub mod history;
pub mod server;
