//! A file as a target.

use std::{fs::OpenOptions, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::PathBuf};

use serde_json::json;

use crate::{Channel, Outgoing, Receipt, SendError, text};

/// The form of the messages in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Appends messages to a file.
#[derive(Debug)]
pub struct FileChannel {
    /// The file. It is created for its owner alone.
    pub path: PathBuf,
    /// Its form.
    pub format: FileFormat,
}

impl Channel for FileChannel {
    fn send(&self, message: &Outgoing<'_>) -> Result<Receipt, SendError> {
        let text = match self.format {
            FileFormat::Text => format!("{}\n{}\n", message.at, text::plain(message.content)),
            FileFormat::Json => {
                let thread = message.thread.as_ref().map(|(id, _)| id);
                format!(
                    "{}\n",
                    json!({"id": message.id, "timestamp": message.at, "thread": thread, "data": message.content})
                )
            }
        };
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        let written = options
            .open(&self.path)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_data()));
        written
            .map(|()| None)
            .map_err(|error| SendError::new(format!("{} cannot be written: {error}", self.path.display())))
    }

    fn kind(&self) -> &'static str {
        "file"
    }
}
