//! From a test's results and the model's probabilities to a verdict with its evidence.

pub(crate) mod chain_counts;
pub(crate) mod evidence;
pub(crate) mod explanation;
pub(crate) mod findings;
pub(crate) mod live_chains;
pub(crate) mod run_counts;
pub(crate) mod signals;
pub(crate) mod status;
pub(crate) mod streak;
pub(crate) mod test_counts;
pub(crate) mod unrelated_branches;
