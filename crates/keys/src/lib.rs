//! The text of a key: its form, its creation, its hash, and how long a read key works.

pub mod key;
pub mod lifetime;
