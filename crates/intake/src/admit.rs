//! Checks before a body is read: key, rate and declared length, in this order.

use actix_web::http::{
    Method,
    header::{self, HeaderMap},
};
use assay_access::{
    ingest::{IngestGrant, PresentedIngestKey},
    limit::{Admission, reset_s},
};
use assay_listener::authorization;

use crate::{app::AppState, error::IntakeError};

/// A request that passed the checks. The expect handler attaches it to the request for the handler.
#[derive(Debug, Clone)]
pub(crate) struct AdmittedRequest {
    pub(crate) grant: IngestGrant,
}

/// Checks a request by its head. Its body may have `longest` bytes.
pub(crate) async fn admit(
    app: &std::sync::Arc<AppState>,
    method: &Method,
    headers: &HeaderMap,
    longest: u64,
) -> Result<AdmittedRequest, IntakeError> {
    let header = authorization(headers);
    let presented = PresentedIngestKey::of_header(header.as_deref())?;
    let now = (app.clock)();
    let looking = std::sync::Arc::clone(app);
    let grant = app
        .look_ups
        .run(app.directory.share(&presented), move || {
            looking.directory.check(&presented, now)
        })
        .await??;
    // Describing a key does not count as an upload.
    if *method == Method::POST
        && let Admission::Refused = app.limiter.admit(&grant.budget_id(), now).await
    {
        return Err(IntakeError::RateLimited {
            after_s: reset_s(now).unsigned_abs(),
        });
    }
    if declared_length(headers).is_some_and(|length| length > longest) {
        return Err(too_long(longest));
    }
    Ok(AdmittedRequest { grant })
}

/// The error for a body that is longer than `limit` bytes before it is unpacked.
pub(crate) fn too_long(limit: u64) -> IntakeError {
    IntakeError::TooLarge {
        subject: "The body",
        limit: in_words(limit),
    }
}

/// A number of bytes in words.
pub(crate) fn in_words(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes => format!("{bytes} bytes"),
    }
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
