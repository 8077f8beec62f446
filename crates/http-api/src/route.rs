//! A route: its path, its handler and its documentation.

#[cfg(test)]
use crate::openapi::Operation;
use crate::{answer::Answer, call::Call, error::ApiError};

/// The prefix of every route.
pub const BASE: &str = "/api/v1";

/// Answers a request with a valid key. Runs on a blocking thread.
pub(crate) type Handler = fn(&Call<'_>) -> Result<Answer, ApiError>;

/// A route: the pattern of its path below [`BASE`], and its handler.
pub struct Route {
    /// The pattern, as `/projects/{projectId}`.
    pub path: &'static str,
    pub(crate) handler: Handler,
    /// Whether its answers may be large. Such a route reserves memory before it begins.
    pub(crate) is_large: bool,
    /// Its documentation in the OpenAPI document. None only for the routes of unknown paths and methods.
    #[cfg(test)]
    pub(crate) operation: Option<Operation>,
}
