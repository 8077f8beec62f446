//! Answers as CSV.

use serde::Serialize;

use crate::{answer::Answer, error::ApiError};

/// The lines with a header, as RFC 4180 describes them.
pub(crate) fn answer(lines: impl Iterator<Item = impl Serialize>) -> Result<Answer, ApiError> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    for line in lines {
        writer
            .serialize(line)
            .map_err(|error| ApiError::Encoding(error.into()))?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| ApiError::Encoding(error.into_error()))?;
    Ok(Answer::csv(bytes))
}
