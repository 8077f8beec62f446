//! A route: its path, its handler and its documentation.

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
    /// Its part of the OpenAPI document. None only for the routes of unknown paths and methods.
    #[cfg(test)]
    pub(crate) operation: Option<assay_openapi::Operation>,
}

/// Declares a route above its handler. The doc comment is the route's text in the OpenAPI document: a summary, the
/// description, and the cost. `query` names the components of its parameters without those of the path, in the order
/// of their checks. `tagged` says whether answers have an `ETag`. `example` names a real answer in `examples`.
macro_rules! route {
    (
        $(#[doc = $doc:literal])+
        $name:ident {
            path: $path:literal,
            handler: $handler:ident,
            id: $id:literal,
            tag: $tag:literal,
            query: [$($query:literal),*],
            large: $large:literal,
            tagged: $tagged:literal,
            answer: $answer:ty,
            example: $example:literal,
        }
    ) => {
        $(#[doc = $doc])+
        pub(super) const $name: $crate::route::Route = $crate::route::Route {
            path: $path,
            handler: $handler,
            is_large: $large,
            #[cfg(test)]
            operation: Some(assay_openapi::Operation {
                id: $id,
                tag: $tag,
                docs: &[$($doc),+],
                query: &[$($query),*],
                tagged: $tagged,
                answer: assay_openapi::register::<$answer>,
                example: include_str!(concat!("examples/", $example, ".json")),
            }),
        };
    };
}
pub(crate) use route;
