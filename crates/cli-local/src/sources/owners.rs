//! The owners file of a checkout.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use assay_domain::owners::{OwnersFile, PLACES};

use crate::sources::{checkout::sources, git::git};

/// The root of the repository that contains this folder: the nearest folder with `.git`.
pub fn repository(folder: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).ok()?;
    let root = folder.ancestors().find(|folder| folder.join(".git").exists());
    root.map(Path::to_path_buf)
}

/// The owners file of the repository that contains this folder, or of the folder itself if it is in no repository. A
/// repository without an owners file gets an empty one. None if neither is found. Also returns warnings.
pub fn owners(folder: &Path) -> anyhow::Result<(Option<OwnersFile>, Vec<String>)> {
    let repository = repository(folder);
    let root = repository.as_deref().unwrap_or(folder);
    let Some(path) = PLACES.into_iter().find(|place| root.join(place).is_file()) else {
        return Ok((repository.map(|_| OwnersFile::default()), Vec::new()));
    };
    let text = match read_at_most(root, path, OwnersFile::MOST_TEXT_BYTES)? {
        Ok(text) => text,
        Err(too_large) => {
            let warning = format!("{too_large}; tests have the owners that were sent before");
            return Ok((None, vec![warning]));
        }
    };
    let mut warnings = Vec::new();
    let mut files = tracked(root).unwrap_or_else(|| sources(root)).join("\n");
    if files.len() > OwnersFile::MOST_FILES_BYTES {
        let mib = OwnersFile::MOST_FILES_BYTES >> 20;
        warnings.push(format!(
            "the checkout's file names exceed {mib} MiB, so {path} is applied to the paths of reports as they are"
        ));
        files.clear();
    }
    let file = OwnersFile {
        path: path.to_owned(),
        text,
        files,
    };
    Ok((Some(file), warnings))
}

/// The text of a file of the checkout, or the warning that it is too large.
pub(crate) fn read_at_most(root: &Path, path: &str, most: usize) -> anyhow::Result<Result<String, String>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    fs::File::open(root.join(path))
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .with_context(|| format!("{path} cannot be read"))?;
    if bytes.len() > most {
        return Ok(Err(format!(
            "{path} has more than {} KiB and is not sent",
            most >> 10
        )));
    }
    Ok(Ok(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The files that git tracks in the checkout of this folder, relative to its root; none if git does not say.
pub fn tracked(folder: &Path) -> Option<Vec<String>> {
    let listed = git(folder, &["ls-files", "-z", "--full-name", ":/"]).ok()?;
    let names = listed.split('\0').filter(|name| !name.is_empty());
    // A list has one path per line.
    let names: Vec<String> = names
        .filter(|name| !name.contains('\n'))
        .map(str::to_owned)
        .collect();
    (!names.is_empty()).then_some(names)
}
