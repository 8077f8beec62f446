//! Reads of data, one file a noun, and the rows that an import shares with them.

pub(crate) mod attempt;
pub(crate) mod branch;
pub(crate) mod browser;
pub(crate) mod daily_counts;
pub(crate) mod failed_run;
pub(crate) mod history;
pub(crate) mod history_cache;
pub(crate) mod observation;
pub(crate) mod pack;
pub(crate) mod revision;
pub(crate) mod run;
pub(crate) mod run_detail;
pub(crate) mod run_list;
pub(crate) mod run_parts;
pub(crate) mod shard;
pub(crate) mod shared_values;
pub(crate) mod signature;
pub(crate) mod signature_counts;
pub(crate) mod signature_detail;
pub(crate) mod signature_list;
pub(crate) mod stored_facts;
pub(crate) mod test;
pub(crate) mod test_name_cache;
pub(crate) mod test_summary;
pub(crate) mod text_counts;
pub(crate) mod verdict;
