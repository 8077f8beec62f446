//! Converts a handler's answer to a response: bytes, entity tag, content coding.

use actix_web::http::{StatusCode, header::HeaderValue};
use assay_domain::{store::Store, timestamp::Timestamp};
use assay_http::{Coding, Encoder, Preferences, Problem, Tag};
use serde::Serialize;

use crate::{
    error::ApiError,
    memory::{IN_PARTS, Reservation},
};

/// Bodies up to this size are not compressed, because compression would cost more than it saves.
const COMPRESSED_ABOVE: usize = 16 * 1024;

/// The answer of a handler.
pub(crate) struct Answer {
    /// JSON, or what `form` says.
    json: Vec<u8>,
    form: Form,
    /// Whether a client may cache it and revalidate it by its tag.
    is_tagged: bool,
    rest: Option<Rest>,
}

/// The entries of the last list that are still to be read. The JSON ends before them.
pub(crate) struct Rest {
    entries: Box<dyn NextEntries>,
    /// The version of the state of all entries, if the answer has a tag.
    version: [u8; 32],
}

/// Reads the entries of a list in parts.
pub(crate) trait NextEntries: Send {
    /// The JSON of the next entries, separated by commas; none after the last entry.
    fn next(&mut self, store: &dyn Store) -> Result<Option<Vec<u8>>, ApiError>;

    /// The approximate memory use in bytes of what it keeps for the further entries, beyond [`IN_PARTS`].
    fn bytes(&self) -> usize;
}

/// The end of an answer in parts: its list is the last field.
const ENDING: &[u8] = b"]}";

/// The media type of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// JSON, the only form of the route.
    Json,
    /// JSON of a route that also has CSV.
    JsonBesideCsv,
    /// CSV.
    Csv,
}

impl Form {
    pub(crate) const fn content_type(self) -> HeaderValue {
        match self {
            Self::Json | Self::JsonBesideCsv => HeaderValue::from_static("application/json"),
            Self::Csv => HeaderValue::from_static("text/csv; charset=utf-8; header=present"),
        }
    }

    /// The request headers that decide the bytes.
    pub(crate) const fn vary(self) -> HeaderValue {
        match self {
            Self::Json => HeaderValue::from_static("Accept-Encoding"),
            Self::JsonBesideCsv | Self::Csv => HeaderValue::from_static("Accept, Accept-Encoding"),
        }
    }
}

impl Answer {
    /// An answer that must not be cached.
    pub(crate) fn of(body: &impl Serialize) -> Result<Self, ApiError> {
        Self::with(body, false)
    }

    /// CSV that must not be cached.
    pub(crate) const fn csv(bytes: Vec<u8>) -> Self {
        Self {
            json: bytes,
            form: Form::Csv,
            is_tagged: false,
            rest: None,
        }
    }

    /// The same answer of a route that also has CSV.
    pub(crate) fn beside_csv(self) -> Self {
        Self {
            form: Form::JsonBesideCsv,
            ..self
        }
    }

    /// An answer with an entity tag for revalidation.
    pub(crate) fn tagged(body: &impl Serialize) -> Result<Self, ApiError> {
        Self::with(body, true)
    }

    /// The same answer with further entries in the list that is the last field of its JSON. The tag then covers the
    /// JSON before the further entries, and `version`.
    pub(crate) fn with_further_entries(
        mut self,
        entries: Box<dyn NextEntries>,
        version: [u8; 32],
    ) -> Result<Self, ApiError> {
        let beginning = self.json.strip_suffix(ENDING).ok_or(Problem::Panicked)?;
        self.json.truncate(beginning.len());
        self.rest = Some(Rest { entries, version });
        Ok(self)
    }

    fn with(body: &impl Serialize, is_tagged: bool) -> Result<Self, ApiError> {
        Ok(Self {
            json: serde_json::to_vec(body)?,
            form: Form::Json,
            is_tagged,
            rest: None,
        })
    }

