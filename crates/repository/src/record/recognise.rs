//! Looks up the run, tests and signatures of a report in a project, without storing it.

use std::collections::BTreeSet;

use assay_domain::{
    project::Project, recording::Recording, rules::RecordingRules, store::RecognisedReport, test::TestOrdinal,
};
use diesel::{PgConnection, QueryDsl as _, RunQueryDsl as _};

use super::{
    intern::{TestKey, known_signatures, known_tests},
    run::{self, KnownRun, RunKey},
};
use crate::db::{
    column::{count, file_hash, short_hash, storable},
    pool::Read,
    schema::project,
};

/// The numbers of a report's run, tests and signatures.
pub(crate) fn recognise(
    connection: &mut PgConnection,
    of: &Project,
    recording: &Recording,
    rules: RecordingRules,
) -> Read<RecognisedReport> {
    let key = RunKey {
        text: &recording.run_key,
        counts_in_verdicts: rules.counts_in_verdicts(),
    };
    let run = KnownRun::find(connection, of.id.0, key)?;
    let context = run::context(run.as_ref(), recording)?;
    let newest: i32 = project::table
        .find(of.id.0)
        .select(project::runs)
        .first(connection)?;
    let keys: Vec<TestKey> = recording
        .tests
        .iter()
        .map(|test| {
            let file = test.test.file_path.as_deref().map(storable);
            (short_hash(&storable(&test.test.name)), file_hash(file.as_deref()))
        })
        .collect();
    let ordinals = known_tests(connection, of.id.0, &keys)?;
    let tests = keys
        .iter()
        .map(|key| ordinals.get(key).map(|ordinal| count(*ordinal)).transpose())
        .collect::<Result<Vec<Option<TestOrdinal>>, _>>()?;
    let fingerprints: BTreeSet<String> = recording
        .tests
        .iter()
        .flat_map(|test| &test.attempts)
        .filter_map(|attempt| attempt.class.as_ref())
        .map(|class| storable(&class.fingerprint))
        .collect();
    let signatures = known_signatures(connection, of.id.0, fingerprints.into_iter().collect())?
        .into_iter()
        .map(|(fingerprint, number)| Ok((fingerprint, count(number)?)))
        .collect::<Result<_, assay_domain::store::StoreError>>()?;
    Ok(RecognisedReport {
        run: run.map(|run| (run.number, run.started_at.0)),
        context,
        next_run: newest.saturating_add(1),
        tests,
        signatures,
    })
}
