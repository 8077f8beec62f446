//! Old runs on this machine: the reports in downloaded archives ([`archive`]), trees of builds ([`tree`]), what was sent
//! already ([`state`]), and what the runs say ([`csv`], [`words`]).

pub mod archive;
pub mod csv;
pub mod report;
pub mod state;
pub mod tree;
pub mod words;
