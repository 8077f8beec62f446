//! Numbers for tests, signatures and browsers: stored ones, and new ones for new names.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_domain::{
    recording::Recording,
    signature::ErrorClass,
    test::{ShownAs, TestName},
};
use diesel::{
    prelude::*,
    sql_types::{Array, Integer, Text, Timestamptz, Uuid as SqlUuid},
};
use uuid::Uuid;

use crate::db::{
    column::{At, file_hash, short_hash, storable},
    schema::{browser, project, signature, test},
    sql_statement::SqlStatement,
};

/// Whether a project stores names without the parts that change from run to run. True for an absent project.
pub(super) fn stores_stable_names(connection: &mut PgConnection, of: Uuid) -> QueryResult<bool> {
    let stored: Option<bool> = project::table
        .find(of)
        .select(project::stable_names)
        .first(connection)
        .optional()?;
    Ok(stored.unwrap_or(true))
}

/// How many numbers of each kind a project has used.
#[derive(Debug, Clone, Copy, Queryable)]
pub(super) struct Numbers {
    runs: i32,
    tests: i32,
    signatures: i32,
    browsers: i32,
}

impl Numbers {
    /// The number of a new run, from 1.
    pub(super) fn next_run(&mut self) -> i32 {
        self.runs += 1;
        self.runs
    }

    pub(super) fn store(
        &self,
        connection: &mut PgConnection,
        of: Uuid,
        observed: Uuid,
    ) -> QueryResult<usize> {
        diesel::update(project::table.find(of))
            .set((
                project::runs.eq(self.runs),
                project::tests.eq(self.tests),
                project::signatures.eq(self.signatures),
                project::browsers.eq(self.browsers),
                project::observed.eq(observed),
            ))
            .execute(connection)
    }
}

impl Numbers {
    /// Whether the project has more tests than when it had the numbers `before`.
    pub(super) const fn have_more_tests(&self, before: &Self) -> bool {
        self.tests > before.tests
    }

    /// Whether the project has outgrown the statistics of Postgres since it had the numbers `before`.
    pub(super) fn have_outgrown(&self, before: &Self) -> bool {
        let grew = |before, now| growth_level(now) > growth_level(before);
        grew(before.tests, self.tests) || grew(before.signatures, self.signatures)
    }
}

/// The number of tests or signatures from which a plan for a project without statistics is slow.
const NEEDS_STATISTICS: i32 = 1_000;

/// How often a number has grown fourfold since it needs statistics. Statistics of a quarter of the rows still make
/// Postgres look up each row by its key.
fn growth_level(number: i32) -> u32 {
    (number / NEEDS_STATISTICS)
        .checked_ilog2()
        .map_or(0, |doublings| 1 + doublings / 2)
}

/// The numbers of a recording's tests, signatures and browsers.
#[derive(Default)]
pub(super) struct RecordingOrdinals {
    /// Each test's, in the recording's order.
    pub(super) tests: Vec<i32>,
    signatures: HashMap<String, i32>,
    browsers: HashMap<String, i32>,
}

impl RecordingOrdinals {
    pub(super) fn load(
        connection: &mut PgConnection,
        project: Uuid,
        recording: &Recording,
        numbers: &mut Numbers,
    ) -> QueryResult<Self> {
        Ok(Self {
            tests: tests(connection, project, recording, &mut numbers.tests)?,
            signatures: signatures(connection, project, recording, &mut numbers.signatures)?,
            browsers: browsers(connection, project, recording, &mut numbers.browsers)?,
        })
    }

    /// The number of a class's signature.
    pub(super) fn signature(&self, class: &ErrorClass) -> Option<i32> {
        self.signatures.get(&class.fingerprint).copied()
    }

    /// The number of a browser; 0 for none.
    pub(super) fn browser(&self, name: Option<&str>) -> i32 {
        name.and_then(|name| self.browsers.get(name).copied())
            .unwrap_or(0)
    }
}

