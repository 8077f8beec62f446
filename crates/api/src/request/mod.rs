//! The parts of a request, as owned data. They are parsed only after the key is checked.

mod query;
pub(crate) mod text;

use actix_web::{
    HttpRequest,
    http::header::{self, AcceptEncoding, EntityTag, HeaderName, HeaderValue, from_comma_delimited},
};

use assay_listener::Coding;

pub(crate) use self::{
    query::Query,
    text::{Pairs, PathParameters},
};
use crate::routes::Route;

/// The request's data, owned, so that another thread can use it.
///
/// The data is not parsed before the key is checked. A request without a valid key then costs no more than reading it.
pub(crate) struct RequestParts {
    /// The path as sent. actix-web decodes invalid UTF-8 to U+FFFD, and the result could name another resource.
    path: String,
    query: String,
    accept_encoding: Vec<HeaderValue>,
    if_none_match: Vec<HeaderValue>,
}

impl RequestParts {
    pub(crate) fn of(request: &HttpRequest) -> Self {
        Self {
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            accept_encoding: values(request, header::ACCEPT_ENCODING),
            if_none_match: values(request, header::IF_NONE_MATCH),
        }
    }

    /// The parameters of the path, which matches `route`.
    pub(crate) fn path_parameters(&self, route: &'static Route) -> PathParameters {
        PathParameters::of(&self.path, route.path)
    }

    /// The pairs of the query.
    pub(crate) fn pairs(&self) -> Pairs {
        Pairs::of(&self.query)
    }

    /// The content coding for a body that is long enough.
    pub(crate) fn coding(&self) -> Coding {
        match from_comma_delimited(self.accept_encoding.iter()) {
            Ok(accepted) => Coding::negotiate(&AcceptEncoding(accepted)),
            Err(_) => Coding::Identity,
        }
    }

    /// Whether the client has the version of this strong tag. The comparison is weak, as defined for GET.
    pub(crate) fn has_version(&self, tag: &str) -> bool {
        let is_star = |value: &HeaderValue| value.as_bytes().trim_ascii() == b"*";
        if self.if_none_match.first().is_some_and(is_star) {
            return true;
        }
        let current = EntityTag::new_strong(tag.to_owned());
        let client_tags: Vec<EntityTag> = from_comma_delimited(self.if_none_match.iter()).unwrap_or_default();
        client_tags.iter().any(|tag| tag.weak_eq(&current))
    }
}

fn values(request: &HttpRequest, name: HeaderName) -> Vec<HeaderValue> {
    request.headers().get_all(name).cloned().collect()
}
