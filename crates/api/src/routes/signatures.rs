//! Error signatures: the list of a period, and one with the tests and runs that it hits.

use assay_domain::{
    page::Page,
    project::ProjectTag,
    signature::{Signature, SignatureDetail, SignatureQuery, SignatureSort},
    window::Window,
};
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError};

/// `GET /projects/{projectId}/errors`: the signatures that occurred in the period.
pub(crate) fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let query = call.query();
    let asked = SignatureQuery {
        window: query.window()?,
        branch: query.text("branch")?,
        category: query.word("category")?,
        search: query.text("search")?,
        sort: query.word("sort")?.unwrap_or(SignatureSort::Occurrences),
        page: query.page()?,
        per_page: query.per_page()?,
    };
    let project = call.project()?;
    let found = call.store.signatures(&project, &asked)?;
    Answer::of(&SignatureList {
        project: project.tag(),
        window: asked.window,
        page: found.page,
        sort: asked.sort,
        errors: found.signatures,
        unfingerprinted_count: found.unfingerprinted_count,
    })
}

/// `GET /projects/{projectId}/errors/{fingerprint}`: a signature with the tests it hits and the runs it
/// occurred in.
pub(crate) fn detail(call: &Call<'_>) -> Result<Answer, ApiError> {
    let window = call.query().window()?;
    let project = call.project()?;
    let found = call.store.signature(&project, &call.fingerprint()?, &window)?;
    Answer::of(&SignatureAnswer {
        project: project.tag(),
        window,
        found: found.ok_or(ApiError::SignatureNotFound)?,
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
    window: Window,
    /// Where this page lies in the list.
    page: Page,
    /// The order of the list.
    sort: SignatureSort,
    /// The signatures of this page.
    errors: Vec<Signature>,
    /// Failed attempts of the period without any error text.
    unfingerprinted_count: u64,
}

/// An error signature with the tests and runs that it hits.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct SignatureAnswer {
    /// The project.
    project: ProjectTag,
    /// The period.
    window: Window,
    #[serde(flatten)]
    found: SignatureDetail,
}
