//! The parts of a request, as owned data. They are parsed only after the key is checked.

mod path;
mod query;

use actix_web::HttpRequest;
use assay_http::{Pairs, Preferences};

pub(crate) use self::{path::PathParameters, query::Query};

/// The request's data, owned, so that another thread can use it.
///
/// The data is not parsed before the key is checked. A request without a valid key then costs no more than reading it.
pub(crate) struct RequestParts {
    /// The path as sent. actix-web decodes invalid UTF-8 to U+FFFD, and the result could name another resource.
    path: String,
    query: String,
    pub(crate) preferences: Preferences,
}

impl RequestParts {
    pub(crate) fn of(request: &HttpRequest) -> Self {
        Self {
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            preferences: Preferences::of(request.headers()),
        }
    }

    /// The parameters of the path, which matches `pattern` below `base`.
    pub(crate) fn path_parameters(&self, base: &'static str, pattern: &'static str) -> PathParameters {
        PathParameters::of(&self.path, base, pattern)
    }

    /// The pairs of the query.
    pub(crate) fn pairs(&self) -> Pairs {
        Pairs::of(&self.query)
    }
}
