//! Writing an archive.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use assay_domain::{
    store::{ArchiveContents, RowSink},
    timestamp::Timestamp,
};
use indicatif::{HumanCount, ProgressBar};
use sha2::{Digest as _, Sha256};

use super::{
    ArchivedFile, FORMAT, Head, MANIFEST, Manifest, UNFINISHED, VERSION, about, file_of, hexadecimal,
};

/// The strength of the compression: fast.
const LEVEL: i32 = 3;
/// The number of rows between two updates of the progress.
const STEP: u64 = 1_000;

/// An archive that is being written.
pub(crate) struct ArchiveWriter {
    folder: PathBuf,
    table: Option<TableFile>,
    files: Vec<ArchivedFile>,
    spinner: ProgressBar,
    rows: u64,
}

/// The file of the current table.
struct TableFile {
    name: &'static str,
    path: PathBuf,
    rows: BufWriter<zstd::Encoder<'static, HashedFile>>,
}

/// A file with the checksum of what was written to it.
struct HashedFile {
    file: File,
    hasher: Sha256,
    bytes: u64,
}

impl ArchiveWriter {
    /// Prepares a folder, which is new, empty, or has an export that did not finish.
    pub(crate) fn create(folder: &Path, spinner: ProgressBar) -> anyhow::Result<Self> {
        let folder_text = folder.display();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .with_context(|| format!("could not make the folder {folder_text}"))?;
        ensure!(
            !folder.join(MANIFEST).exists(),
            "{folder_text} has an export already; name a new folder"
        );
        let is_empty = fs::read_dir(folder)
            .with_context(|| format!("could not read the folder {folder_text}"))?
            .next()
            .is_none();
        ensure!(
            is_empty || folder.join(UNFINISHED).exists(),
            "{folder_text} has other files; name a new folder"
        );
        create(&folder.join(UNFINISHED))?;
        Ok(Self {
            folder: folder.to_path_buf(),
            table: None,
            files: Vec::new(),
            spinner,
            rows: 0,
        })
    }

    /// Completes the archive. Returns its size in bytes.
    pub(crate) fn finish(mut self, contents: ArchiveContents, now: Timestamp) -> anyhow::Result<u64> {
        self.end_table()?;
        let bytes = self.files.iter().map(|file| file.bytes).sum();
        let manifest = Manifest {
            head: Head {
                format: FORMAT.to_owned(),
                version: VERSION,
                assay: env!("CARGO_PKG_VERSION").to_owned(),
            },
            exported_at: now,
            contents,
            files: self.files,
        };
        let path = self.folder.join(UNFINISHED);
        let write = || {
            let mut file = create(&path)?;
            serde_json::to_writer_pretty(&mut file, &manifest)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&path, self.folder.join(MANIFEST))?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| about(&path, "write", &error))?;
        Ok(bytes)
    }

    fn end_table(&mut self) -> io::Result<()> {
        let Some(table) = self.table.take() else {
            return Ok(());
        };
        let path = table.path;
        let write = || {
            let encoder = table.rows.into_inner().map_err(io::IntoInnerError::into_error)?;
            let file = encoder.finish()?;
            file.file.sync_all()?;
            Ok(file)
        };
        let hashed_file: HashedFile = write().map_err(|error| about(&path, "write", &error))?;
        self.files.push(ArchivedFile {
            file: file_of(table.name),
            bytes: hashed_file.bytes,
            sha256: hexadecimal(hashed_file.hasher),
        });
        Ok(())
    }
}

impl RowSink for ArchiveWriter {
    fn begin_table(&mut self, table: &'static str) -> io::Result<()> {
        self.end_table()?;
        let name = file_of(table);
        self.files.retain(|file| file.file != name);
        let path = self.folder.join(name);
        let file = HashedFile {
            file: create(&path)?,
            hasher: Sha256::new(),
            bytes: 0,
        };
        let encoder = zstd::Encoder::new(file, LEVEL).map_err(|error| about(&path, "write", &error))?;
        self.table = Some(TableFile {
            name: table,
            path,
            rows: BufWriter::with_capacity(1 << 16, encoder),
        });
        Ok(())
    }

    fn write_row(&mut self, row: &[u8]) -> io::Result<()> {
        let Some(table) = &mut self.table else {
            return Err(io::Error::other("a row of no table"));
        };
        self.rows += 1;
        if self.rows.is_multiple_of(STEP) {
            let (name, rows) = (table.name, HumanCount(self.rows));
            self.spinner
                .set_message(format!("exporting {name}: {rows} rows in all"));
        }
        let outcome = table.rows.write_all(row);
        outcome.map_err(|error| about(&table.path, "write", &error))
    }
}

impl Write for HashedFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let length = self.file.write(buffer)?;
        self.hasher.update(buffer.get(..length).unwrap_or_default());
        self.bytes += u64::try_from(length).unwrap_or(u64::MAX);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A new, empty file that only its owner can read: results may be confidential.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| about(path, "write", &error))
}
