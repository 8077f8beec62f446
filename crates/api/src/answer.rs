//! A handler's answer on its way to a response: bytes, entity tag, content coding.

use std::fmt::Write as _;

use actix_web::http::{StatusCode, header::HeaderValue};
use assay_domain::timestamp::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{encoding::Coding, error::ApiError, request::Ask};

/// Bodies up to this many bytes are not compressed: it would cost more than it saves.
const COMPRESSED_ABOVE: usize = 16 * 1024;

/// What most answers have room in, lists aside.
const ROOM: usize = 2048;

/// What a handler answers.
pub(crate) struct Answer {
    json: Vec<u8>,
    caching: Caching,
}

/// What a client may do with an answer besides reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Nothing.
    None,
    /// Keep it, and ask by its tag whether it still holds.
    Revalidate,
}

impl Caching {
    pub(crate) const fn header(self) -> HeaderValue {
        match self {
            Self::None => HeaderValue::from_static("private, no-store"),
            Self::Revalidate => HeaderValue::from_static("private, no-cache"),
        }
    }
}

impl Answer {
    /// An answer that holds only now.
    pub(crate) fn of(body: &impl Serialize) -> Result<Self, ApiError> {
        Self::with(body, Caching::None)
    }

    /// An answer that carries a tag, by which a client can ask whether it still holds.
    pub(crate) fn tagged(body: &impl Serialize) -> Result<Self, ApiError> {
        Self::with(body, Caching::Revalidate)
    }

    /// An answer that holds only now, in whose last and innermost object `members` come behind its own. They are JSON
    /// already, of an object without its braces, and are passed on unread.
    pub(crate) fn with_members(body: &impl Serialize, members: &str) -> Result<Self, ApiError> {
        let mut json = Vec::with_capacity(members.len() + ROOM);
        serde_json::to_writer(&mut json, body)?;
        let closing = json.iter().rev().take_while(|byte| **byte == b'}').count();
        json.truncate(json.len() - closing);
        json.push(b',');
        json.extend_from_slice(members.as_bytes());
        json.extend(std::iter::repeat_n(b'}', closing));
        Ok(Self {
            json,
            caching: Caching::None,
        })
    }

    fn with(body: &impl Serialize, caching: Caching) -> Result<Self, ApiError> {
        let json = serde_json::to_vec(body)?;
        Ok(Self { json, caching })
    }

    /// Chooses the content coding, compares the tag and compresses. The tag is a strong one: each coding has
    /// its own, since strong means equal bytes.
    pub(crate) fn into_reply(self, ask: &Ask, expiry_notice: Option<Timestamp>) -> Result<Reply, ApiError> {
        let coding = if self.json.len() > COMPRESSED_ABOVE {
            ask.coding()
        } else {
            Coding::Identity
        };
        let tag = match self.caching {
            Caching::None => None,
            Caching::Revalidate => Some(tag(&self.json, coding)),
        };
        let body = match &tag {
            Some(tag) if ask.has_version(tag) => Body::NotModified,
            Some(_) | None => Body::Json {
                bytes: coding.encode(self.json).map_err(ApiError::Encoding)?,
                coding,
            },
        };
        Ok(Reply {
            body,
            tag,
            caching: self.caching,
            expiry_notice,
        })
    }
}

/// Everything that a successful response is made of.
pub(crate) struct Reply {
    pub(crate) body: Body,
    pub(crate) tag: Option<String>,
    pub(crate) caching: Caching,
    pub(crate) expiry_notice: Option<Timestamp>,
}

/// The body of a successful response.
pub(crate) enum Body {
    /// The client has it already.
    NotModified,
    /// JSON, perhaps compressed.
    Json { bytes: Vec<u8>, coding: Coding },
}

impl Body {
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NotModified => StatusCode::NOT_MODIFIED,
            Self::Json { .. } => StatusCode::OK,
        }
    }
}

/// Half a SHA-256 of the JSON in hexadecimal, and the coding.
fn tag(json: &[u8], coding: Coding) -> String {
    let hash = Sha256::digest(json);
    let mut tag = String::with_capacity(40);
    for byte in hash.iter().take(16) {
        // Writing to a String does not fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push_str(coding.tag_suffix());
    tag
}
