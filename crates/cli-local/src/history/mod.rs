//! Old runs on this machine: the reports in downloaded archives ([`archive`]), trees of builds ([`tree`]), and what the
//! runs say ([`csv`], [`words`]).

pub mod archive;
pub mod csv;
pub mod tree;
pub mod words;
