//! Checks before a body is read: rate, key and declared length, in this order.

use actix_web::http::{
    Method,
    header::{self, HeaderMap},
};
use assay_access::check::{IngestGrant, PresentedKey, Refusal};
use assay_domain::key::KeyKind;
use assay_http::{CountedBy, IdentityMetrics, Problem, authorization, count};

use crate::{app::AppState, error::IngestError};

/// A request that passed the checks. The expect handler attaches it to the request for the handler.
#[derive(Debug, Clone)]
pub(crate) struct AdmittedRequest {
    pub(crate) grant: IngestGrant,
}

/// Checks a request by its head. Its body may have `longest` bytes.
pub(crate) async fn admit(
    app: &AppState,
    method: &Method,
    headers: &HeaderMap,
    longest: u64,
) -> Result<AdmittedRequest, IngestError> {
    let header = authorization(headers);
    // Describing a key does not count as an upload.
    let is_counted = *method == Method::POST;
    let now = (app.clock)();
    let grant = match app.tokens.of_header(header.as_deref()) {
        Some(token) => {
            let identified = match token {
                Ok(token) => {
                    let identified = app
                        .reception
                        .identify_token(&app.tokens, &app.fetches, token, now);
                    identified.await
                }
                Err(refusal) => Err(refusal.into()),
            };
            let outcome = match &identified {
                Ok(_) => "verified",
                Err(Problem::Refused(Refusal::InvalidToken(why))) => why,
                Err(problem) => problem.status_and_code(KeyKind::Ingest).1,
            };
            IdentityMetrics::count(&app.identity.identity_tokens, outcome);
            let grant = identified?;
            // Each job has tokens of its own, so their uploads count against the key for which they stand.
            let id = [b"upload\n", grant.id.0.as_bytes().as_slice()].concat();
            let counted_by = is_counted.then(|| CountedBy {
                limiter: &*app.limiter,
                id: id.into(),
            });
            count(counted_by, now).await?;
            grant
        }
        None => {
            let presented = PresentedKey::of_header(KeyKind::Ingest, header.as_deref());
            let counted_by = match is_counted {
                true => CountedBy::key(&*app.limiter, &presented, "upload"),
                false => None,
            };
            app.reception.identify(presented, counted_by, now).await?.1
        }
    };
    if declared_length(headers).is_some_and(|length| length > longest) {
        return Err(too_long(longest));
    }
    Ok(AdmittedRequest { grant })
}

/// The error for a body that is longer than `limit` bytes before it is unpacked.
pub(crate) fn too_long(limit: u64) -> IngestError {
    IngestError::TooLarge {
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
