//! The user that Postgres runs as. Postgres refuses to run as root.

use std::{
    fs,
    os::unix::fs::{MetadataExt, chown},
    os::unix::process::CommandExt,
    path::Path,
    process::Command,
};

use crate::ClusterError;

/// A user's ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Whether it differs from the user of this program.
    foreign: bool,
}

impl Account {
    /// This program's own user, or the user `postgres` if this program runs as root.
    pub(crate) fn of_server() -> Result<Self, ClusterError> {
        let uid = rustix::process::geteuid().as_raw();
        if uid != 0 {
            return Ok(Self {
                uid,
                gid: rustix::process::getegid().as_raw(),
                foreign: false,
            });
        }
        Self::for_root(&fs::read_to_string("/etc/passwd").unwrap_or_default())
    }

    /// The user for Postgres if this program runs as root. `nobody` is not used: other services run as that user, and
    /// the cluster trusts every process of its own user.
    fn for_root(users: &str) -> Result<Self, ClusterError> {
        Self::listed(users, "postgres").ok_or(ClusterError::NoAccount)
    }

    /// The user of this name in a passwd file.
    fn listed(users: &str, name: &str) -> Option<Self> {
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (user, _password) = (fields.next()?, fields.next()?);
            let uid = fields.next()?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            (user == name && uid != 0).then_some(Self {
                uid,
                gid,
                foreign: true,
            })
        })
    }

    /// Whether the user may enter `dir` and every folder above it.
    pub(crate) fn reaches(&self, dir: &Path) -> bool {
        !self.foreign
            || dir.ancestors().all(|folder| {
                fs::metadata(folder).is_ok_and(|meta| {
                    let needed = if meta.uid() == self.uid {
                        0o100
                    } else if meta.gid() == self.gid {
                        0o010
                    } else {
                        0o001
                    };
                    meta.mode() & needed != 0
                })
            })
    }

    /// Whether a file or folder of this owner belongs to this program's user or to the user that Postgres runs as.
    pub(crate) fn owns(&self, owner: u32) -> bool {
        owner == self.uid || owner == rustix::process::geteuid().as_raw()
    }

    /// Changes the owner of a file or folder that this program created.
    pub(crate) fn give_ownership(&self, path: &Path) -> Result<(), ClusterError> {
        if self.foreign {
            chown(path, Some(self.uid), Some(self.gid))
                .map_err(|source| ClusterError::io("change the owner of", path, source))?;
        }
        Ok(())
    }

    /// A command that runs as the user.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if self.foreign {
            command.uid(self.uid).gid(self.gid);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_found_by_name_and_is_never_root() {
        let users = "root:x:0:0::/root:/bin/sh\npostgres2:x:9:9::/:\npostgres:x:101:104::/:/bin/bash\nevil:x:0:0::/:\n";
        let account = Account::listed(users, "postgres").unwrap();
        assert_eq!((account.uid, account.gid), (101, 104));
        assert_eq!(Account::listed(users, "evil"), None);
        assert_eq!(Account::listed(users, "nobody"), None);
    }

    #[test]
    fn root_never_uses_the_account_of_another_service() {
        let users = "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n";
        let error = Account::for_root(users).unwrap_err().to_string();
        assert!(
            error.contains("useradd --system --user-group postgres"),
            "{error}"
        );
        let with = format!("{users}postgres:x:101:104::/:/bin/bash\n");
        assert_eq!(Account::for_root(&with).unwrap().uid, 101);
    }
}
