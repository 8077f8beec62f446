//! Reading an archive.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use assay_domain::store::{ArchiveContents, RowSource};
use indicatif::ProgressBar;
use sha2::{Digest as _, Sha256};

use super::{FORMAT, Head, MANIFEST, Manifest, NamedFile, UNFINISHED, VERSION, about, file_of, hexadecimal};

/// An archive whose files are those of its manifest.
pub(crate) struct ArchiveReader {
    folder: PathBuf,
    manifest: Manifest,
    progress: ProgressBar,
}

impl ArchiveReader {
    /// Reads the manifest of a folder.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        let (folder_text, path) = (folder.display(), folder.join(MANIFEST));
        ensure!(
            !folder.join(UNFINISHED).exists(),
            "the export in {folder_text} did not finish; run `assay-admin org export` with this folder again"
        );
        ensure!(
            path.exists(),
            "{folder_text} is no archive: it has no {MANIFEST}; name a folder that `assay-admin org export` wrote"
        );
        ensure!(is_plain_file(&path), "{} is no file", path.display());
        let text = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
        let broken = || format!("{} cannot be read; copy the archive again", path.display());
        let head: Head = serde_json::from_str(&text).with_context(broken)?;
        ensure!(
            head.format == FORMAT,
            "{folder_text} is no archive of an organization, but {:?}; name a folder that `assay-admin org export` wrote",
            head.format
        );
        ensure!(
            head.version == VERSION,
            "assay {:?} wrote {folder_text} in version {} of the format, and this is assay {} with version {VERSION}; \
             import it with the version that wrote it",
            head.assay,
            head.version,
            env!("CARGO_PKG_VERSION")
        );
        Ok(Self {
            folder: folder.to_path_buf(),
            manifest: serde_json::from_str(&text).with_context(broken)?,
            progress: ProgressBar::hidden(),
        })
    }

    /// What the archive holds besides the rows.
    pub(crate) fn contents(&self) -> &ArchiveContents {
        &self.manifest.contents
    }

    /// The size of the files.
    pub(crate) fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).sum()
    }

    /// Shows on this bar how many bytes of the files are read from now on.
    pub(crate) fn show(&mut self, progress: ProgressBar) {
        self.progress = progress;
    }

    /// Checks that the file of each table is there and has its checksum.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for table in &self.contents().tables {
            let name = file_of(&table.table);
            let path = self.folder.join(&name);
            let path_text = path.display();
            let Some(expected) = self.manifest.files.iter().find(|file| file.file == name) else {
                bail!(
                    "the manifest in {} has no file for the table {}; export again",
                    self.folder.display(),
                    table.table
                );
            };
            let mut file = self.file(&path)?;
            let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    length => hasher.update(buffer.get(..length).unwrap_or_default()),
                }
            }
            ensure!(
                hexadecimal(hasher) == expected.sha256,
                "{path_text} is damaged: its checksum is not that of the manifest; copy the archive again, or export again"
            );
        }
        Ok(())
    }

    /// A file whose bytes show on the bar.
    fn file(&self, path: &Path) -> io::Result<NamedFile<impl Read + use<>>> {
        if !is_plain_file(path) {
            let link = io::Error::other("it is missing, or no file but a link, a folder or a device");
            return Err(about(path, "read", &link));
        }
        let file = File::open(path).map_err(|error| about(path, "read", &error))?;
        Ok(NamedFile {
            path: path.to_path_buf(),
            inner: self.progress.wrap_read(file),
        })
    }
}

/// Whether this is a file, and no link: an archive of somebody else must not name files of this machine.
fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

impl RowSource for ArchiveReader {
    fn open_table(&mut self, table: &str) -> io::Result<Box<dyn Read + '_>> {
        let path = self.folder.join(file_of(table));
        let inner = zstd::Decoder::new(self.file(&path)?).map_err(|error| about(&path, "read", &error))?;
        Ok(Box::new(NamedFile { path, inner }))
    }
}
