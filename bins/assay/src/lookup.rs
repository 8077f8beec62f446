//! Organizations and projects, named by id or by an unambiguous name.

use anyhow::bail;
use assay_domain::{
    id::{OrganizationId, ProjectId},
    project::{Organization, ProjectEntry},
    store::Administration,
};

/// The organization of this id, else of this name.
pub(crate) fn organization(store: &dyn Administration, text: &str) -> anyhow::Result<Organization> {
    let all = store.organizations()?;
    if let Ok(id) = text.parse::<OrganizationId>()
        && let Some(found) = all.iter().find(|organization| organization.id == id)
    {
        return Ok(found.clone());
    }
    let named: Vec<_> = all
        .into_iter()
        .filter(|organization| organization.name == text)
        .collect();
    only(named, text, "organization", "org list", |organization| {
        organization.id.to_string()
    })
}

/// The project of this id, else of this name in any organization.
pub(crate) fn project(store: &dyn Administration, text: &str) -> anyhow::Result<ProjectEntry> {
    let all = store.all_projects()?;
    if let Ok(id) = text.parse::<ProjectId>()
        && let Some(found) = all.iter().find(|project| project.id == id)
    {
        return Ok(found.clone());
    }
    let named: Vec<_> = all.into_iter().filter(|project| project.name == text).collect();
    only(named, text, "project", "project list", |project| {
        project.id.to_string()
    })
}

fn only<T>(
    mut named: Vec<T>,
    text: &str,
    noun: &str,
    list: &str,
    id: impl Fn(&T) -> String,
) -> anyhow::Result<T> {
    match (named.pop(), named.as_slice()) {
        (Some(found), []) => Ok(found),
        (Some(last), others) => {
            let ids: Vec<_> = others.iter().chain([&last]).map(id).collect();
            bail!(
                "{} {noun}s are named {text:?}; give the id of one: {}",
                ids.len(),
                ids.join(", ")
            )
        }
        (None, _) => bail!("no {noun} has the id or name {text:?}; `assay {list}` shows them"),
    }
}
