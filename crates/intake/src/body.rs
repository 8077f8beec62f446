//! Receives a body from the connection into an unlinked temporary file.

use std::{
    fs::File,
    io::{Seek as _, Write as _},
    sync::Arc,
};

use actix_web::web::{self, Bytes, Payload};
use futures_util::StreamExt as _;

use crate::{
    admit::too_long,
    app::{AppState, SpoolRoom},
    error::IntakeError,
    limits::PACE,
};

/// Bytes that are buffered before each write.
const PIECE: usize = 1 << 20;

/// A complete body. Its file has no name and is deleted with the value.
pub(crate) struct ReceivedBody {
    pub(crate) file: File,
    pub(crate) bytes: u64,
    _room: SpoolRoom,
}

/// Receives a body of at most `longest` bytes. Its time and the space of all bodies are bounded, too.
pub(crate) async fn receive(
    app: &Arc<AppState>,
    mut payload: Payload,
    longest: u64,
) -> Result<ReceivedBody, IntakeError> {
    let limits = &app.limits;
    let mut room = app.spool();
    let mut file = web::block(tempfile::tempfile)
        .await
        .map_err(|_| IntakeError::Aborted)?
        .map_err(IntakeError::Spool)?;
    let mut piece = Vec::new();
    let mut bytes = 0;
    let mut pace = Pace::begin(limits.bytes_a_pace);
    let end = tokio::time::Instant::now() + limits.body_within;
    loop {
        let by = end.min(pace.by);
        let Ok(next) = tokio::time::timeout_at(by, payload.next()).await else {
            pace.check()?;
            if tokio::time::Instant::now() >= end {
                return Err(IntakeError::TooSlow);
            }
            continue;
        };
        let Some(chunk) = next else { break };
        let chunk: Bytes = chunk.map_err(|_| IntakeError::Truncated)?;
        let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        bytes += length;
        if bytes > longest {
            return Err(too_long(longest));
        }
        room.grow(length)?;
        pace.came(length)?;
        piece.extend_from_slice(&chunk);
        if piece.len() >= PIECE {
            (file, piece) = write(file, piece).await?;
        }
    }
    (file, _) = write(file, piece).await?;
    file.rewind().map_err(IntakeError::Spool)?;
    Ok(ReceivedBody {
        file,
        bytes,
        _room: room,
    })
}

/// Writes the buffer on a blocking thread and empties it.
async fn write(mut file: File, mut piece: Vec<u8>) -> Result<(File, Vec<u8>), IntakeError> {
    let written = web::block(move || {
        file.write_all(&piece)?;
        piece.clear();
        Ok((file, piece))
    });
    written
        .await
        .map_err(|_| IntakeError::Aborted)?
        .map_err(IntakeError::Spool)
}

/// Checks that a body arrives fast enough: a minimum of bytes in each window.
struct Pace {
    by: tokio::time::Instant,
    came: u64,
    wanted: u64,
}

impl Pace {
    fn begin(wanted: u64) -> Self {
        Self {
            by: tokio::time::Instant::now() + PACE,
            came: 0,
            wanted,
        }
    }

    fn came(&mut self, bytes: u64) -> Result<(), IntakeError> {
        self.came += bytes;
        self.check()
    }

    /// Begins the next window if this one is over.
    fn check(&mut self) -> Result<(), IntakeError> {
        if tokio::time::Instant::now() < self.by {
            return Ok(());
        }
        if self.came < self.wanted {
            return Err(IntakeError::TooSlow);
        }
        *self = Self::begin(self.wanted);
        Ok(())
    }
}
