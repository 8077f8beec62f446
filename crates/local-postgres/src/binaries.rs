//! Finds the programs of Postgres.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{ClusterError, install::Installer, settings::Settings};

/// The oldest version that the schema is written for.
const OLDEST: u32 = 15;

/// Folders of packages, each with at most one `*` in one of its parts.
const PACKAGED: &[&str] = &[
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/lib/postgresql*/bin",
    "/usr/libexec/postgresql*",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/opt/homebrew/opt/postgresql/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
    "/usr/local/pgsql/bin",
    "/usr/bin",
];

/// Packages of npm and PyPI with the programs, below a folder of a project.
const OF_PROJECTS: &[&str] = &[
    "node_modules/@embedded-postgres/*/native/bin",
    ".venv/lib/*/site-packages/pgserver/pginstall/bin",
    "venv/lib/*/site-packages/pgserver/pginstall/bin",
];
/// The same beside a folder of `PATH`: an active virtual environment, or `node_modules/.bin`.
const BESIDE_PATH: &[&str] = &[
    "../lib/*/site-packages/pgserver/pginstall/bin",
    "../@embedded-postgres/*/native/bin",
];

/// A folder with `postgres` and `initdb`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binaries {
    folder: PathBuf,
    major: u32,
}

impl Binaries {
    /// Finds the programs: only in `PG_BIN` if it is set, else on `PATH`, then in the folders of packages, newest
    /// first, then in packages of npm and PyPI beside the data, above them, or on `PATH`. Existing data need the version
    /// that wrote them.
    pub(crate) fn find(settings: &Settings, data: &Path) -> Result<Self, ClusterError> {
        let version = fs::read_to_string(data.join("PG_VERSION")).ok();
        let written_by = version.as_deref().map(str::trim);
        let fits = |found: &Self| match written_by {
            Some(version) => version == found.major.to_string(),
            None => found.major >= OLDEST,
        };
        let named_folder = settings
            .pg_bin
            .as_ref()
            .filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = named_folder {
            let binaries = Self::in_folder(folder);
            let major = binaries.as_ref().map(|binaries| binaries.major);
            return binaries.filter(fits).ok_or_else(|| ClusterError::NamedFolder {
                folder: folder.clone(),
                found: major,
                needed: written_by.map_or_else(|| format!("{OLDEST} or newer"), str::to_owned),
            });
        }
        let mut other = None;
        let on_path = || settings.path.iter().flat_map(std::env::split_paths);
        let below = |folder: &Path, place: &str| matching(&folder.join(place).display().to_string());
        let of_projects = data
            .ancestors()
            .flat_map(|folder| OF_PROJECTS.iter().flat_map(move |place| below(folder, place)));
        let beside_path = on_path().flat_map(|folder| {
            let places = BESIDE_PATH.iter();
            places.flat_map(|place| below(&folder, place)).collect::<Vec<_>>()
        });
        let packaged = PACKAGED.iter().flat_map(|place| matching(place));
        for folder in on_path().chain(packaged).chain(of_projects).chain(beside_path) {
            let Some(found) = Self::in_folder(&folder) else {
                continue;
            };
            if fits(&found) {
                return Ok(found);
            }
            other.get_or_insert_with(|| format!("version {} in {}", found.major, found.folder.display()));
        }
        match written_by {
            Some(version) => Err(ClusterError::OtherVersion {
                needed: version.to_owned(),
                data: data.to_path_buf(),
            }),
            None => Err(ClusterError::NotFound {
                found: other,
                install: Installer::find(settings.path.as_deref()).map(|installer| installer.to_string()),
            }),
        }
    }

    /// Their folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Their major version.
    pub(crate) const fn major(&self) -> u32 {
        self.major
    }

    /// The path of one of the programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        if !folder.join("initdb").is_file() {
            return None;
        }
        let answer = Command::new(folder.join("postgres"))
            .arg("--version")
            .output()
            .ok()?;
        let major = major(&String::from_utf8_lossy(&answer.stdout))?;
        Some(Self {
            folder: folder.to_path_buf(),
            major,
        })
    }
}

/// The major version in the output of `postgres --version`: `postgres (PostgreSQL) 15.12 (Debian 15.12-0+deb12u2)`.
fn major(output: &str) -> Option<u32> {
    let version = output.split(") ").nth(1)?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The folders of a pattern with at most one `*`. The highest number in its place comes first, and names without a number
/// come last.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![PathBuf::from(pattern)];
    };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(format!("{parent}/"))
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let number = name.strip_prefix(prefix)?.split('.').next()?.parse().unwrap_or(0);
            Some((number, PathBuf::from(format!("{parent}/{name}{after}"))))
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, folder)| folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_every_packager_writes_them() {
        assert_eq!(
            major("postgres (PostgreSQL) 15.12 (Debian 15.12-0+deb12u2)\n"),
            Some(15)
        );
        assert_eq!(major("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(major("something else"), None);
    }

    #[test]
    fn the_newest_version_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        for version in ["9", "15", "101", "linux-x64"] {
            fs::create_dir_all(dir.path().join(version).join("bin")).unwrap();
        }
        let pattern = format!("{}/*/bin", dir.path().display());
        let names: Vec<_> = matching(&pattern)
            .into_iter()
            .map(|path| path.strip_prefix(dir.path()).unwrap().display().to_string())
            .collect();
        assert_eq!(names, ["101/bin", "15/bin", "9/bin", "linux-x64/bin"]);
    }
}
