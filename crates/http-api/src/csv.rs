//! Answers as CSV.

use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::{answer::Answer, error::ApiError};

/// The entries as lines below a header, as RFC 4180 describes them. A column has a name, and a pointer to its value in the
/// JSON of an entry.
pub(crate) fn answer(columns: &[(&str, &str)], entries: &[impl Serialize]) -> Result<Answer, ApiError> {
    Ok(Answer::csv(lines(columns, entries).map_err(ApiError::Encoding)?))
}

fn lines(columns: &[(&str, &str)], entries: &[impl Serialize]) -> io::Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    writer.write_record(columns.iter().map(|(name, _)| name))?;
    for entry in entries {
        let entry = serde_json::to_value(entry)?;
        let field = |(_, pointer): &(&str, &str)| match entry.pointer(pointer) {
            Some(Value::Array(words)) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                words.join(" ").into()
            }
            value => value.cloned().unwrap_or_default(),
        };
        writer.serialize(columns.iter().map(field).collect::<Vec<Value>>())?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}
