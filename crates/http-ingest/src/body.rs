//! Receives a body from the connection into an unlinked temporary file.

use std::{
    fs::File,
    io::{Seek as _, Write as _},
    sync::Arc,
};

use actix_web::web::{self, Bytes, Payload};
use assay_access::check::IngestGrant;
use assay_http::{Holder, Problem, Share};
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;

use crate::{
    admit::too_long,
    app::{self, AppState},
    error::IngestError,
    limits::{DECISION_BYTES, PACE_INTERVAL},
    parts::{PartHeads, Shape},
};

/// The size of the buffer, in bytes. A full buffer is written to the file. Every upload under way has one.
const PIECE: usize = 64 << 10;

/// A complete body. Its file has no name and is deleted with the value.
pub(crate) struct ReceivedBody {
    pub(crate) file: File,
    pub(crate) bytes: u64,
    _room: Share,
}

/// Receives a small JSON body, and passes it to `work` in the turn of the key's project, on a thread that may block.
pub(crate) async fn with_json<T: DeserializeOwned, R: Send + 'static>(
    app: &Arc<AppState>,
    grant: IngestGrant,
    shape: Shape,
    payload: Payload,
    body_is_read: impl FnOnce(),
    work: impl FnOnce(&AppState, &IngestGrant, T) -> Result<R, IngestError> + Send + 'static,
) -> Result<R, IngestError> {
    let holder = app::holder(&grant);
    let received = receive(app, holder, payload, DECISION_BYTES, None).await?;
    body_is_read();
    let (project, shared) = (grant.project, Arc::clone(app));
    let work = move || {
        let bytes = shape.unpacked(&received.file, DECISION_BYTES)?;
        let value = serde_json::from_slice(&bytes).map_err(|error| IngestError::bad("the body", error))?;
        work(&shared, &grant, value)
    };
    app.explanations
        .run_after(project, holder.precedence, work)
        .await?
}

/// Receives a body of at most `longest` bytes. Its time and the space of all bodies are bounded, too. A body with a part
/// that `heads` refuses is not read to its end.
pub(crate) async fn receive(
    app: &Arc<AppState>,
    holder: Holder,
    mut payload: Payload,
    longest: u64,
    mut heads: Option<PartHeads>,
) -> Result<ReceivedBody, IngestError> {
    let limits = &app.limits;
    let mut room = app.spool(holder);
    let mut file = web::block(tempfile::tempfile)
        .await
        .map_err(|_| Problem::Panicked)?
        .map_err(IngestError::Spool)?;
    let mut piece = Vec::new();
    let mut bytes = 0;
    let mut pace = Pace::begin(limits.least_bytes_per_interval);
    let end = tokio::time::Instant::now() + limits.body_within;
    loop {
        let deadline = end.min(pace.interval_end);
        let Ok(next) = tokio::time::timeout_at(deadline, payload.next()).await else {
            pace.check()?;
            if tokio::time::Instant::now() >= end {
                return Err(IngestError::TooSlow);
            }
            continue;
        };
        let Some(chunk) = next else { break };
        let chunk: Bytes = chunk.map_err(|_| IngestError::Truncated)?;
        let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        bytes += length;
        if bytes > longest {
            return Err(too_long(longest));
        }
        if let Some(heads) = &mut heads {
            heads.check(&chunk)?;
        }
        if !room.grow(length) {
            return Err(IngestError::Busy {
                reason: "The running uploads use all space for bodies",
                after_s: 10,
            });
        }
        pace.record(length)?;
        piece.extend_from_slice(&chunk);
        if piece.len() >= PIECE {
            (file, piece) = write(file, piece).await?;
        }
    }
    (file, _) = write(file, piece).await?;
    file.rewind().map_err(IngestError::Spool)?;
    Ok(ReceivedBody {
        file,
        bytes,
        _room: room,
    })
}

/// Writes the buffer on a blocking thread and empties it.
async fn write(mut file: File, mut piece: Vec<u8>) -> Result<(File, Vec<u8>), IngestError> {
    let writing = web::block(move || {
        file.write_all(&piece)?;
        piece.clear();
        Ok((file, piece))
    });
    writing
        .await
        .map_err(|_| Problem::Panicked)?
        .map_err(IngestError::Spool)
}

/// Checks that a body arrives fast enough: a minimum of bytes in each interval.
struct Pace {
    interval_end: tokio::time::Instant,
    received_bytes: u64,
    least_bytes: u64,
}

impl Pace {
    fn begin(least_bytes: u64) -> Self {
        Self {
            interval_end: tokio::time::Instant::now() + PACE_INTERVAL,
            received_bytes: 0,
            least_bytes,
        }
    }

    fn record(&mut self, bytes: u64) -> Result<(), IngestError> {
        self.received_bytes += bytes;
        self.check()
    }

    /// Begins the next interval if this one is over.
    fn check(&mut self) -> Result<(), IngestError> {
        if tokio::time::Instant::now() < self.interval_end {
            return Ok(());
        }
        if self.received_bytes < self.least_bytes {
            return Err(IngestError::TooSlow);
        }
        *self = Self::begin(self.least_bytes);
        Ok(())
    }
}
