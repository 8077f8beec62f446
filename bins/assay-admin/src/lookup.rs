//! Organizations, projects and keys, named by id or by an unambiguous name.

use std::{fmt::Display, str::FromStr};

use anyhow::{anyhow, bail};
use assay_cli_terminal::suggest::closest;
use assay_domain::{
    id::KeyId,
    key::KeyEntry,
    project::{Organization, ProjectEntry},
    store::Administration,
};

/// The organization with this id, else with this name.
pub(crate) fn organization(store: &dyn Administration, text: &str) -> anyhow::Result<Organization> {
    let of = |organization: &Organization| (organization.id, organization.name.clone());
    find_unique(text, store.organizations()?, of, "organization", "org")
}

/// The named organization, else all.
pub(crate) fn organizations(
    store: &dyn Administration,
    text: Option<&str>,
) -> anyhow::Result<Vec<Organization>> {
    match text {
        Some(text) => Ok(vec![organization(store, text)?]),
        None => Ok(store.organizations()?),
    }
}

/// The project with this id, else with this name in any organization.
pub(crate) fn project(store: &dyn Administration, text: &str) -> anyhow::Result<ProjectEntry> {
    let of = |project: &ProjectEntry| (project.id, project.name.clone());
    find_unique(text, store.all_projects()?, of, "project", "project")
}

/// The named project, else all.
pub(crate) fn projects(store: &dyn Administration, text: Option<&str>) -> anyhow::Result<Vec<ProjectEntry>> {
    match text {
        Some(text) => Ok(vec![project(store, text)?]),
        None => Ok(store.all_projects()?),
    }
}

/// Every key, oldest first in each organization.
pub(crate) fn keys(store: &dyn Administration) -> anyhow::Result<Vec<KeyEntry>> {
    let mut keys = Vec::new();
    for organization in store.organizations()? {
        keys.extend(store.keys(organization.id)?);
    }
    Ok(keys)
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
    let ids: Vec<_> = keys(store)?.iter().map(|key| key.id.to_string()).collect();
    let id = id.to_string();
    // Ids of one day are similar, so only a difference of a few characters counts as a slip.
    let slip = ids.iter().find(|other| strsim::levenshtein(&id, other) <= 3);
    let meant = slip.map_or_else(String::new, |meant| format!("did you mean {meant}? "));
    Ok(anyhow!(
        "no key has the id {id}; {meant}`assay-admin key list` shows them"
    ))
}

/// The entry with this id, else the only one with this name.
fn find_unique<T, I: FromStr + PartialEq + Display>(
    text: &str,
    mut all: Vec<T>,
    of: impl Fn(&T) -> (I, String),
    noun: &str,
    group: &str,
) -> anyhow::Result<T> {
    let id = text.parse::<I>().ok();
    if let Some(place) = all.iter().position(|entry| Some(of(entry).0) == id) {
        return Ok(all.swap_remove(place));
    }
    let labels: Vec<(I, String)> = all.iter().map(&of).collect();
    let matches: Vec<(usize, &(I, String))> =
        (0..).zip(&labels).filter(|(_, (_, name))| name == text).collect();
    match matches.as_slice() {
        [(only, _)] => Ok(all.swap_remove(*only)),
        [] if all.is_empty() => {
            bail!("there is no {noun} yet; `assay-admin {group} create --help` explains how to make one")
        }
        [] => {
            let meant = closest(text, labels.iter().map(|(_, name)| name.as_str()))
                .map(|meant| format!("did you mean {meant:?}? "))
                .unwrap_or_default();
            bail!("no {noun} has the id or name {text:?}; {meant}`assay-admin {group} list` shows them")
        }
        several => {
            let ids: Vec<_> = several.iter().map(|(_, (id, _))| id.to_string()).collect();
            bail!(
                "{} {noun}s are named {text:?}; give the id of one: {}",
                ids.len(),
                ids.join(", ")
            )
        }
    }
}