    /// Chooses the content coding, compares the tag and compresses.
    pub(crate) fn into_reply(
        self,
        preferences: &Preferences,
        expiry_notice: Option<Timestamp>,
        mut memory: Reservation,
    ) -> Result<Reply, ApiError> {
        let coding = if self.rest.is_some() || self.json.len() > COMPRESSED_ABOVE {
            preferences.coding()
        } else {
            Coding::Identity
        };
        let tag = self.is_tagged.then(|| {
            let version = self.rest.as_ref().map(|rest| rest.version.as_slice());
            Tag::of(&[&self.json, version.unwrap_or_default()], coding)
        });
        let is_known = tag.as_ref().is_some_and(|tag| preferences.have(tag));
        let body = match self.rest {
            _ if is_known => Body::NotModified,
            None => Body::Json {
                bytes: coding.encode(self.json).map_err(ApiError::Encoding)?,
                coding,
            },
            Some(rest) => {
                let mut encoder = coding.encoder().map_err(ApiError::Encoding)?;
                Body::Parts {
                    first: encoder.piece(self.json).map_err(ApiError::Encoding)?,
                    coding,
                    rest: RestOfBody {
                        entries: rest.entries,
                        encoder,
                    },
                }
            }
        };
        memory.resize(body.bytes_in_memory())?;
        Ok(Reply {
            body,
            memory,
            tag,
            form: self.form,
            expiry_notice,
        })
    }
}

/// The parts of a successful response.
pub(crate) struct Reply {
    pub(crate) body: Body,
    /// The memory reservation of the body.
    pub(crate) memory: Reservation,
    pub(crate) tag: Option<Tag>,
    pub(crate) form: Form,
    pub(crate) expiry_notice: Option<Timestamp>,
}

/// The body of a successful response.
pub(crate) enum Body {
    /// Empty, with status 304, because the client has the current version.
    NotModified,
    /// JSON, perhaps compressed.
    Json { bytes: Vec<u8>, coding: Coding },
    /// JSON whose further parts are built after the client has received the first.
    Parts {
        first: Vec<u8>,
        coding: Coding,
        rest: RestOfBody,
    },
}

/// The parts of a body that are still to be built.
pub(crate) struct RestOfBody {
    entries: Box<dyn NextEntries>,
    encoder: Encoder,
}

impl RestOfBody {
    /// The next part in the response's coding, and the rest. Blocks on the store.
    pub(crate) fn next(mut self, store: &dyn Store) -> Result<(Vec<u8>, Option<Self>), ApiError> {
        let mut json = vec![b','];
        while let Some(mut entries) = self.entries.next(store)? {
            // A batch is empty if its entries were deleted in the meantime.
            if !entries.is_empty() {
                json.append(&mut entries);
                let piece = self.encoder.piece(json).map_err(ApiError::Encoding)?;
                return Ok((piece, Some(self)));
            }
        }
        let end = self.encoder.end(ENDING.to_vec()).map_err(ApiError::Encoding)?;
        Ok((end, None))
    }
}

/// The JSON of some entries, separated by commas.
pub(crate) fn entries<T: Serialize>(entries: &[T]) -> Result<Vec<u8>, ApiError> {
    let mut json = serde_json::to_vec(entries)?;
    json.pop();
    if !json.is_empty() {
        json.remove(0);
    }
    Ok(json)
}

impl Body {
    /// The bytes that it occupies until the client has received it.
    fn bytes_in_memory(&self) -> usize {
        match self {
            Self::NotModified => 0,
            Self::Json { bytes, .. } => bytes.len(),
            Self::Parts { rest, .. } => IN_PARTS + rest.entries.bytes(),
        }
    }

    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NotModified => StatusCode::NOT_MODIFIED,
            Self::Json { .. } | Self::Parts { .. } => StatusCode::OK,
        }
    }
}
