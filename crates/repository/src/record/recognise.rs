//! Looks up the run, tests and signatures of a report in a project, and the outcomes of its tests in its run, without
//! storing it.

use std::collections::BTreeSet;

use assay_domain::{
    joins::Joins,
    project::Project,
    recording::{LeftOver, Recording, RunContext},
    release_branch::release_branch_of,
    rules::RecordingRules,
    run::RunState,
    store::{RecognisedOutcome, RecognisedReport},
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::ENGINE_WINDOW_DAYS,
};
use diesel::prelude::*;
use uuid::Uuid;

use super::{
    RunContents,
    contents::PartExecution,
    intern::{RecordingOrdinals, TestKey, known_of, known_signatures, known_tests},
    run,
    target::Target,
};
use crate::{
    db::{
        column::{At, branch_patterns, count, file_hash, short_hash, storable},
        pool::Read,
        schema::{part, project, run as stored_run},
    },
    read::{part::StoredPart, signature},
};

/// The numbers of a report's run, tests and signatures.
pub(crate) fn recognise(
    connection: &mut PgConnection,
    of: &Project,
    joins: &Joins,
    recording: &Recording,
    rules: RecordingRules,
    now: Timestamp,
) -> Read<RecognisedReport> {
    let target = Target::find(connection, of.id.0, recording, rules, now)?;
    let (newest, stable_branch, patterns): (i32, String, Vec<String>) = project::table
        .find(of.id.0)
        .select((project::runs, project::stable_branch, project::release_branches))
        .first(connection)?;
    let patterns = branch_patterns(&patterns)?;
    let context = run::context(target.run.as_ref(), recording, (&stable_branch, &patterns))?;
    let (branch, base) = (context.branch.as_deref(), context.base_branch.as_deref());
    let release_branch = release_branch_of(&patterns, branch, base).map(Into::into);
    let keys: Vec<TestKey> = recording
        .tests
        .iter()
        .map(|test| {
            let file = test.test.file_path.as_deref().map(storable);
            (short_hash(&storable(&test.test.name)), file_hash(file.as_deref()))
        })
        .collect();
    let ordinals = known_tests(connection, of.id.0, &keys)?;
    let known: Vec<Option<i32>> = keys.iter().map(|key| ordinals.get(key).copied()).collect();
    let (outcomes, left_over) = outcomes(connection, of, recording, &target, &known)?;
    let tests = known
        .iter()
        .map(|ordinal| ordinal.map(count).transpose())
        .collect::<Result<Vec<Option<TestOrdinal>>, _>>()?;
    let moves = joins.in_run(
        target
            .run
            .as_ref()
            .map_or(recording.started_at, |run| run.started_at.0),
        &tests.iter().copied().flatten().collect(),
    );
    let present = |test: TestOrdinal| moves.get(&test).copied().unwrap_or(test);
    let tests = tests.into_iter().map(|test| test.map(present)).collect();
    let classes = recording
        .tests
        .iter()
        .flat_map(|test| &test.attempts)
        .filter_map(|attempt| attempt.class.as_ref());
    let fingerprints: BTreeSet<String> = classes.map(|class| storable(&class.fingerprint)).collect();
    let fingerprints = fingerprints.iter().map(String::as_str);
    let signatures = signature::numbers(known_signatures(connection, of.id.0, fingerprints)?)?;
    // Only failures are compared with what usually runs.
    let has_failed = outcomes.iter().any(|outcome| outcome.own.failed_attempts > 0);
    let has_several_parts =
        has_failed && have_several_parts(connection, of.id.0, &stable_branch, (&context, now))?;
    Ok(RecognisedReport {
        run: target.run.map(|run| (run.number, run.started_at.0)),
        release_branch,
        next_run: newest.saturating_add(1),
        tests,
        outcomes,
        left_over,
        signatures,
        has_several_parts,
        context,
    })
}

/// The runs of the stable branch that show how many reports a suite has, and how many of them must have several: one may be
/// still arriving.
const LAST_RUNS: i64 = 10;
const WITH_SEVERAL: usize = 8;

