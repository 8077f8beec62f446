//! The gate's flags, the stored run that it judges, and the record of its decision.

pub(crate) mod flags;
pub(crate) mod record;
pub(crate) mod stored;
