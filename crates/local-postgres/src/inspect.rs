//! Inspects a private cluster without starting it.

use std::path::{Path, PathBuf};

use crate::{ClusterError, binaries::Binaries, layout::Layout, settings::Settings};

/// The state of a private cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterState {
    /// It exists. It may be running or stopped.
    Cluster {
        /// Its folder.
        base: PathBuf,
    },
    /// It does not exist. These programs would create it.
    Nothing {
        /// The folder of Postgres' programs.
        programs: PathBuf,
        /// Their major version.
        version: u32,
    },
}

/// The state of the cluster in `dir`. Fails if there is none and none could be created.
pub fn inspect(dir: &Path, settings: &Settings) -> Result<ClusterState, ClusterError> {
    if dir.is_dir() {
        let layout = Layout::of(dir)?;
        if layout.data().exists() {
            return Ok(ClusterState::Cluster {
                base: layout.base().to_path_buf(),
            });
        }
    }
    let binaries = Binaries::find(settings, dir)?;
    Ok(ClusterState::Nothing {
        programs: binaries.folder().to_path_buf(),
        version: binaries.major(),
    })
}
