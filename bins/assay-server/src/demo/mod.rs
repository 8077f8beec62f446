//! The demonstration: sample projects made of real reports, and requests to try.

mod greeting;
mod install;
mod manifest;
mod messages;
mod note;

use std::{
    fs,
    path::{Path, PathBuf, absolute},
};

use anyhow::{Context as _, bail, ensure};

use assay_domain::{
    id::{OrganizationId, ProjectId},
    ingest::IngestTerms,
    key::{KeyKind, Lifetime, mint},
    project::{Organization, ProjectEntry},
    rules::RecordingRules,
    settings::ChatEvent,
    store::{Administration, ProjectChange, Recorder},
    timestamp::{DAY_MS, Timestamp},
};
use assay_flakiness::Engine;
use assay_ingest::{Arrival, Files, Flags, UploadField, ci::CiContext};
use assay_reports::{Options, SourceFile};
use include_dir::{Dir, include_dir};

use manifest::{Import, Manifest, SampleProject};
use note::{Key, Note};

pub(crate) use greeting::{BaseUrls, greeting};
pub(crate) use install::{Consent, install_if_missing};
pub(crate) use messages::DemoMessages;

/// The sample reports and their manifest, embedded in the program so that they are available anywhere.
static SAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../testdata/demo");

/// The maximum age of the samples' reference time at a start, in milliseconds. A later start moves it to the present.
/// The oldest run is 13.3 days older than the reference time, so every sample stays within the last fourteen days.
const MAX_SAMPLE_AGE_MS: i64 = DAY_MS / 2;

/// The sample to send over HTTP. It contains no time, so that it can be sent at any time.
const REPORT: &str = "report.xml";
/// The file with the messages.
const MESSAGES: &str = "messages.txt";

/// The loaded demonstration.
#[derive(Debug)]
pub(crate) struct Demo {
    /// Its projects, in the order of the manifest.
    pub(crate) projects: Vec<ProjectEntry>,
    /// Its read key.
    pub(crate) key: String,
    /// The first project's ingest key.
    pub(crate) ingest_key: Option<String>,
    /// The report to send, in the private database's folder.
    pub(crate) report: PathBuf,
    /// The file with the messages about changes, in the private database's folder.
    pub(crate) messages: PathBuf,
    /// The second attempt of a shard of the first project's newest sharded run.
    pub(crate) rerun: Option<Rerun>,
    /// The expiry of the key.
    pub(crate) key_expires_at: Timestamp,
}

/// A report of a job that ran again.
#[derive(Debug)]
pub(crate) struct Rerun {
    /// The report, in the private database's folder.
    pub(crate) report: PathBuf,
    /// The fields that name its run and shard, and their values.
    pub(crate) fields: Vec<(UploadField, String)>,
}

/// Loads the samples with times in the last fourteen days, and creates a read key or reuses that of an earlier start.
///
/// `folder` is that of the private database. A note in it marks the database as one that the demonstration created. Any
/// other database that has an organization is an error. A later start finds the organization by its name and the runs
/// by their keys. It stores nothing twice, gives old samples new times, and adds samples that an interrupted start did
/// not store.
pub(crate) fn load<S: Administration + Recorder>(
    store: &S,
    folder: &Path,
    now: Timestamp,
) -> anyhow::Result<Demo> {
    let manifest = Manifest::read(&SAMPLES)?;
    let mut note = match Note::read(folder)? {
        Some(note) => note,
        None if store.organizations()?.is_empty() => Note::new(now),
        None => bail!(
            "{} holds a database that the demonstration did not make; name another folder: assay-server --demo --data-dir DIR",
            folder.display()
        ),
    };
    let is_old = now.since_ms(note.dated_at) > MAX_SAMPLE_AGE_MS;
    if is_old {
        note.dated_at = now;
    }
    note.write(folder)?;
    let organization = organization(store, &manifest, now)?;
    let mut existing = store.projects_of(organization.id)?;
    let mut projects = Vec::new();
    for sample in &manifest.projects {
        let project = match existing.iter().position(|project| project.name == sample.name) {
            Some(place) => existing.swap_remove(place),
            None => {
                let project =
                    store.create_project(organization.id, &sample.name, &sample.stable_branch, now)?;
                let change = ProjectChange {
                    chat: Some(Some(ChatEvent::ALL.to_vec())),
                    ..ProjectChange::default()
                };
                store.set_project(project.id, &change, &Engine::default(), now)?;
                project
            }
        };
        for import in &sample.imports {
            store_sample(store, &project, import, (note.dated_at, is_old), now)
                .with_context(|| format!("the sample {}", import.run_key))?;
        }
        projects.push(project);
    }
    let key = match note.key.take() {
        Some(key) if is_usable(store, organization.id, &key, now)? => key,
        Some(_) | None => new_key(store, organization.id, now)?,
    };
    note.key = Some(key.clone());
    let ingest_key = match (note.ingest_key.take(), projects.first()) {
        (Some(key), _) if is_usable(store, organization.id, &key, now)? => Some(key),
        (Some(_) | None, Some(project)) => Some(new_ingest_key(store, project.id, now)?),
        (Some(_) | None, None) => None,
    };
    note.ingest_key = ingest_key.clone();
    note.write(folder)?;
    Ok(Demo {
        projects,
        ingest_key: ingest_key.map(|key| key.text),
        report: write_report(folder, REPORT)?,
        messages: absolute(folder.join(MESSAGES))?,
        rerun: manifest
            .projects
            .first()
            .map(|project| rerun(project, folder, now))
            .transpose()?
            .flatten(),
        key: key.text,
        key_expires_at: key.expires_at,
    })
}

