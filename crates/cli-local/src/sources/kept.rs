//! Copies of reports that a further run of the command overwrites.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// Reports with their copies.
#[derive(Debug)]
pub struct KeptReports {
    copies: Vec<(PathBuf, PathBuf)>,
}

impl KeptReports {
    /// Copies reports into a folder.
    pub fn keep(files: Vec<PathBuf>, folder: &Path) -> anyhow::Result<Self> {
        let mut copies = Vec::with_capacity(files.len());
        for (number, file) in files.into_iter().enumerate() {
            let copy = folder.join(format!("report-{number}"));
            fs::copy(&file, &copy).with_context(|| file.display().to_string())?;
            copies.push((file, copy));
        }
        Ok(Self { copies })
    }

    /// Puts the reports back. Returns those that could not be written.
    #[must_use]
    pub fn restore(self) -> Vec<(PathBuf, io::Error)> {
        let restored = self.copies.into_iter().map(|(file, copy)| {
            let result = fs::copy(&copy, &file);
            (file, result)
        });
        restored
            .filter_map(|(file, result)| Some((file, result.err()?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_put_back_and_those_that_cannot_be_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["a.xml", "gone/b.xml"].map(|name| folder.path().join(name));
        fs::create_dir(folder.path().join("gone")).unwrap();
        for file in [&one, &other] {
            fs::write(file, "first").unwrap();
        }
        let copies = tempfile::tempdir().unwrap();
        let kept = KeptReports::keep(vec![one.clone(), other.clone()], copies.path()).unwrap();
        fs::write(&one, "rerun").unwrap();
        fs::remove_dir_all(folder.path().join("gone")).unwrap();
        let failed = kept.restore();
        assert_eq!(fs::read_to_string(&one).unwrap(), "first");
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].0, other);
    }
}
