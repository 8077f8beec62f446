//! The user's flags of an import.

use assay_domain::{
    recording::{RunContext, ShardIndex},
    timestamp::Timestamp,
};

use crate::artifacts::ArtifactsUrl;

/// The user's flags of an import. An absent value comes from CI's variables, the report or a default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    /// The key that all shards of the run share.
    pub run_key: Option<String>,
    /// The shard's place among its siblings.
    pub shard: Option<ShardIndex>,
    /// The run's context.
    pub context: RunContext,
    /// The attempt of the command within its job, from 1.
    pub attempt: Option<u32>,
    /// Whether the report takes the place of what is stored for its run and shard.
    pub replace: bool,
    /// The start of the run. Every other time of the report moves with it.
    pub started_at: Option<Timestamp>,
    /// The duration of the run in milliseconds.
    pub duration_ms: Option<u64>,
    /// Where CI keeps the files that the report names.
    pub artifacts_url: Option<ArtifactsUrl>,
}
