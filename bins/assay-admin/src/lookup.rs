//! Organizations, projects and keys, named by id or by an unambiguous name.

use anyhow::{anyhow, bail};
use assay_cli_terminal::suggest::closest;
use assay_domain::{
    id::{KeyId, OrganizationId, ProjectId},
    project::{Organization, ProjectEntry},
    store::Administration,
};

/// The organization with this id, else with this name.
pub(crate) fn organization(store: &dyn Administration, text: &str) -> anyhow::Result<Organization> {
    let mut organizations = store.organizations()?;
    let id = text.parse::<OrganizationId>().ok();
    let of = |organization: &Organization| (organization.id.to_string(), organization.name.clone());
    let labels: Vec<_> = organizations.iter().map(of).collect();
    let place = find_unique(text, id.map(|id| id.to_string()), &labels, "organization", "org")?;
    Ok(organizations.swap_remove(place))
}

/// The project with this id, else with this name in any organization.
pub(crate) fn project(store: &dyn Administration, text: &str) -> anyhow::Result<ProjectEntry> {
    let mut projects = store.all_projects()?;
    let id = text.parse::<ProjectId>().ok();
    let of = |project: &ProjectEntry| (project.id.to_string(), project.name.clone());
    let labels: Vec<_> = projects.iter().map(of).collect();
    let place = find_unique(text, id.map(|id| id.to_string()), &labels, "project", "project")?;
    Ok(projects.swap_remove(place))
}

/// The organization to delete, by id or name. An organization whose deletion was interrupted is found too.
pub(crate) fn organization_to_delete(store: &dyn Administration, text: &str) -> anyhow::Result<Organization> {
    let hidden = store.unfinished_deletions()?.organizations;
    let is_meant =
        |organization: &Organization| organization.name == text || text.parse().ok() == Some(organization.id);
    organization(store, text).or_else(|error| hidden.into_iter().find(is_meant).ok_or(error))
}

/// The project to delete, by id or name. A project whose deletion was interrupted is found too.
pub(crate) fn project_to_delete(store: &dyn Administration, text: &str) -> anyhow::Result<ProjectEntry> {
    let hidden = store.unfinished_deletions()?.projects;
    let is_meant = |project: &ProjectEntry| project.name == text || text.parse().ok() == Some(project.id);
    project(store, text).or_else(|error| hidden.into_iter().find(is_meant).ok_or(error))
}

/// The error for an unknown key id. It suggests the id that was probably meant.
pub(crate) fn no_key(store: &dyn Administration, id: KeyId) -> anyhow::Result<anyhow::Error> {
    let mut ids = Vec::new();
    for organization in store.organizations()? {
        ids.extend(store.keys(organization.id)?.iter().map(|key| key.id.to_string()));
    }
    let id = id.to_string();
    // Ids of one day are similar, so only a difference of a few characters counts as a slip.
    let slip = ids.iter().find(|other| strsim::levenshtein(&id, other) <= 3);
    let meant = slip.map_or_else(String::new, |meant| format!("did you mean {meant}? "));
    Ok(anyhow!(
        "no key has the id {id}; {meant}`assay-admin key list` shows them"
    ))
}

/// The index of the entry with this id, else of the only one with this name. Each entry is an id and a name.
fn find_unique(
    text: &str,
    id: Option<String>,
    all: &[(String, String)],
    noun: &str,
    group: &str,
) -> anyhow::Result<usize> {
    if let Some(place) = all.iter().position(|(other, _)| Some(other) == id.as_ref()) {
        return Ok(place);
    }
    let matches: Vec<usize> = (0..)
        .zip(all)
        .filter(|(_, (_, name))| name == text)
        .map(|(place, _)| place)
        .collect();
    match matches.as_slice() {
        [only] => Ok(*only),
        [] if all.is_empty() => {
            bail!("there is no {noun} yet; `assay-admin {group} create --help` explains how to make one")
        }
        [] => {
            let meant = closest(text, all.iter().map(|(_, name)| name.as_str()))
                .map(|meant| format!("did you mean {meant:?}? "))
                .unwrap_or_default();
            bail!("no {noun} has the id or name {text:?}; {meant}`assay-admin {group} list` shows them")
        }
        several => {
            let ids: Vec<_> = several
                .iter()
                .filter_map(|place| all.get(*place))
                .map(|(id, _)| id.as_str())
                .collect();
            bail!(
                "{} {noun}s are named {text:?}; give the id of one: {}",
                ids.len(),
                ids.join(", ")
            )
        }
    }
}