fn organization(
    store: &dyn Administration,
    manifest: &Manifest,
    now: Timestamp,
) -> anyhow::Result<Organization> {
    let expected = &manifest.organization;
    match store
        .organizations()?
        .into_iter()
        .find(|organization| organization.name == expected.name)
    {
        Some(organization) => Ok(organization),
        None => Ok(store.create_organization(&expected.name, expected.plan, now)?),
    }
}

/// The second attempt of the newest sharded run of a project that has one.
fn rerun(project: &SampleProject, folder: &Path, now: Timestamp) -> anyhow::Result<Option<Rerun>> {
    let newest = project
        .imports
        .iter()
        .filter_map(|import| Some((import, import.again.as_deref()?, import.shard.clone()?)))
        .min_by_key(|(import, ..)| import.minutes_ago);
    let Some((import, report, shard)) = newest else {
        return Ok(None);
    };
    let fields = [
        (UploadField::RunKey, Some(import.run_key.clone())),
        (UploadField::Suite, Some(import.suite.clone())),
        (UploadField::Shard, Some(shard)),
        (UploadField::Attempt, Some("2".to_owned())),
        (UploadField::Branch, Some(import.branch.clone())),
        (UploadField::Commit, Some(import.commit.clone())),
        (UploadField::TestedRevision, import.tested_revision.clone()),
        (UploadField::Root, import.root.clone()),
        (UploadField::StartedAt, Some(now.to_string())),
    ];
    Ok(Some(Rerun {
        report: write_report(folder, report)?,
        fields: fields
            .into_iter()
            .filter_map(|(field, value)| Some((field, value?)))
            .collect(),
    }))
}

/// Stores one sample report at its time before `dated_at`. If the samples got new times, it replaces the one of the
/// former time.
fn store_sample(
    recorder: &dyn Recorder,
    project: &ProjectEntry,
    import: &Import,
    (dated_at, is_old): (Timestamp, bool),
    now: Timestamp,
) -> anyhow::Result<()> {
    let files: Vec<SourceFile> = import
        .files
        .iter()
        .map(|name| sample(name))
        .collect::<Result<_, _>>()?;
    let file_counts = Files::of(&files);
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
        attempt: None,
        replace: is_old,
        started_at: Some(dated_at.plus_ms(-import.minutes_ago.saturating_mul(DAY_MS / (24 * 60)))),
        duration_ms: None,
        artifacts_url: None,
    };
    let arrival = Arrival {
        files: file_counts,
        report,
        flags: &flags,
        ci: &CiContext::default(),
        job_started_at: None,
    };
    let prepared = assay_ingest::prepare(arrival, now)?;
    assay_ingest::import(
        recorder,
        &Engine::default(),
        project.id,
        &prepared,
        RecordingRules::Unrestricted,
        now,
    )?;
    Ok(())
}