/// Whether most of the last runs of a suite on the stable branch have several reports.
fn have_several_parts(
    connection: &mut PgConnection,
    project: Uuid,
    stable_branch: &str,
    (context, now): (&RunContext, Timestamp),
) -> Read<bool> {
    let of_suite = stored_run::table
        .filter(stored_run::project_id.eq(project))
        .filter(stored_run::branch.eq(stable_branch))
        .filter(stored_run::started_at.ge(At(now.plus_days(-ENGINE_WINDOW_DAYS))))
        .filter(stored_run::suite.is_not_distinct_from(context.suite.as_deref()))
        .order((stored_run::started_at.desc(), stored_run::number.desc()))
        .select(stored_run::number)
        .limit(LAST_RUNS)
        .load::<i32>(connection)?;
    let parts: Vec<i32> = part::table
        .filter(part::project_id.eq(project))
        .filter(part::run_number.eq_any(&of_suite))
        .select(part::run_number)
        .load(connection)?;
    let has_several = |run: &&i32| parts.iter().filter(|number| number == run).count() > 1;
    Ok(of_suite.iter().filter(has_several).count() >= WITH_SEVERAL)
}

/// The outcome of each test once the report is a part of its run, and what earlier attempts left over.
fn outcomes(
    connection: &mut PgConnection,
    project: &Project,
    recording: &Recording,
    target: &Target<'_>,
    ordinals: &[Option<i32>],
) -> Read<(Vec<RecognisedOutcome>, LeftOver)> {
    // A report that is already stored is that part, and not another one.
    let same = target.same_part(recording)?.map(|part| part.number);
    let others = target.others(recording).filter(|part| Some(part.number) != same);
    let mut parts: Vec<_> = others.cloned().collect();
    let number = run::next_part(&target.parts)?;
    let mut contents = match &target.run {
        Some(run) if !parts.is_empty() => {
            RunContents::load(connection, project.id.0, run.number, run.started_at)?
        }
        Some(_) | None => RunContents::default(),
    };
    let others: Vec<i16> = parts.iter().map(|part| part.number).collect();
    let replaced = target
        .parts
        .iter()
        .map(|part| part.number)
        .filter(|part| !others.contains(part));
    contents.remove(&replaced.collect::<Vec<_>>());
    parts.push(run::new_part(
        recording,
        number,
        Default::default(),
        Default::default(),
    ));
    let known = recording.tests.iter().zip(ordinals);
    let known = known.filter_map(|(test, ordinal)| Some((test, (*ordinal)?)));
    let mut executions = PartExecution::of_tests(known, &RecordingOrdinals::default(), number);
    let passes = known_of(connection, project.id.0, &recording.possible_passes())?;
    executions.extend(contents.new_passes(&passes, ordinals.iter().copied(), number));
    let reported = executions.keys().copied().chain(passes).collect();
    contents.add(executions);
    let roles = contents.merge(&parts)?;
    let outcomes = recording
        .tests
        .iter()
        .zip(ordinals)
        .filter_map(|(test, ordinal)| {
            let stored = ordinal.and_then(|ordinal| contents.outcomes_with(ordinal, number));
            let (in_run, own) = stored.or_else(|| test.outcome().map(|outcome| (outcome, outcome)))?;
            Some(RecognisedOutcome { in_run, own })
        });
    let outcomes = outcomes.collect();
    let role = roles.get(&number).cloned().unwrap_or_default();
    let left_by_closed_run = target.left_failed(connection, project.id.0, recording, &reported)?;
    let left_by_closed_run = left_by_closed_run.map_or(0, |(count, _)| count);
    let is_unfinished = |part: &StoredPart| {
        let is_over = roles.get(&part.number).is_some_and(|role| role.is_superseded);
        !is_over && (part.has_errors() || part.state != RunState::Completed.as_str())
    };
    let mut continued = role.continued.iter().filter_map(|place| parts.get(*place));
    let left_over = LeftOver {
        failed: u64::try_from(role.left_failed + left_by_closed_run).unwrap_or(u64::MAX),
        unfinished: continued.any(is_unfinished),
    };
    Ok((outcomes, left_over))
}
