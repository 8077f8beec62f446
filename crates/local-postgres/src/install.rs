//! Installs Postgres with the system's package manager.

use std::{
    ffi::OsStr,
    fmt, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::ClusterError;

/// Each package manager with the arguments of the commands that install Postgres.
const MANAGERS: &[(&str, &[&[&str]])] = &[
    (
        "apt-get",
        &[
            &["update"],
            &["install", "-y", "--no-install-recommends", "postgresql"],
        ],
    ),
    ("dnf", &[&["install", "-y", "postgresql-server"]]),
    ("apk", &[&["add", "postgresql"]]),
    ("brew", &[&["install", "postgresql@17"]]),
];

/// The commands that install Postgres on this system. `Display` writes them for a person to read or type.
#[derive(Debug, Clone)]
pub struct Installer {
    program: PathBuf,
    commands: &'static [&'static [&'static str]],
    sudo: Option<PathBuf>,
}

impl Installer {
    /// The first known package manager on `PATH`.
    pub fn find(path: Option<&OsStr>) -> Option<Self> {
        MANAGERS.iter().find_map(|(name, commands)| {
            let needs_root = *name != "brew" && !rustix::process::geteuid().is_root();
            Some(Self {
                program: on_path(path, name)?,
                commands,
                sudo: if needs_root { on_path(path, "sudo") } else { None },
            })
        })
    }

    /// Whether it runs without `sudo`, as root.
    pub fn is_root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    /// Installs Postgres. The package manager's output goes to this program's standard error. `sudo` may ask for a
    /// password only on a terminal.
    pub fn run(&self, is_terminal: bool) -> Result<(), ClusterError> {
        for arguments in self.commands {
            let mut command = match &self.sudo {
                Some(sudo) => {
                    let mut command = Command::new(sudo);
                    if !is_terminal {
                        command.arg("-n");
                    }
                    command.arg(&self.program);
                    command
                }
                None => Command::new(&self.program),
            };
            let ended = command
                .args(*arguments)
                .env("DEBIAN_FRONTEND", "noninteractive")
                .stdin(Stdio::null())
                .stdout(Stdio::from(std::io::stderr()))
                .status()
                .map_err(|source| ClusterError::io("run", &self.program, source))?;
            if !ended.success() {
                return Err(ClusterError::Program {
                    program: "the package manager",
                    status: ended,
                    output: format!("`{self}`"),
                });
            }
        }
        Ok(())
    }
}

impl fmt::Display for Installer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sudo = if self.sudo.is_some() { "sudo " } else { "" };
        let program = self.program.file_name().unwrap_or_default().to_string_lossy();
        for (index, arguments) in self.commands.iter().enumerate() {
            let and = if index == 0 { "" } else { " && " };
            write!(f, "{and}{sudo}{program} {}", arguments.join(" "))?;
        }
        Ok(())
    }
}

fn on_path(path: Option<&OsStr>, program: &str) -> Option<PathBuf> {
    std::env::split_paths(path?)
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_commands_are_printed_as_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("apt-get");
        fs::write(&file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let installer = Installer::find(Some(dir.path().as_os_str())).unwrap();
        assert_eq!(
            installer.to_string(),
            "apt-get update && apt-get install -y --no-install-recommends postgresql"
        );
        installer.run(false).unwrap();
        assert!(Installer::find(Some(OsStr::new("/nonexistent"))).is_none());
    }

    #[test]
    fn a_failing_package_manager_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("apk");
        fs::write(&file, "#!/bin/sh\nexit 3\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let installer = Installer::find(Some(dir.path().as_os_str())).unwrap();
        let error = installer.run(false).unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }
}
