//! One call of a tool, and what all tools share.

use std::ops::RangeInclusive;

use assay_access::directory::ReadDirectory;
use assay_answers::links::PublicPages;
use assay_domain::{owners::Ownership, project::Caller, store::Store, timestamp::Timestamp};
use assay_flakiness::Diagnose;
use serde_json::{Value, json};

use crate::arguments::Arguments;

/// The range of page numbers.
pub(super) const PAGES: RangeInclusive<i64> = 1..=100_000;

/// One call of a tool by an authenticated caller.
pub(crate) struct Call<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) directory: &'a ReadDirectory,
    pub(crate) engine: &'a dyn Diagnose,
    pub(crate) pages: Option<&'a PublicPages>,
    pub(crate) caller: Caller,
    pub(crate) now: Timestamp,
    pub(crate) arguments: Arguments,
}

/// A probability or a rate with three digits. More digits would exceed their precision.
pub(super) fn rounded(share: f64) -> Value {
    json!((share * 1_000.0).round() / 1_000.0)
}

/// The owners of a test; null without an owner.
pub(super) fn owners(ownership: &Ownership) -> Value {
    match (ownership.owners.is_empty(), ownership.owners_ambiguous) {
        (_, true) => json!("unclear: several files of this name have different owners"),
        (true, false) => Value::Null,
        (false, false) => json!(ownership.owners),
    }
}

/// A tool's arguments, each with its JSON schema.
pub(super) type Properties = Vec<(&'static str, Value)>;
