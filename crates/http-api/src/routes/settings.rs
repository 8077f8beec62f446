//! A project's configuration.

use assay_domain::{project::ProjectTag, settings::Settings};
use serde::Serialize;

#[cfg(test)]
use crate::openapi::{Operation, register};
use crate::{answer::Answer, call::Call, error::ApiError, route::Route};

/// `GET /projects/{projectId}/settings`.
pub(super) const SHOW: Route = Route {
    path: "/projects/{projectId}/settings",
    handler: show,
    is_large: false,
    #[cfg(test)]
    operation: Some(Operation {
        id: "getSettings",
        tag: "Projects",
        cost: "cheap",
        summary: "Show a project's configuration",
        description: "The configuration without keys, tokens and webhooks.",
        query: &[],
        tagged: true,
        answer: register::<SettingsAnswer>,
        example: include_str!("../openapi/examples/settings.json"),
    }),
};

/// The configuration, without any secret. Tagged.
fn show(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let settings = call.store.settings(&project)?;
    Answer::tagged(&SettingsAnswer {
        project: project.tag(),
        settings,
    })
}

/// A project's configuration.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct SettingsAnswer {
    /// The project.
    project: ProjectTag,
    /// The configuration.
    settings: Settings,
}