#[derive(Insertable)]
#[diesel(table_name = test, treat_none_as_default_value = false)]
struct NewTest {
    project_id: Uuid,
    ordinal: i32,
    name: String,
    file_path: Option<String>,
    name_hash: Vec<u8>,
    file_hash: Vec<u8>,
    written_name: Option<String>,
    shown_at: Option<At>,
}

fn tests(
    connection: &mut PgConnection,
    project: Uuid,
    recording: &Recording,
    used_ordinals: &mut i32,
) -> QueryResult<Vec<i32>> {
    let texts: Vec<(String, Option<String>)> = recording
        .tests
        .iter()
        .map(|test| {
            (
                storable(&test.test.name),
                test.test.file_path.as_deref().map(storable),
            )
        })
        .collect();
    let keys: Vec<TestKey> = texts
        .iter()
        .map(|(name, file)| (short_hash(name), file_hash(file.as_deref())))
        .collect();
    let mut stored_ordinals = known_tests(connection, project, &keys)?;
    let mut new = Vec::new();
    let mut shown: Vec<(i32, &ShownAs)> = Vec::new();
    let mut ordinals = Vec::with_capacity(keys.len());
    let recorded = recording.tests.iter().map(|test| &test.shown_as);
    for (((name, file_path), key), shown_as) in texts.into_iter().zip(keys).zip(recorded) {
        let is_shown_otherwise = *shown_as != ShownAs::default();
        if is_shown_otherwise && let Some(known) = stored_ordinals.get(&key) {
            shown.push((*known, shown_as));
        }
        let ordinal = *stored_ordinals
            .entry(key)
            .or_insert_with_key(|(name_hash, file_hash)| {
                let ordinal = *used_ordinals;
                *used_ordinals += 1;
                new.push(NewTest {
                    project_id: project,
                    ordinal,
                    name,
                    file_path: shown_as.file_path.as_deref().map(storable).or(file_path),
                    name_hash: name_hash.clone(),
                    file_hash: file_hash.clone(),
                    written_name: shown_as.name.as_deref().map(storable),
                    shown_at: is_shown_otherwise.then_some(At(recording.started_at)),
                });
                ordinal
            });
        ordinals.push(ordinal);
    }
    if !new.is_empty() {
        diesel::copy_from(test::table)
            .from_insertable(new)
            .execute(connection)?;
    }
    show(connection, project, recording, &shown)?;
    Ok(ordinals)
}

/// Changes how known tests are shown, unless a newer result already did.
fn show(
    connection: &mut PgConnection,
    project_id: Uuid,
    recording: &Recording,
    shown: &[(i32, &ShownAs)],
) -> QueryResult<()> {
    // Raw SQL, because diesel has no rows from arrays.
    let mut change = |column: &str, text_of: fn(&ShownAs) -> Option<&str>| {
        let texts = shown.iter().filter_map(|(ordinal, shown_as)| {
            let text = text_of(shown_as)?;
            Some((*ordinal, storable(text)))
        });
        let (ordinals, texts): (Vec<i32>, Vec<String>) = texts.unzip();
        if ordinals.is_empty() {
            return Ok(0);
        }
        diesel::sql_query(format!(
            "UPDATE test SET {column} = shown.text, shown_at = $4 FROM unnest($2, $3) AS shown (ordinal, text) \
             WHERE test.project_id = $1 AND test.ordinal = shown.ordinal AND test.{column} IS DISTINCT FROM shown.text \
             AND coalesce(test.shown_at, $4) <= $4"
        ))
        .bind::<SqlUuid, _>(project_id)
        .bind::<Array<Integer>, _>(ordinals)
        .bind::<Array<Text>, _>(texts)
        .bind::<Timestamptz, _>(At(recording.started_at))
        .execute(connection)
    };
    change("written_name", |shown_as| shown_as.name.as_deref())?;
    if change("file_path", |shown_as| shown_as.file_path.as_deref())? > 0 {
        diesel::update(project::table.find(project_id))
            .set(project::test_changes.eq(project::test_changes + 1))
            .execute(connection)?;
    }
    Ok(())
}

