//! The parts in which the tests of a large run are read, and a version of each part.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use assay_domain::{
    id::RunId,
    run::{RunPart, RunRest, RunResult},
    test_names::TestNameRef,
};
use diesel::{pg::PgRowByRowLoadingMode, prelude::*};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::{
    db::{
        column::{int, octet_length},
        pool::Read,
        schema::{attempt, part, signature},
    },
    read::{run::StoredRun, signature::attempts_of_run},
};

/// About how many bytes of texts a part has.
const PART_BYTES: usize = 2 << 20;
/// About how many bytes an entry has in addition to its texts.
const ENTRY_BYTES: usize = 200;
/// Most bytes of a message in a list.
const MESSAGE_BYTES: usize = 8_000;

/// The parts in which the tests of a run are read; none where one is enough. The results are in the order of the answer.
pub(crate) fn plan(
    connection: &mut PgConnection,
    project: Uuid,
    run: &StoredRun,
    results: &[(TestNameRef<'_>, RunResult)],
) -> Read<Option<RunRest>> {
    let name_bytes = |name: &TestNameRef<'_>| name.name.len() + name.file_path.map_or(0, str::len);
    let most_bytes = results.iter().map(|(name, result)| {
        name_bytes(name) + ENTRY_BYTES + if result.attempts > 0 { MESSAGE_BYTES } else { 0 }
    });
    if most_bytes.sum::<usize>() <= PART_BYTES {
        return Ok(None);
    }
    let signatures = signatures(connection, project, run, None)?;
    let (mut parts, mut bytes) = (VecDeque::<RunPart>::new(), 0);
    for (name, result) in results {
        let texts = signatures.get(&int(result.test));
        let message = texts.map_or(0, |texts| texts.message_bytes);
        bytes += name_bytes(name) + message.min(MESSAGE_BYTES) + ENTRY_BYTES;
        match parts.back_mut() {
            Some(part) if bytes <= PART_BYTES => part.results.push(*result),
            Some(_) | None => {
                bytes = 0;
                parts.push_back(RunPart {
                    results: vec![*result],
                    signatures: [0; 32],
                });
            }
        }
    }
    if parts.len() < 2 {
        return Ok(None);
    }
    let contents = contents(connection, project, run)?;
    let mut version = Sha256::new_with_prefix(contents);
    for part in &mut parts {
        part.signatures = digest(&tests_of(part), &signatures);
        version.update(part.signatures);
    }
    Ok(Some(RunRest {
        run: RunId(run.id),
        contents,
        version: version.finalize().into(),
        parts,
    }))
}

/// Whether neither the run nor the signatures of a part have changed since the parts were planned.
pub(crate) fn is_current(
    connection: &mut PgConnection,
    project: Uuid,
    run: &StoredRun,
    rest: &RunRest,
    part: &RunPart,
) -> QueryResult<bool> {
    let tests = tests_of(part);
    let signatures = signatures(connection, project, run, Some(&tests))?;
    Ok(
        contents(connection, project, run)? == rest.contents
            && digest(&tests, &signatures) == part.signatures,
    )
}

/// The tests that may have a signature.
fn tests_of(part: &RunPart) -> Vec<i32> {
    let with_rows = part.results.iter().filter(|result| result.attempts > 0);
    with_rows.map(|result| int(result.test)).collect()
}

/// A hash of the contents of a run's parts.
fn contents(connection: &mut PgConnection, project: Uuid, run: &StoredRun) -> QueryResult<[u8; 32]> {
    let contents: Vec<(i16, Vec<u8>)> = part::table
        .filter(part::project_id.eq(project))
        .filter(part::run_number.eq(run.number))
        .order(part::number)
        .select((part::number, part::content))
        .load(connection)?;
    let mut hash = Sha256::new();
    for (number, content) in contents {
        hash.update(number.to_be_bytes());
        hash.update(content);
    }
    Ok(hash.finalize().into())
}

/// The signatures and messages of a test's attempts in a run.
#[derive(Debug, Default)]
struct TestTexts {
    message_bytes: usize,
    signatures: DefaultHasher,
}

/// The signatures and messages of a run's tests, or of some of them.
fn signatures(
    connection: &mut PgConnection,
    project: Uuid,
    run: &StoredRun,
    only: Option<&[i32]>,
) -> QueryResult<HashMap<i32, TestTexts>> {
    let mut statement = attempts_of_run(project, run.number, run.started_at)
        .order((attempt::test, attempt::part, attempt::place))
        .select((
            attempt::test,
            octet_length(attempt::message),
            signature::fingerprint.nullable(),
        ))
        .into_boxed();
    if let Some(only) = only {
        statement = statement.filter(attempt::test.eq_any(only));
    }
    let mut texts: HashMap<i32, TestTexts> = HashMap::new();
    for row in statement.load_iter::<(i32, Option<i32>, Option<String>), PgRowByRowLoadingMode>(connection)? {
        let (test, bytes, fingerprint) = row?;
        let texts = texts.entry(test).or_default();
        let bytes = usize::try_from(bytes.unwrap_or(0)).unwrap_or(0);
        texts.message_bytes = texts.message_bytes.max(bytes);
        fingerprint.hash(&mut texts.signatures);
    }
    Ok(texts)
}

/// A hash of which signatures these tests have.
fn digest(tests: &[i32], texts: &HashMap<i32, TestTexts>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for test in tests {
        let signatures = texts.get(test).map_or(0, |texts| texts.signatures.finish());
        hash.update(test.to_be_bytes());
        hash.update(signatures.to_be_bytes());
    }
    hash.finalize().into()
}
