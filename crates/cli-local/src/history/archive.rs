//! Finds reports in an archive of a stranger. Nothing is written to disk, so names are only labels, and links lead nowhere.

use std::{fs::File, io::Read};

use anyhow::{Context as _, ensure};
use assay_reports::SourceFile;
use zip::{ZipReadOptions, read::Config, unstable::read::ZipIterable};

use crate::sources::files;

/// The most entries of an archive.
const MOST_ENTRIES: usize = 100_000;
/// The most bytes of all reports of a job. A server accepts as many in an upload.
pub const MOST_BYTES: u64 = 256 << 20;
/// The most bytes that are unpacked of files that are no reports.
const MOST_BYTES_OF_OTHERS: u64 = 2 << 30;
/// A larger file that has this many times the bytes of its packed form is a bomb. Reports have up to about 60 times.
const MOST_RATIO: u64 = 250;
/// Smaller files may have any ratio.
const SMALL: u64 = 8 << 20;
const NO_ZIP: &str = "it is no readable zip";
const TOO_LARGE: &str = "its reports exceed 256 MiB";

/// The content of a file.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// The reports.
    pub reports: Vec<SourceFile>,
    /// The entries that are left out: names that lead out of the archive, links, encrypted files and archives.
    pub refused: Vec<String>,
}

/// Reads the reports in a zip, or a file that is itself a report, of at most `left` bytes, and subtracts theirs. Fails if
/// it is broken or a bomb. Then none of its reports is used.
pub fn reports(mut file: File, name: &str, is_archive: bool, left: &mut u64) -> anyhow::Result<Unpacked> {
    let mut unpacked = Unpacked::default();
    if !is_archive {
        let size = file.metadata()?.len();
        unpacked
            .reports
            .extend(read_report(&mut file, name, size, left)?.ok());
        return Ok(unpacked);
    }
    let mut archive = ZipIterable::try_new(&file, Config::default()).context(NO_ZIP)?;
    ensure!(
        archive.len() <= MOST_ENTRIES,
        "it has more than {MOST_ENTRIES} files"
    );
    let mut left_of_others = MOST_BYTES_OF_OTHERS;
    for entry in archive.files().context(NO_ZIP)? {
        let entry = entry.context(NO_ZIP)?;
        if entry.is_dir() {
            continue;
        }
        let shown = assay_reports::shown_name(&String::from_utf8_lossy(entry.name_raw()));
        let name = entry.enclosed_name();
        let (Some(name), false, false) = (name, entry.is_symlink(), entry.encrypted()) else {
            unpacked.refused.push(shown);
            continue;
        };
        let (name, packed) = (name.to_string_lossy().replace('\\', "/"), entry.compressed_size());
        if !files::may_be_report(&name) {
            continue;
        }
        let mut content = &file;
        let entry = entry.with_reader(&mut content, ZipReadOptions::default());
        match read_report(&mut entry.context(NO_ZIP)?, &name, packed, left)? {
            Ok(report) => unpacked.reports.push(report),
            Err(beginning) => {
                let is_zip = beginning.starts_with(b"PK\x03\x04");
                unpacked.refused.extend(is_zip.then_some(shown));
                left_of_others = left_of_others
                    .checked_sub(length(&beginning))
                    .context(TOO_LARGE)?;
            }
        }
    }
    Ok(unpacked)
}

/// Reads a file to its end if it is a report. Else returns its beginning.
fn read_report(
    from: &mut impl Read,
    name: &str,
    packed: u64,
    left: &mut u64,
) -> anyhow::Result<Result<SourceFile, Vec<u8>>> {
    let shown = assay_reports::shown_name(name);
    // A bomb is noticed here, and not after all its bytes.
    let allowed = packed.saturating_mul(MOST_RATIO).max(SMALL);
    let beginning = u64::try_from(assay_reports::BEGINNING)?;
    let mut bytes = Vec::new();
    for most in [beginning, left.saturating_add(1)] {
        let limit = most.min(allowed.saturating_add(1)).saturating_sub(length(&bytes));
        let read = from.by_ref().take(limit).read_to_end(&mut bytes);
        read.with_context(|| shown.clone())?;
        ensure!(
            length(&bytes) <= allowed,
            "{shown} unpacks to more than {MOST_RATIO} times its size, as only a bomb does"
        );
        if most == beginning && assay_reports::looks_like_report(&bytes).is_none() {
            return Ok(Err(bytes));
        }
    }
    *left = left.checked_sub(length(&bytes)).context(TOO_LARGE)?;
    Ok(Ok(SourceFile {
        name: name.to_owned(),
        bytes,
        modified: None,
    }))
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    const REPORT: &str = "<testsuite><testcase name=\"a\"/></testsuite>";

    fn unpack_within(file: File, mut left: u64) -> anyhow::Result<Unpacked> {
        reports(file, "", true, &mut left)
    }

    fn zipped(write: impl FnOnce(&mut ZipWriter<File>, SimpleFileOptions)) -> anyhow::Result<Unpacked> {
        let file = tempfile::tempfile().unwrap();
        let mut writer = ZipWriter::new(file);
        write(&mut writer, SimpleFileOptions::default());
        unpack_within(writer.finish().unwrap(), MOST_BYTES)
    }

    fn add(writer: &mut ZipWriter<File>, name: &str, options: SimpleFileOptions, content: &[u8]) {
        writer.start_file(name, options).unwrap();
        writer.write_all(content).unwrap();
    }

    fn assert_fails(unpacked: anyhow::Result<Unpacked>, part: &str) {
        let error = unpacked.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
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
        assert_fails(bomb, "bomb.xml unpacks to more than 250 times its size");

        let mut writer = ZipWriter::new(tempfile::tempfile().unwrap());
        for name in ["a.xml", "b.xml"] {
            add(&mut writer, name, SimpleFileOptions::default(), REPORT.as_bytes());
        }
        let total = unpack_within(writer.finish().unwrap(), 60);
        assert_fails(total, TOO_LARGE);

        let many = zipped(|writer, options| {
            for index in 0..=MOST_ENTRIES {
                writer.start_file(index.to_string(), options).unwrap();
            }
        });
        assert_fails(many, "it has more than 100000 files");
        // The end of an archive that claims 65,535 entries.
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[&b"PK\x05\x06\0\0\0\0"[..], &[0xff; 4], &[0; 10]].concat())
            .unwrap();
        assert_fails(unpack_within(file, MOST_BYTES), NO_ZIP);
        assert_fails(unpack_within(tempfile::tempfile().unwrap(), MOST_BYTES), NO_ZIP);
    }
}
