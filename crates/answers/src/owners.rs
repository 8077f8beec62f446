//! The owners of a project's tests.

use std::sync::Arc;

pub use assay_domain::owners::{Lookup, Owners};
use assay_domain::{
    store::{SharedKey, Snapshot, StoreError, shared},
    timestamp::Timestamp,
    verdict::ENGINE_WINDOW_DAYS,
};

/// The owners by the project's owners file; nothing is owned without one.
pub fn owners(snapshot: &mut dyn Snapshot, now: Timestamp) -> Result<Arc<Owners>, StoreError> {
    in_window(snapshot, (now.plus_days(-ENGINE_WINDOW_DAYS), now))
}

/// The same, kept with the values of the window that the caller has read.
pub(crate) fn in_window(
    snapshot: &mut dyn Snapshot,
    window: (Timestamp, Timestamp),
) -> Result<Arc<Owners>, StoreError> {
    let key = SharedKey::of_window("owners");
    shared(snapshot, key, window, |snapshot| {
        let owners = match snapshot.owners_file()? {
            Some(file) => Owners::of_file(&file),
            None => Owners::default(),
        };
        let bytes = owners.bytes();
        Ok((owners, bytes))
    })
}