/// Writes a report to send to a file, so that the repository is not needed.
fn write_report(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let file_name = Path::new(name).file_name().context("a sample without a name")?;
    let path = absolute(folder.join(file_name))?;
    fs::write(&path, sample(name)?.bytes).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
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

/// Whether a key of an earlier start is valid for at least one more day.
fn is_usable(
    store: &dyn Administration,
    organization: OrganizationId,
    key: &Key,
    now: Timestamp,
) -> anyhow::Result<bool> {
    let keys = store.keys(organization)?;
    let entry = keys.iter().find(|entry| entry.id == key.id);
    Ok(entry.is_some_and(|entry| entry.revoked_at.is_none()) && key.expires_at > now.plus_days(1))
}

fn new_key(store: &dyn Administration, organization: OrganizationId, now: Timestamp) -> anyhow::Result<Key> {
    let (secret, new) = mint(KeyKind::Read, now);
    let expires_at = Lifetime::Thirty.expiry(now);
    ensure!(
        store.create_read_key(organization, &new, expires_at)?,
        "the sample organization was deleted meanwhile"
    );
    Ok(Key {
        id: new.id,
        text: secret.reveal().to_owned(),
        expires_at,
    })
}

fn new_ingest_key(store: &dyn Administration, project: ProjectId, now: Timestamp) -> anyhow::Result<Key> {
    let (secret, new) = mint(KeyKind::Ingest, now);
    let expires_at = Lifetime::Thirty.expiry(now);
    let terms = IngestTerms {
        name: Some("demonstration".to_owned()),
        expires_at: Some(expires_at),
        ..IngestTerms::default()
    };
    ensure!(
        store.create_ingest_key(project, &new, &terms)?,
        "the sample project was deleted meanwhile"
    );
    Ok(Key {
        id: new.id,
        text: secret.reveal().to_owned(),
        expires_at,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use assay_testkit::TestDatabase;

    use super::*;

    const RUNS: &str = "SELECT run.id::text || ' ' || extract(epoch FROM run.started_at)::text FROM run";

    /// The start of each run by its id, in seconds.
    fn starts(database: &TestDatabase) -> BTreeMap<String, f64> {
        let rows = database.texts(RUNS).into_iter().map(Option::unwrap);
        rows.map(|row| {
            let (id, start) = row.split_once(' ').unwrap();
            (id.to_owned(), start.parse().unwrap())
        })
        .collect()
    }

    #[test]
    fn a_later_start_moves_the_samples_dates_and_keeps_ids_and_key() {
        let (database, folder) = (TestDatabase::new(), tempfile::tempdir().unwrap());
        let store = database.connect();
        let now = Timestamp::from_unix_ms(1_795_200_363_120);
        let first = load(&store, folder.path(), now).unwrap();
        let before = starts(&database);
        let verdicts = "SELECT project_id::text || test::text || status FROM verdict ORDER BY 1";
        let judged = database.texts(verdicts);

        // Within half a day the samples keep their times.
        let soon = load(&store, folder.path(), now.plus_ms(MAX_SAMPLE_AGE_MS)).unwrap();
        assert_eq!((&soon.key, &soon.projects), (&first.key, &first.projects));
        assert_eq!(starts(&database), before);

        let later = load(&store, folder.path(), now.plus_days(20)).unwrap();
        assert_eq!((&later.key, &later.projects), (&first.key, &first.projects));
        let after = starts(&database);
        assert_eq!(after.len(), before.len());
        for (run, start) in &before {
            assert!((after[run] - start - 20.0 * 86_400.0).abs() < 0.01, "{run}");
        }
        assert_eq!(database.texts(verdicts), judged);

        // An expiring key is replaced.
        let last = load(&store, folder.path(), now.plus_days(30)).unwrap();
        assert_ne!(last.key, first.key);
    }

    #[test]
    fn a_database_with_other_organizations_is_left_alone() {
        let (database, folder) = (TestDatabase::new(), tempfile::tempdir().unwrap());
        let store = database.connect();
        let now = Timestamp::from_unix_ms(1_795_200_363_120);
        store
            .create_organization("Mine", assay_domain::plan::Plan::Pro, now)
            .unwrap();
        let error = load(&store, folder.path(), now).unwrap_err().to_string();
        assert!(error.contains("--data-dir DIR"), "{error}");
        assert_eq!(store.organizations().unwrap().len(), 1);
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }
}
