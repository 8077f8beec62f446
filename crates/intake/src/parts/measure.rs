//! Measures the unpacked size of a body, to determine the memory to reserve.

use std::{
    fs::File,
    io::{self, Write},
};

use flate2::write::MultiGzDecoder;

use super::{Shape, Visit, collect, walk};
use crate::{admit::in_words, error::IntakeError, limits::Limits};

/// The size of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measured {
    /// Unpacked bytes of its files and fields, including files that are gzip themselves.
    pub(crate) bytes: u64,
    /// Whether some files may be zips, whose unpacked bytes are not included.
    pub(crate) has_zips: bool,
}

/// Measures a body, one piece at a time.
pub(crate) fn measure(file: &File, shape: &Shape, limits: &Limits) -> Result<Measured, IntakeError> {
    let mut measure = Measure {
        packed: 0,
        archives: 0,
        limit: limits.unpacked_bytes,
        archive: Archive::Unknown,
        has_zips: false,
    };
    walk(file, shape, limits, &mut measure)?;
    Ok(Measured {
        bytes: measure.packed + measure.archives,
        has_zips: measure.has_zips,
    })
}

/// Adds the unpacked bytes of the zips to the size of a body that has some. The directory of a zip is at its end, so
/// this collects the whole body in memory. The caller has reserved that memory.
pub(crate) fn measure_with_zips(
    file: &File,
    shape: &Shape,
    limits: &Limits,
    measured: Measured,
) -> Result<u64, IntakeError> {
    let (files, _) = collect(file, shape, limits)?;
    let mut bytes = measured.bytes;
    for file in &files {
        let most = limits.unpacked_bytes.saturating_sub(bytes);
        bytes += assay_reports::unpacked_zip_bytes(&file.bytes, most);
        if bytes > limits.unpacked_bytes {
            return Err(too_large(limits.unpacked_bytes));
        }
    }
    Ok(bytes)
}

fn too_large(limit: u64) -> IntakeError {
    IntakeError::TooLarge {
        subject: "The upload, unpacked,",
        limit: in_words(limit),
    }
}

/// Measures the unpacked size of a body's parts.
struct Measure {
    /// Bytes of the parts before their archives are unpacked.
    packed: u64,
    /// Unpacked bytes of the archives among them.
    archives: u64,
    limit: u64,
    archive: Archive,
    has_zips: bool,
}

/// Whether the current file is an archive, by its first bytes.
enum Archive {
    Unknown,
    No,
    Gzip(Box<MultiGzDecoder<Counter>>),
    /// The archive is damaged. The parser reports that with the file's name.
    Broken,
}

/// Counts the unpacked bytes of an archive, up to a limit.
struct Counter {
    bytes: u64,
    most: u64,
}

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.bytes > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Measure {
    fn add(&mut self, bytes: usize) -> Result<(), IntakeError> {
        self.packed += u64::try_from(bytes).unwrap_or(u64::MAX);
        self.check()
    }

    fn check(&self) -> Result<(), IntakeError> {
        match self.packed + self.archives > self.limit {
            true => Err(too_large(self.limit)),
            false => Ok(()),
        }
    }
}

impl Visit for Measure {
    fn file(&mut self, _: String) -> Result<(), IntakeError> {
        self.archive = Archive::Unknown;
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) -> Result<(), IntakeError> {
        self.add(bytes.len())?;
        if let Archive::Unknown = self.archive
            && !bytes.is_empty()
        {
            let counter = Counter {
                bytes: 0,
                most: self.limit.saturating_sub(self.packed + self.archives),
            };
            self.archive = match bytes.first() {
                Some(0x1f) => Archive::Gzip(Box::new(MultiGzDecoder::new(counter))),
                Some(_) | None => Archive::No,
            };
            self.has_zips |= bytes.first() == Some(&b'P');
        }
        if let Archive::Gzip(archive) = &mut self.archive
            && let Err(error) = archive.write_all(bytes)
        {
            if error.kind() == io::ErrorKind::FileTooLarge {
                return Err(too_large(self.limit));
            }
            self.archives += archive.get_ref().bytes;
            self.archive = Archive::Broken;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), IntakeError> {
        if let Archive::Gzip(archive) = &mut self.archive {
            // A truncated archive is not an error here: its bytes up to the end count.
            let finish = archive.try_finish();
            if finish.is_err_and(|error| error.kind() == io::ErrorKind::FileTooLarge) {
                return Err(too_large(self.limit));
            }
            self.archives += archive.get_ref().bytes;
        }
        self.archive = Archive::No;
        self.check()
    }

    fn field(&mut self, _: &str, value: Vec<u8>) -> Result<(), IntakeError> {
        self.add(value.len())
    }
}
