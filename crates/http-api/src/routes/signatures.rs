//! Error signatures: the list of a period, and one with its tests and runs.

use assay_domain::{
    page::Page,
    period::Period,
    project::ProjectTag,
    signature::{Signature, SignatureDetail, SignatureQuery, SignatureSort},
};
use serde::Serialize;

#[cfg(test)]
use crate::openapi::{Operation, register};
use crate::{answer::Answer, call::Call, error::ApiError, route::Route};

/// `GET /projects/{projectId}/errors`.
pub(super) const LIST: Route = Route {
    path: "/projects/{projectId}/errors",
    handler: list,
    is_large: true,
    #[cfg(test)]
    operation: Some(Operation {
        id: "listErrors",
        tag: "Errors",
        cost: "moderate",
        summary: "List the error signatures of a period",
        description: "The signatures that occurred in the period. Counts cover the period; `firstSeen` covers all visible results.",
        query: &[
            "days",
            "branch",
            "category",
            "errorSearch",
            "errorSort",
            "page",
            "perPage",
        ],
        tagged: false,
        answer: register::<SignatureList>,
        example: include_str!("../openapi/examples/signatures.json"),
    }),
};

/// The signatures that occurred in the period.
fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let query = call.query();
    let query = SignatureQuery {
        period: query.period()?,
        branch: query.text("branch")?,
        category: query.word("category")?,
        search: query.text("search")?,
        sort: query.word("sort")?.unwrap_or(SignatureSort::Occurrences),
        page: query.page()?,
        per_page: query.per_page()?,
    };
    let project = call.project()?;
    let page = call.store.signatures(&project, &query)?;
    Answer::of(&SignatureList {
        project: project.tag(),
        period: query.period,
        page: page.page,
        sort: query.sort,
        errors: page.signatures,
        unfingerprinted_count: page.unfingerprinted_count,
    })
}

/// `GET /projects/{projectId}/errors/{fingerprint}`.
pub(super) const DETAIL: Route = Route {
    path: "/projects/{projectId}/errors/{fingerprint}",
    handler: detail,
    is_large: true,
    #[cfg(test)]
    operation: Some(Operation {
        id: "getError",
        tag: "Errors",
        cost: "moderate",
        summary: "Show an error signature",
        description: "The signature with its counts, its tests and its runs. If it did not occur in the period, `windowEmpty` is true and the figures cover all visible results.",
        query: &["days"],
        tagged: false,
        answer: register::<SignatureAnswer>,
        example: include_str!("../openapi/examples/signature.json"),
    }),
};

/// A signature with its tests and its runs.
fn detail(call: &Call<'_>) -> Result<Answer, ApiError> {
    let period = call.query().period()?;
    let project = call.project()?;
    let detail = call.store.signature(&project, &call.fingerprint()?, &period)?;
    Answer::of(&SignatureAnswer {
        project: project.tag(),
        period,
        detail: detail.ok_or(ApiError::SignatureNotFound)?,
    })
}

/// The error signatures of a period.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct SignatureList {
    /// The project.
    project: ProjectTag,
    /// The period.
    #[serde(rename = "window")]
    period: Period,
    /// The position of this page in the list.
    page: Page,
    /// The order of the list.
    sort: SignatureSort,
    /// The signatures of this page.
    errors: Vec<Signature>,
    /// Failed attempts of the period without any error text.
    unfingerprinted_count: u64,
}

/// An error signature with its tests and runs.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct SignatureAnswer {
    /// The project.
    project: ProjectTag,
    /// The period.
    #[serde(rename = "window")]
    period: Period,
    #[serde(flatten)]
    detail: SignatureDetail,
}
