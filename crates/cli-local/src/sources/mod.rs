//! The reports on this machine: [`files`] finds and reads them, [`checkout`] knows the tested sources, and
//! [`report_flags`] has the flags that describe a run, with CI's variables as their defaults.

pub mod checkout;
pub mod ci;
pub mod clocks;
pub mod files;
pub mod git;
pub mod kept;
pub mod owners;
pub mod renames;
pub mod report_flags;
pub mod text;
pub mod values;
pub mod written;

pub use ci::Variables;