/// The hashes of a test's name and of its file.
pub(super) type TestKey = (Vec<u8>, Vec<u8>);

/// The numbers of the tests that the API shows with these names and files.
///
/// The hash of a file is that of a test's identity. A file that was found in the checkout is shown in its place.
pub(super) fn shown_tests(
    connection: &mut PgConnection,
    project: Uuid,
    tests: &[(String, Option<String>)],
) -> QueryResult<Vec<Option<i32>>> {
    let names: Vec<Vec<u8>> = tests.iter().map(|(name, _)| short_hash(name)).collect();
    let hashes: Vec<Vec<u8>> = tests.iter().map(|(_, file)| file_hash(file.as_deref())).collect();
    let files: Vec<Option<&str>> = tests.iter().map(|(_, file)| file.as_deref()).collect();
    // The one with the requested identity comes last.
    let rows: Vec<(i64, i32)> = SqlStatement::new(
        "SELECT requested.place, test.ordinal FROM unnest({names}, {hashes}, {files}) WITH ORDINALITY \
             AS requested (name_hash, file_hash, file_path, place) \
         JOIN test ON test.project_id = {project} AND test.name_hash = requested.name_hash \
             AND (test.file_hash = requested.file_hash OR test.file_path = requested.file_path) \
         ORDER BY requested.place, test.file_hash = requested.file_hash",
    )
    .bind("names", &*names)
    .bind("hashes", &*hashes)
    .bind("files", &*files)
    .bind("project", project)
    .load(connection)?;
    let mut ordinals = vec![None; tests.len()];
    for (place, ordinal) in rows {
        // The test whose identity has the file comes last.
        let place = usize::try_from(place - 1).ok();
        if let Some(found) = place.and_then(|place| ordinals.get_mut(place)) {
            *found = Some(ordinal);
        }
    }
    Ok(ordinals)
}

/// The numbers of the tests that are known.
pub(super) fn known_tests(
    connection: &mut PgConnection,
    project: Uuid,
    keys: &[TestKey],
) -> QueryResult<HashMap<TestKey, i32>> {
    let requested: BTreeSet<&TestKey> = keys.iter().collect();
    let (names, files): (Vec<Vec<u8>>, Vec<Vec<u8>>) = requested.into_iter().cloned().unzip();
    let rows: Vec<(TestKey, i32)> = SqlStatement::new(
        "SELECT test.name_hash, test.file_hash, test.ordinal \
         FROM unnest({names}, {files}) AS requested (name_hash, file_hash) \
         JOIN test ON test.project_id = {project} AND test.name_hash = requested.name_hash \
             AND test.file_hash = requested.file_hash",
    )
    .bind("names", &*names)
    .bind("files", &*files)
    .bind("project", project)
    .load(connection)?;
    Ok(rows.into_iter().collect())
}

/// The numbers of those of these tests that a project has.
pub(super) fn known_of(
    connection: &mut PgConnection,
    project: Uuid,
    tests: &[TestName],
) -> QueryResult<Vec<i32>> {
    let key = |test: &TestName| {
        let file = test.file_path.as_deref().map(storable);
        (short_hash(&storable(&test.name)), file_hash(file.as_deref()))
    };
    let keys: Vec<TestKey> = tests.iter().map(key).collect();
    Ok(known_tests(connection, project, &keys)?.into_values().collect())
}

#[derive(Insertable)]
#[diesel(table_name = signature, treat_none_as_default_value = false)]
pub(crate) struct NewSignature {
    project_id: Uuid,
    pub(crate) ordinal: i32,
    fingerprint: String,
    version: i16,
    title: String,
    category: &'static str,
}

impl NewSignature {
    pub(crate) fn of(project_id: Uuid, ordinal: i32, class: &ErrorClass) -> Self {
        Self {
            project_id,
            ordinal,
            fingerprint: storable(&class.fingerprint),
            version: i16::try_from(class.version).unwrap_or(i16::MAX),
            title: storable(&class.title),
            category: class.category.as_str(),
        }
    }
}

