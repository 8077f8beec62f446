//! A successful answer: its content coding, its entity tag, and whether the client already has it.

use std::fmt::Write as _;

use actix_web::http::header::{
    self, Accept, AcceptEncoding, EntityTag, HeaderMap, HeaderName, HeaderValue, from_comma_delimited,
};
use sha2::{Digest as _, Sha256};

use crate::encoding::Coding;

/// What a request says about the answer's form, as owned data. It is parsed only when it is used, so that a request
/// without a valid key costs no more than reading it.
pub struct Preferences {
    accept: Vec<HeaderValue>,
    accept_encoding: Vec<HeaderValue>,
    if_none_match: Vec<HeaderValue>,
}

impl Preferences {
    /// Those of a request with these headers.
    pub fn of(headers: &HeaderMap) -> Self {
        let values = |name: HeaderName| headers.get_all(name).cloned().collect();
        Self {
            accept: values(header::ACCEPT),
            accept_encoding: values(header::ACCEPT_ENCODING),
            if_none_match: values(header::IF_NONE_MATCH),
        }
    }

    /// The content coding for a body that is long enough.
    pub fn coding(&self) -> Coding {
        match from_comma_delimited(self.accept_encoding.iter()) {
            Ok(accepted) => Coding::negotiate(&AcceptEncoding(accepted)),
            Err(_) => Coding::Identity,
        }
    }

    /// Whether the client prefers CSV to JSON. A header that cannot be parsed prefers JSON.
    pub fn csv(&self) -> bool {
        let accepted = from_comma_delimited(self.accept.iter()).unwrap_or_default();
        let ranked = Accept(accepted).ranked();
        let known = ranked.iter().map(|form| form.essence_str());
        let mut known =
            known.filter(|form| ["text/csv", "application/json", "application/*", "*/*"].contains(form));
        known.next() == Some("text/csv")
    }

    /// Whether the client has the version of this tag. The comparison is weak, as defined for GET.
    pub fn have(&self, tag: &Tag) -> bool {
        let is_star = |value: &HeaderValue| value.as_bytes().trim_ascii() == b"*";
        if self.if_none_match.first().is_some_and(is_star) {
            return true;
        }
        let client_tags: Vec<EntityTag> = from_comma_delimited(self.if_none_match.iter()).unwrap_or_default();
        client_tags.iter().any(|client_tag| client_tag.weak_eq(&tag.0))
    }
}

/// The strong entity tag of a body in one coding. Each coding has its own tag, because equal strong tags mean equal
/// bytes.
pub struct Tag(EntityTag);

impl Tag {
    /// Half a SHA-256 of the parts of the body in hexadecimal, and the coding.
    pub fn of(parts: &[&[u8]], coding: Coding) -> Self {
        let hash = parts
            .iter()
            .fold(Sha256::new(), |hash, part| hash.chain_update(part))
            .finalize();
        let mut tag = String::with_capacity(40);
        for byte in hash.iter().take(16) {
            // Writing to a String cannot fail.
            let _ = write!(tag, "{byte:02x}");
        }
        tag.push_str(coding.tag_suffix());
        Self(EntityTag::new_strong(tag))
    }

    /// The header of the answer.
    pub fn header(&self) -> header::ETag {
        header::ETag(self.0.clone())
    }
}
