//! Finds reports in an archive of a stranger. Nothing is written to disk, so names are only labels, and links lead nowhere.

use std::{
    fs::File,
    io::{self, Read, Seek as _, SeekFrom},
};

use assay_reports::SourceFile;
use zip::ZipArchive;

use crate::sources::files;

/// The most entries of an archive. The library holds its directory in memory.
const MOST_ENTRIES: u64 = 100_000;
/// The most bytes of all reports of an archive. A server accepts as many in an upload.
pub const MOST_BYTES: u64 = 256 << 20;
/// The number of bytes by which a file is recognised.
const BEGINNING: u64 = 4 << 20;
/// The most bytes that are unpacked of files that are no reports.
const MOST_BYTES_OF_OTHERS: u64 = 2 << 30;
/// A larger file that has this many times the bytes of its packed form is a bomb. Reports have up to about 60 times.
const MOST_RATIO: u64 = 250;
/// Smaller files may have any ratio.
const SMALL: u64 = 8 << 20;
/// The longest comment behind the directory of an archive, and the records around it.
const LONGEST_TAIL: u64 = 0xffff + 22 + 20;

/// Why an archive is not read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is no zip, or broken.
    #[error("it is no readable zip ({0})")]
    Broken(String),
    /// It has too many entries.
    #[error("it has more than {MOST_ENTRIES} files")]
    TooMany,
    /// A file unpacks to far more than its packed size.
    #[error("{0} unpacks to more than {MOST_RATIO} times its size, as only a bomb does")]
    Bomb(String),
    /// All reports together are too large.
    #[error("its reports exceed {} MiB", MOST_BYTES >> 20)]
    TooLarge,
    /// Reading the downloaded file failed.
    #[error("reading it failed: {0}")]
    Io(#[from] io::Error),
}

/// The content of an archive.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// The reports.
    pub reports: Vec<SourceFile>,
    /// The entries that are left out: names that lead out of the archive, links, encrypted files and archives.
    pub refused: Vec<String>,
}

/// Reads the reports in a zip.
///
/// # Errors
/// An [`ArchiveError`] if it is broken or a bomb. Then none of its reports is used.
pub fn unpack(file: File) -> Result<Unpacked, ArchiveError> {
    unpack_within(file, MOST_BYTES)
}

/// Reads at most this many bytes of reports.
fn unpack_within(mut file: File, most_bytes: u64) -> Result<Unpacked, ArchiveError> {
    if entries(&mut file)? > MOST_ENTRIES {
        return Err(ArchiveError::TooMany);
    }
    let broken = |error: zip::result::ZipError| ArchiveError::Broken(error.to_string());
    let mut archive = ZipArchive::new(file).map_err(broken)?;
    let mut unpacked = Unpacked::default();
    let (mut of_reports, mut of_others) = (0_u64, 0_u64);
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(broken)?;
        if entry.is_dir() {
            continue;
        }
        let name = entry
            .enclosed_name()
            .map(|path| path.to_string_lossy().replace('\\', "/"));
        let (Some(name), false, false) = (name, entry.is_symlink(), entry.encrypted()) else {
            let name = String::from_utf8_lossy(entry.name_raw());
            unpacked.refused.push(assay_reports::shown_name(&name));
            continue;
        };
        let packed = entry.compressed_size();
        drop(entry);
        if !files::may_be_report(&name) {
            continue;
        }
        let mut bytes = Vec::new();
        let mut entry = archive.by_index(index).map_err(broken)?;
        read_on(&mut entry, &mut bytes, BEGINNING, &name, packed)?;
        if assay_reports::looks_like_report(&bytes).is_none() {
            if bytes.starts_with(b"PK\x03\x04") {
                unpacked.refused.push(assay_reports::shown_name(&name));
            }
            of_others += length(&bytes);
            if of_others > MOST_BYTES_OF_OTHERS {
                return Err(ArchiveError::TooLarge);
            }
            continue;
        }
        read_on(&mut entry, &mut bytes, most_bytes - of_reports + 1, &name, packed)?;
        of_reports += length(&bytes);
        if of_reports > most_bytes {
            return Err(ArchiveError::TooLarge);
        }
        unpacked.reports.push(report(name, bytes));
    }
    Ok(unpacked)
}

/// Reads a file that is no archive, if it is a report.
///
/// # Errors
/// [`ArchiveError::TooLarge`], or a failure to read.
pub fn plain(mut file: File, name: &str) -> Result<Unpacked, ArchiveError> {
    let mut bytes = Vec::new();
    file.by_ref().take(BEGINNING).read_to_end(&mut bytes)?;
    if assay_reports::looks_like_report(&bytes).is_none() {
        return Ok(Unpacked::default());
    }
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    if length(&bytes) > MOST_BYTES {
        return Err(ArchiveError::TooLarge);
    }
    Ok(Unpacked {
        reports: vec![report(name.to_owned(), bytes)],
        refused: Vec::new(),
    })
}