fn signatures(
    connection: &mut PgConnection,
    project: Uuid,
    recording: &Recording,
    used_ordinals: &mut i32,
) -> QueryResult<HashMap<String, i32>> {
    let attempts = recording.tests.iter().flat_map(|test| &test.attempts);
    // Ordered, so that equal reports number their signatures equally.
    let classes: BTreeMap<&str, &ErrorClass> = attempts
        .filter_map(|attempt| attempt.class.as_ref())
        .map(|class| (class.fingerprint.as_str(), class))
        .collect();
    if classes.is_empty() {
        return Ok(HashMap::new());
    }
    let fingerprints: Vec<String> = classes.keys().map(|text| storable(text)).collect();
    let mut stored_ordinals = known_signatures(connection, project, fingerprints.iter().map(String::as_str))?;
    let mut new = Vec::new();
    for (fingerprint, class) in classes {
        stored_ordinals.entry(fingerprint.to_owned()).or_insert_with(|| {
            let ordinal = *used_ordinals;
            *used_ordinals += 1;
            new.push(NewSignature::of(project, ordinal, class));
            ordinal
        });
    }
    if !new.is_empty() {
        diesel::copy_from(signature::table)
            .from_insertable(new)
            .execute(connection)?;
    }
    Ok(stored_ordinals)
}

/// The ordinals of the stored ones of these fingerprints.
pub(super) fn known_signatures<'a>(
    connection: &mut PgConnection,
    project: Uuid,
    fingerprints: impl Iterator<Item = &'a str>,
) -> QueryResult<HashMap<String, i32>> {
    let fingerprints: Vec<&str> = fingerprints.collect();
    // A join, because Postgres would scan a list for each signature.
    let rows: Vec<(String, i32)> = SqlStatement::new(
        "SELECT signature.fingerprint, signature.ordinal FROM unnest({fingerprints}) AS requested (fingerprint) \
         JOIN signature ON signature.project_id = {project} AND signature.fingerprint = requested.fingerprint",
    )
    .bind("fingerprints", &*fingerprints)
    .bind("project", project)
    .load(connection)?;
    Ok(rows.into_iter().collect())
}

#[derive(Insertable)]
#[diesel(table_name = browser, treat_none_as_default_value = false)]
struct NewBrowser {
    project_id: Uuid,
    ordinal: i32,
    name: String,
    name_hash: Vec<u8>,
}

fn browsers(
    connection: &mut PgConnection,
    project: Uuid,
    recording: &Recording,
    used_ordinals: &mut i32,
) -> QueryResult<HashMap<String, i32>> {
    let attempts = recording.tests.iter().flat_map(|test| &test.attempts);
    let names: BTreeMap<&str, Vec<u8>> = attempts
        .filter_map(|attempt| attempt.attempt.browser.as_deref())
        .map(|name| (name, short_hash(&storable(name))))
        .collect();
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let hashes: Vec<&Vec<u8>> = names.values().collect();
    let rows: Vec<(Vec<u8>, i32)> = browser::table
        .filter(browser::project_id.eq(project))
        .filter(browser::name_hash.eq_any(hashes))
        .select((browser::name_hash, browser::ordinal))
        .load(connection)?;
    let mut stored_ordinals: HashMap<Vec<u8>, i32> = rows.into_iter().collect();
    let mut new = Vec::new();
    let mut numbers = HashMap::new();
    for (name, hash) in names {
        let ordinal = *stored_ordinals.entry(hash).or_insert_with_key(|hash| {
            *used_ordinals += 1;
            new.push(NewBrowser {
                project_id: project,
                ordinal: *used_ordinals,
                name: storable(name),
                name_hash: hash.clone(),
            });
            *used_ordinals
        });
        numbers.insert(name.to_owned(), ordinal);
    }
    if !new.is_empty() {
        diesel::copy_from(browser::table)
            .from_insertable(new)
            .execute(connection)?;
    }
    Ok(numbers)
}
