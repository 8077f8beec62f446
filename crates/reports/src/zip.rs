//! Finds the report in a zip of Playwright's blob reporter: the file whose name ends in `.jsonl`.

use std::io::Cursor;

use zip::{CompressionMethod, ZipReadOptions, read::Config, unstable::read::ZipIterable};

/// The most files of an archive. A blob report has one for each attachment.
const MOST_FILES: usize = 100_000;

/// A file of an archive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// The stored bytes.
    pub(crate) bytes: &'a [u8],
    /// Whether the bytes are deflated. Otherwise they are the file itself.
    pub(crate) is_deflated: bool,
}

/// Whether the bytes begin with the signature of a zip.
pub(crate) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// The report, found through the directory at the archive's end. `None` if the archive is broken or has no report.
pub(crate) fn report(archive: &[u8]) -> Option<Entry<'_>> {
    let mut files = ZipIterable::try_new(Cursor::new(archive), Config::default()).ok()?;
    let files = files.files().ok().filter(|files| files.len() <= MOST_FILES)?;
    let file = files.find_map(|file| file.ok().filter(|file| file.name_raw().ends_with(b".jsonl")))?;
    let mut content = Cursor::new(archive);
    let file = file.with_reader(&mut content, ZipReadOptions::default()).ok()?;
    let (begin, method) = (usize::try_from(file.data_start()?).ok()?, file.compression());
    let length = usize::try_from(file.compressed_size()).ok()?;
    matches!(method, CompressionMethod::Stored | CompressionMethod::Deflated).then_some(Entry {
        bytes: archive.get(begin..)?.get(..length)?,
        is_deflated: method == CompressionMethod::Deflated,
    })
}
