//! The server over the private database of a folder.

use std::{
    ops::{Deref, DerefMut},
    path::Path,
    process::Command,
};

use assay_testkit::{Server, program};

/// A server that starts a Postgres of its own.
pub(crate) struct Private(Server);

impl Private {
    /// Starts it with its working folder in `folder`, and does not wait.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program("assay-server"));
        command.args(arguments).current_dir(folder);
        Self::of(Server::launch(command, &[]))
    }

    /// A server that was started so.
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
        // Ended in order, so that its Postgres ends too.
        if self.lives() {
            self.signal("TERM");
            self.ended();
        }
    }
}