const fn report(name: String, bytes: Vec<u8>) -> SourceFile {
    SourceFile {
        name,
        bytes,
        modified: None,
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Reads until there are `most` bytes.
fn read_on(
    entry: &mut impl Read,
    bytes: &mut Vec<u8>,
    most: u64,
    name: &str,
    packed: u64,
) -> Result<(), ArchiveError> {
    // A bomb is noticed here, and not after all its bytes.
    let allowed = packed.saturating_mul(MOST_RATIO).max(SMALL).saturating_add(1);
    let limit = most.min(allowed).saturating_sub(length(bytes));
    let read = entry.take(limit).read_to_end(bytes);
    read.map_err(|error| ArchiveError::Broken(format!("{}: {error}", assay_reports::shown_name(name))))?;
    match length(bytes) >= allowed {
        true => Err(ArchiveError::Bomb(assay_reports::shown_name(name))),
        false => Ok(()),
    }
}

/// The number of entries that the end of a zip names. A comment must end with the file, so that the library reads the same
/// directory.
fn entries(file: &mut File) -> Result<u64, ArchiveError> {
    let size = file.seek(SeekFrom::End(0))?;
    let tail = bytes_at(file, size.saturating_sub(LONGEST_TAIL), LONGEST_TAIL)?;
    let no_zip = || ArchiveError::Broken("it has no directory".to_owned());
    let is_end = |at: &usize| {
        let comment = number(&tail, at + 20, 2);
        tail.get(*at..).is_some_and(|end| end.starts_with(b"PK\x05\x06"))
            && comment == Some(length(&tail).saturating_sub(length(tail.get(..at + 22).unwrap_or_default())))
    };
    let end = (0..tail.len()).rev().find(is_end).ok_or_else(no_zip)?;
    let locator = end.saturating_sub(20);
    if tail
        .get(locator..end)
        .is_some_and(|at| at.starts_with(b"PK\x06\x07"))
    {
        let record = number(&tail, locator + 8, 8).ok_or_else(no_zip)?;
        return number(&bytes_at(file, record, 56)?, 32, 8).ok_or_else(no_zip);
    }
    number(&tail, end + 10, 2).ok_or_else(no_zip)
}

fn bytes_at(file: &mut File, at: u64, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at))?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A little-endian number of `length` bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    let digits = bytes.iter().rev();
    Some(digits.fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    const REPORT: &str = "<testsuite><testcase name=\"a\"/></testsuite>";

    fn zipped(write: impl FnOnce(&mut ZipWriter<File>, SimpleFileOptions)) -> Result<Unpacked, ArchiveError> {
        let file = tempfile::tempfile().unwrap();
        let mut writer = ZipWriter::new(file);
        write(&mut writer, SimpleFileOptions::default());
        unpack(writer.finish().unwrap())
    }

    fn add(writer: &mut ZipWriter<File>, name: &str, options: SimpleFileOptions, content: &[u8]) {
        writer.start_file(name, options).unwrap();
        writer.write_all(content).unwrap();
    }

    #[test]
    fn only_reports_within_the_archive_are_read() {
        let unpacked = zipped(|writer, options| {
            add(writer, "../../etc/junit.xml", options, REPORT.as_bytes());
            add(writer, "/abs/junit.xml", options, REPORT.as_bytes());
            writer.add_symlink("link.xml", "/etc/passwd", options).unwrap();
            writer.add_directory("out", options).unwrap();
            add(
                writer,
                "out/large.xml",
                options.large_file(true),
                REPORT.as_bytes(),
            );
            add(writer, "out/pom.xml", options, b"<project/>");
            add(writer, "out/page.html", options, REPORT.as_bytes());
            // Its file is stored, so that the bytes have the text of a report.
            let nested = format!("PK\x03\x04 a.xml{REPORT}");
            add(writer, "out/nested.zip", options, nested.as_bytes());
        })
        .unwrap();
        let names: Vec<_> = unpacked
            .reports
            .iter()
            .map(|report| report.name.as_str())
            .collect();
        assert_eq!(names, ["abs/junit.xml", "out/large.xml"]);
        assert_eq!(unpacked.reports[1].bytes, REPORT.as_bytes());
        assert_eq!(
            unpacked.refused,
            ["../../etc/junit.xml", "link.xml", "out/nested.zip"]
        );
    }

    #[test]
    fn bombs_by_ratio_by_total_and_by_count_are_refused() {
        let bomb = zipped(|writer, options| {
            let mut content = REPORT.as_bytes().to_vec();
            content.resize(10 << 20, b' ');
            add(writer, "bomb.xml", options, &content);
        });
        assert!(matches!(bomb, Err(ArchiveError::Bomb(_))), "{bomb:?}");

        let mut writer = ZipWriter::new(tempfile::tempfile().unwrap());
        for name in ["a.xml", "b.xml"] {
            add(&mut writer, name, SimpleFileOptions::default(), REPORT.as_bytes());
        }
        let total = unpack_within(writer.finish().unwrap(), 60);
        assert!(matches!(total, Err(ArchiveError::TooLarge)), "{total:?}");

        // The end of an archive in zip64 that claims four billion entries.
        let mut file = tempfile::tempfile().unwrap();
        let mut record = b"PK\x06\x06".to_vec();
        record.resize(56, 0);
        record[32..40].copy_from_slice(&(1_u64 << 32).to_le_bytes());
        let mut end = b"PK\x06\x07".to_vec();
        end.resize(20, 0);
        end.extend(b"PK\x05\x06");
        end.resize(20 + 10, 0);
        end.extend([0xff; 2]);
        end.resize(20 + 22, 0);
        file.write_all(&[record, end].concat()).unwrap();
        assert!(matches!(unpack(file), Err(ArchiveError::TooMany)));
        assert!(matches!(
            unpack(tempfile::tempfile().unwrap()),
            Err(ArchiveError::Broken(_))
        ));
    }
}
