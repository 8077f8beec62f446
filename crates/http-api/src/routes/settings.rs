//! A project's configuration.

use assay_domain::{project::ProjectTag, settings::Settings};
use serde::Serialize;

use crate::{answer::Answer, call::Call, error::ApiError, route::route};

route! {
    /// Show a project's configuration
    ///
    /// The configuration without keys, tokens and webhooks.
    ///
    /// Cost: cheap.
    SHOW {
        path: "/projects/{projectId}/settings",
        handler: show,
        id: "getSettings",
        tag: "Projects",
        query: [],
        large: false,
        tagged: true,
        answer: SettingsAnswer,
        example: "settings",
    }
}

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
