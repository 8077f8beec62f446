//! Advice on what to do next, for errors whose message has none.

use assay_domain::store::StoreError;
use assay_local_postgres::ClusterError;

const UNREACHABLE: &str = "see whether Postgres runs and ASSAY_DATABASE_URL (or --database-url) names it: postgresql://USER:PASSWORD@HOST/DATABASE";
const CROWDED: &str = "let fewer jobs import at a time, or raise max_connections or the role's CONNECTION LIMIT in Postgres; `assay-admin import` waits longer, and --retry-for says how long";
const UNENCRYPTED: &str = "this build connects to Postgres without encryption only; \"Encrypted connections\" in docs/deployment.md explains how to build one with it";

/// Advice for an error and its causes; `None` if the messages already contain it or no advice is known.
pub(crate) fn of(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|cause| {
        if let Some(StoreError::Unreachable(why)) = cause.downcast_ref() {
            return Some(of_unreachable(why.as_ref()));
        }
        cause.downcast_ref().and_then(ClusterError::advice)
    })
}

/// Advice for an unreachable database.
pub(crate) fn of_unreachable(why: &(dyn std::error::Error + 'static)) -> &'static str {
    // The message of a libpq without OpenSSL when `sslmode` requires it.
    if why.to_string().contains("SSL support is not compiled in") {
        UNENCRYPTED
    } else if assay_repository::is_transient(why) {
        CROWDED
    } else {
        UNREACHABLE
    }
}
