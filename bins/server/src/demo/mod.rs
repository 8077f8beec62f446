//! The demonstration: sample projects out of real reports, and what to try with them.

mod greeting;
mod manifest;

use anyhow::{Context as _, ensure};
use assay_access::{key::mint, lifetime::Lifetime};
use assay_domain::{
    id::OrganizationId,
    key::KeyKind,
    project::{Organization, ProjectEntry},
    store::{Administration, Recorder},
    timestamp::{DAY_MS, Timestamp},
};
use assay_flakiness::Engine;
use assay_ingest::{Arrival, Files, Flags};
use assay_reports::{Options, SourceFile, ci::CiContext};
use include_dir::{Dir, include_dir};

use manifest::{Import, Manifest};

pub(crate) use greeting::greeting;

/// The sample reports and their manifest, part of the program so that they are found from anywhere.
static SAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../testdata/demo");

/// The loaded demonstration.
#[derive(Debug)]
pub(crate) struct Demo {
    /// Its projects, as the manifest orders them.
    pub(crate) projects: Vec<ProjectEntry>,
    /// The text of a read key that was made for this start.
    pub(crate) key: String,
    /// When the key ceases to work.
    pub(crate) key_expires_at: Timestamp,
    /// Whether the sample organization was there before.
    pub(crate) again: bool,
}

/// Loads the samples, dated into the fortnight before the first start, and makes a read key.
///
/// Started again it finds its organization by name and its runs by their keys: nothing is stored twice, and what a
/// killed first start left out is added.
pub(crate) fn load<S: Administration + Recorder>(store: &S, now: Timestamp) -> anyhow::Result<Demo> {
    let manifest = Manifest::read(&SAMPLES)?;
    let (organization, again) = organization(store, &manifest, now)?;
    let mut existing = store.projects_of(organization.id)?;
    let mut projects = Vec::new();
    for sample in &manifest.projects {
        let project = match existing.iter().position(|project| project.name == sample.name) {
            Some(place) => existing.swap_remove(place),
            None => store.create_project(organization.id, &sample.name, &sample.stable_branch, now)?,
        };
        for import in &sample.imports {
            store_sample(store, &project, import, organization.created_at, now)
                .with_context(|| format!("the sample {}", import.run_key))?;
        }
        projects.push(project);
    }
    let (key, key_expires_at) = read_key(store, organization.id, now)?;
    Ok(Demo {
        projects,
        key,
        key_expires_at,
        again,
    })
}

fn organization(
    store: &dyn Administration,
    manifest: &Manifest,
    now: Timestamp,
) -> anyhow::Result<(Organization, bool)> {
    let wanted = &manifest.organization;
    match store
        .organizations()?
        .into_iter()
        .find(|found| found.name == wanted.name)
    {
        Some(found) => Ok((found, true)),
        None => Ok((store.create_organization(&wanted.name, wanted.plan, now)?, false)),
    }
}

/// Stores one sample report as of its day before the first start.
fn store_sample(
    recorder: &dyn Recorder,
    project: &ProjectEntry,
    import: &Import,
    first_start: Timestamp,
    now: Timestamp,
) -> anyhow::Result<()> {
    let files: Vec<SourceFile> = import
        .files
        .iter()
        .map(|name| sample(name))
        .collect::<Result<_, _>>()?;
    let counted = Files::of(&files);
    let report = assay_reports::read(
        files,
        &Options {
            root: import.root.as_deref(),
            ..Options::default()
        },
    )?;
    let flags = Flags {
        run_key: Some(import.run_key.clone()),
        shard: import.shard()?,
        context: import.context(),
        started_at: Some(first_start.plus_ms(-import.minutes_ago.saturating_mul(DAY_MS / (24 * 60)))),
        duration_ms: None,
    };
    let arrival = Arrival {
        files: counted,
        report,
        flags: &flags,
        ci: &CiContext::default(),
        job_started_at: None,
    };
    let prepared = assay_ingest::prepare(arrival, now)?;
    assay_ingest::import(recorder, &Engine::default(), project.id, &prepared, now)?;
    Ok(())
}

fn sample(name: &str) -> anyhow::Result<SourceFile> {
    let file = SAMPLES
        .get_file(name)
        .with_context(|| format!("the manifest names {name}, which is missing"))?;
    Ok(SourceFile {
        name: name.to_owned(),
        bytes: file.contents().to_vec(),
        modified: None,
    })
}

/// A new read key: those of earlier starts still work, but no one can look up their text.
fn read_key(
    store: &dyn Administration,
    organization: OrganizationId,
    now: Timestamp,
) -> anyhow::Result<(String, Timestamp)> {
    let (secret, new) = mint(KeyKind::Read, now);
    let expires_at = Lifetime::Thirty.expiry(now);
    ensure!(
        store.create_read_key(organization, &new, expires_at)?,
        "the sample organization was deleted meanwhile"
    );
    Ok((secret.reveal().to_owned(), expires_at))
}
