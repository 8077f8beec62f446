//! The server over the private database of a folder.

use std::{
    ops::{Deref, DerefMut},
    path::Path,
    process::Command,
};

use assay_testkit::{Server, program};

/// A server that starts its own Postgres.
pub(crate) struct Private(Server);

impl Private {
    /// Starts it with the working folder `folder`. Does not wait.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program("assay-server"));
        command.args(arguments).current_dir(folder);
        Self::of(Server::launch(command, &[]))
    }

    /// A server over the private database.
    pub(crate) const fn of(server: Server) -> Self {
        Self(server)
    }
}

impl Deref for Private {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl DerefMut for Private {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.0
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // A regular end also stops its Postgres.
        if self.lives() {
            self.signal("TERM");
            self.ended();
        }
    }
}
