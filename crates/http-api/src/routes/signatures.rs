//! Error signatures: the list of a period, and one with its tests and runs.

use assay_domain::{
    page::Page,
    period::Period,
    project::ProjectTag,
    signature::{Signature, SignatureDetail, SignatureQuery, SignatureSort},
};
use assay_http::Unanswerable;
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// List the error signatures of a period
    ///
    /// The signatures that occurred in the period. Counts cover the period; `firstSeen` covers all visible results.
    ///
    /// Cost: moderate.
    LIST {
        path: "/projects/{projectId}/errors",
        handler: list,
        id: "listErrors",
        tag: "Errors",
        query: ["days", "branch", "category", "errorSearch", "errorSort", "page", "perPage"],
        large: true,
        tagged: false,
        answer: SignatureList,
        example: "signatures",
    }
}

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

route! {
    /// Show an error signature
    ///
    /// The signature with its counts, its tests and its runs. If it did not occur in the period, `windowEmpty` is
    /// true and the figures cover all visible results.
    ///
    /// Cost: moderate.
    DETAIL {
        path: "/projects/{projectId}/errors/{fingerprint}",
        handler: detail,
        id: "getError",
        tag: "Errors",
        query: ["days"],
        large: true,
        tagged: false,
        answer: SignatureAnswer,
        example: "signature",
    }
}

fn detail(call: &Call<'_>) -> Result<Answer, ApiError> {
    let period = call.query().period()?;
    let project = call.project()?;
    let detail = call.store.signature(&project, &call.fingerprint()?, &period)?;
    Answer::of(&SignatureAnswer {
        project: project.tag(),
        period,
        detail: detail.ok_or(Unanswerable::SignatureNotFound)?,
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
