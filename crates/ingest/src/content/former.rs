//! The content hash before [`assay_domain::recording::CONTENT_VERSION`] 2: 32 bytes over the debug form.
//!
//! It is kept so that a report which an older program stored is still recognized as the same. A test holds one such
//! hash. If a change of a type's debug form breaks that test, write the old form out here. Delete this module when no
//! retention reaches back to such programs.

use std::fmt::{self, Write as _};

use assay_domain::{
    recording::{Recording, RunContext},
    timestamp::Timestamp,
};
use sha2::{Digest as _, Sha256};

/// The hash that an older program would have stored.
pub(super) fn hash_of(
    recording: &Recording,
    started_at: Option<Timestamp>,
    duration_ms: Option<i64>,
) -> [u8; 32] {
    let mut hash = Hashing(Sha256::new());
    let _ = write!(
        hash,
        "{:?}",
        (
            &recording.run_key,
            &recording.shard,
            FormerContext(&recording.context),
            started_at,
            duration_ms,
            &recording.state,
            &recording.report_errors,
            &recording.tests,
        )
    );
    hash.0.finalize().into()
}

/// The debug form of a context before it had the address of the CI run.
struct FormerContext<'a>(&'a RunContext);

impl fmt::Debug for FormerContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("branch", &self.0.branch)
            .field("commit_sha", &self.0.commit_sha)
            .field("commit_message", &self.0.commit_message)
            .field("author_name", &self.0.author_name)
            .field("tested_revision", &self.0.tested_revision)
            .field("pull_request_number", &self.0.pull_request_number)
            .field("pull_request_title", &self.0.pull_request_title)
            .field("ci_provider", &self.0.ci_provider)
            .field("suite", &self.0.suite)
            .finish()
    }
}

struct Hashing(Sha256);

impl fmt::Write for Hashing {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}
