//! The user's flags of an import.

use assay_domain::{
    recording::{RunContext, ShardIndex},
    timestamp::Timestamp,
};

/// The user's flags of an import. A value that is none comes from CI's variables, the report or a default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    /// The key that all shards of the logical run share.
    pub run_key: Option<String>,
    /// The shard's place among its siblings.
    pub shard: Option<ShardIndex>,
    /// The run's context.
    pub context: RunContext,
    /// When the run started. Every other time of the report moves with it.
    pub started_at: Option<Timestamp>,
    /// How long the run took, in milliseconds.
    pub duration_ms: Option<u64>,
}
