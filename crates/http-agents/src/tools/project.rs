//! Selects the project of a call.

use assay_domain::{
    id::ProjectId,
    project::{Project, ProjectEntry},
};

use super::call::Call;
use crate::error::ToolError;

impl Call<'_> {
    /// The project in the arguments, or the key's only project.
    pub(super) fn project(&self) -> Result<Project, ToolError> {
        match self.project_if_one()? {
            Ok(project) => Ok(project),
            Err(projects) => {
                let names = projects.into_iter().map(|project| project.name).collect();
                let message = "The key has access to several projects: name one with `project`.";
                Err(ToolError::new(message).with_candidates(names))
            }
        }
    }

    /// The project in the arguments, or the key's only project. If the call names no project and the key has several,
    /// returns them as the inner error.
    pub(super) fn project_if_one(&self) -> Result<Result<Project, Vec<ProjectEntry>>, ToolError> {
        let selector = self.arguments.text("project")?;
        if let Some(id) = selector.as_ref().and_then(|text| text.parse::<ProjectId>().ok())
            && let Some(project) = self.directory.project(&self.caller, id, self.now)?
        {
            return Ok(Ok(project));
        }
        let projects = self.store.projects(&self.caller)?;
        let entry = match &selector {
            Some(name) => projects.iter().find(|project| project.name == *name),
            None if projects.is_empty() => {
                return Err(ToolError::new(
                    "The key has access to no project yet. A project is created with `assay-admin project create`.",
                ));
            }
            None if projects.len() == 1 => projects.first(),
            None => return Ok(Err(projects)),
        };
        let missing = || {
            let mut names: Vec<_> = projects.iter().map(|project| project.name.clone()).collect();
            let selector = selector.as_deref().unwrap_or_default();
            if selector.parse::<ProjectId>().is_ok() {
                // No name is similar to an id.
                names.sort();
                return ToolError::new("No project of the key has this id.").with_candidates(names);
            }
            names.sort_by(|left, right| {
                strsim::jaro_winkler(right, selector).total_cmp(&strsim::jaro_winkler(left, selector))
            });
            ToolError::new("There is no such project.").with_candidates(names)
        };
        let id = entry.ok_or_else(missing)?.id;
        let project = self.directory.project(&self.caller, id, self.now)?;
        project.ok_or_else(missing).map(Ok)
    }
}
