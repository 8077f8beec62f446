//! Measures the parts of a body, to determine the memory to reserve.

use std::fs::File;

use assay_ingest::UploadField;

use super::{Shape, Visit, walk};
use crate::{admit::in_words, error::IngestError, limits::Limits};

/// The bytes of a body's files and fields, one piece at a time. Archives among the files are not unpacked.
pub(crate) fn measure(file: &File, shape: &Shape, limits: &Limits) -> Result<u64, IngestError> {
    let mut measure = Measure {
        bytes: 0,
        limit: limits.unpacked_bytes,
    };
    walk(file, shape, limits, &mut measure)?;
    Ok(measure.bytes)
}

/// Measures the parts of a body.
struct Measure {
    bytes: u64,
    limit: u64,
}

impl Measure {
    fn add(&mut self, bytes: usize) -> Result<(), IngestError> {
        self.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
        if self.bytes <= self.limit {
            return Ok(());
        }
        Err(IngestError::TooLarge {
            subject: "The upload, unpacked,",
            limit: in_words(self.limit),
        })
    }
}

impl Visit for Measure {
    fn file(&mut self, _: String) -> Result<(), IngestError> {
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        self.add(bytes.len())
    }

    fn end(&mut self) -> Result<(), IngestError> {
        Ok(())
    }

    fn field(&mut self, _: UploadField, value: Vec<u8>) -> Result<(), IngestError> {
        self.add(value.len())
    }
}
