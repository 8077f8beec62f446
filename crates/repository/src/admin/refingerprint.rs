//! Groups a project's stored errors again, after the fingerprint algorithm changed.

use std::collections::{BTreeMap, HashMap};

use assay_domain::{
    id::ProjectId,
    signature::{Classifier, ErrorClass},
    store::{RefingerprintCounts, StoreError},
};
use diesel::{
    prelude::*,
    sql_types::{Array, Integer, Jsonb, Nullable, SmallInt, Timestamptz, Uuid as SqlUuid},
};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    db::{
        column::{At, failure_codes},
        pool::Read,
        schema::{attempt, attempt_texts, project, run, signature, signature_alias},
        static_sql::static_sql,
    },
    read::{attempt::errors, observation},
    record::NewSignature,
};

diesel::define_sql_function! {
    /// An id that was never used before.
    fn gen_random_uuid() -> SqlUuid;
}

/// How many runs are processed together, which bounds the memory.
const BATCH: usize = 100;

/// Groups the errors of a project again; none if there is no such project. To be run in a transaction.
pub(crate) fn refingerprint(
    connection: &mut PgConnection,
    id: ProjectId,
    classifier: &dyn Classifier,
) -> Read<Option<RefingerprintCounts>> {
    // Takes the same lock as imports, so that no two signatures get the same number.
    let used_ordinals: Option<i32> = project::table
        .find(id.0)
        .filter(project::deleted_at.is_null())
        .select(project::signatures)
        .for_no_key_update()
        .first(connection)
        .optional()?;
    let Some(used_ordinals) = used_ordinals else {
        return Ok(None);
    };
    let mut grouping = Grouping::load(connection, id.0, classifier, used_ordinals)?;
    // By start, so that a batch is in few partitions.
    let mut runs: Vec<(i32, At)> = run::table
        .filter(run::project_id.eq(id.0))
        .order((run::started_at, run::number))
        .select((run::number, run::started_at))
        .load(connection)?;
    while !runs.is_empty() {
        let batch: Vec<(i32, At)> = runs.drain(..runs.len().min(BATCH)).collect();
        let failed = failed_attempts(connection, id.0, &batch)?;
        store_changes(connection, id.0, &grouping.group(failed)?)?;
    }
    let refingerprinted = grouping.store(connection)?;
    // Servers count the tests of each signature again.
    let observed = diesel::select(gen_random_uuid()).get_result(connection)?;
    observation::mark_changed_but_judged(connection, id.0, observed)?;
    Ok(Some(refingerprinted))
}

/// The columns of a failed attempt that grouping needs.
#[derive(Queryable)]
struct FailedAttempt {
    run_number: i32,
    started_at: At,
    test: i32,
    part: i16,
    place: i32,
    signature: Option<i32>,
    errors: Option<Value>,
}

/// The failed attempts of these runs, which are in the order of their starts.
fn failed_attempts(
    connection: &mut PgConnection,
    project: Uuid,
    runs: &[(i32, At)],
) -> QueryResult<Vec<FailedAttempt>> {
    let (Some((_, from)), Some((_, to))) = (runs.first(), runs.last()) else {
        return Ok(Vec::new());
    };
    let numbers: Vec<i32> = runs.iter().map(|(number, _)| *number).collect();
    attempt::table
        .left_join(
            attempt_texts::table.on(attempt_texts::project_id
                .eq(project)
                .and(attempt_texts::run_number.eq(attempt::run_number))
                .and(attempt_texts::part.eq(attempt::part))
                .and(attempt_texts::number.nullable().eq(attempt::texts))
                .and(attempt_texts::started_at.eq(attempt::started_at))),
        )
        .filter(attempt::project_id.eq(project))
        .filter(attempt::run_number.eq_any(numbers))
        .filter(attempt::started_at.between(*from, *to))
        .filter(attempt::status.eq_any(failure_codes()))
        .order((attempt::run_number, attempt::test, attempt::part, attempt::place))
        .select((
            attempt::run_number,
            attempt::started_at,
            attempt::test,
            attempt::part,
            attempt::place,
            attempt::signature,
            static_sql::<Nullable<Jsonb>>("attempt_texts.errors[attempt.texts_place]"),
        ))
        .load(connection)
}

/// The new grouping of a project's signatures.
struct Grouping<'a> {
    project: Uuid,
    classifier: &'a dyn Classifier,
    former: Vec<(i32, String)>,
    /// Number and class of every fingerprint met, by fingerprint.
    by_fingerprint: HashMap<String, (i32, ErrorClass)>,
    ordinals: HashMap<String, i32>,
    used_ordinals: i32,
    /// How many attempts went from one signature to another, by the former and the new one.
    moves: BTreeMap<(i32, i32), u64>,
    attempts: u64,
    changed: u64,
}

impl<'a> Grouping<'a> {
    fn load(
        connection: &mut PgConnection,
        project: Uuid,
        classifier: &'a dyn Classifier,
        used_ordinals: i32,
    ) -> QueryResult<Self> {
        let former: Vec<(i32, String)> = signature::table
            .filter(signature::project_id.eq(project))
            .order(signature::ordinal)
            .select((signature::ordinal, signature::fingerprint))
            .load(connection)?;
        let ordinals = former
            .iter()
            .map(|(ordinal, text)| (text.clone(), *ordinal))
            .collect();
        Ok(Self {
            project,
            classifier,
            former,
            by_fingerprint: HashMap::new(),
            ordinals,
            used_ordinals,
            moves: BTreeMap::new(),
            attempts: 0,
            changed: 0,
        })
    }

    /// Classifies these attempts and returns those that get another signature, with it.
    fn group(&mut self, failed: Vec<FailedAttempt>) -> Result<Vec<FailedAttempt>, StoreError> {
        let mut changed = Vec::new();
        for mut attempt in failed {
            let class = self.classifier.classify(&errors(attempt.errors.take())?);
            let new = class.map(|class| self.number(class));
            self.attempts += 1;
            if let (Some(former), Some(new)) = (attempt.signature, new) {
                *self.moves.entry((former, new)).or_default() += 1;
            }
            if new != attempt.signature {
                self.changed += 1;
                attempt.signature = new;
                changed.push(attempt);
            }
        }
        Ok(changed)
    }

    fn number(&mut self, class: ErrorClass) -> i32 {
        if let Some((ordinal, _)) = self.by_fingerprint.get(&class.fingerprint) {
            return *ordinal;
        }
        let ordinal = self.ordinals.get(&class.fingerprint).copied().unwrap_or_else(|| {
            let ordinal = self.used_ordinals;
            self.used_ordinals += 1;
            ordinal
        });
        self.by_fingerprint
            .insert(class.fingerprint.clone(), (ordinal, class));
        ordinal
    }

    /// Stores the new signatures, and the signature to which each former fingerprint leads.
    fn store(self, connection: &mut PgConnection) -> QueryResult<RefingerprintCounts> {
        let project = self.project;
        diesel::update(project::table.find(project))
            .set(project::signatures.eq(self.used_ordinals))
            .execute(connection)?;
        let mut rows: Vec<NewSignature> = self
            .by_fingerprint
            .values()
            .map(|(ordinal, class)| NewSignature::of(project, *ordinal, class))
            .collect();
        rows.sort_unstable_by_key(|row| row.ordinal);
        for chunk in rows.chunks(1_000) {
            use diesel::upsert::excluded;
            diesel::insert_into(signature::table)
                .values(chunk)
                .on_conflict((signature::project_id, signature::ordinal))
                .do_update()
                .set((
                    signature::version.eq(excluded(signature::version)),
                    signature::title.eq(excluded(signature::title)),
                    signature::category.eq(excluded(signature::category)),
                ))
                .execute(connection)?;
        }
        let renamed = self.store_aliases(connection)?;
        crate::read::signature::delete_orphans(connection, project)?;
        Ok(RefingerprintCounts {
            attempts: self.attempts,
            changed: self.changed,
            signatures_before: length(self.former.len()),
            signatures_after: length(self.by_fingerprint.len()),
            renamed,
        })
    }

    /// Makes every fingerprint without occurrences an alias of the one that most of its occurrences got.
    fn store_aliases(&self, connection: &mut PgConnection) -> QueryResult<u64> {
        let project = self.project;
        let mut renamed = 0;
        for (former, fingerprint) in &self.former {
            if self.by_fingerprint.contains_key(fingerprint) {
                continue;
            }
            let successors = self.moves.range((*former, i32::MIN)..=(*former, i32::MAX));
            // Of several with equally many attempts, the one with the lowest number.
            let Some((&(_, successor), _)) =
                successors.max_by_key(|((_, new), count)| (**count, std::cmp::Reverse(*new)))
            else {
                continue;
            };
            diesel::update(signature_alias::table)
                .filter(signature_alias::project_id.eq(project))
                .filter(signature_alias::signature.eq(former))
                .set(signature_alias::signature.eq(successor))
                .execute(connection)?;
            diesel::insert_into(signature_alias::table)
                .values((
                    signature_alias::project_id.eq(project),
                    signature_alias::fingerprint.eq(fingerprint),
                    signature_alias::signature.eq(successor),
                ))
                .on_conflict((signature_alias::project_id, signature_alias::fingerprint))
                .do_update()
                .set(signature_alias::signature.eq(successor))
                .execute(connection)?;
            renamed += 1;
        }
        Ok(renamed)
    }
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Stores the new signatures of attempts.
fn store_changes(connection: &mut PgConnection, project: Uuid, changed: &[FailedAttempt]) -> QueryResult<()> {
    let starts: Vec<At> = changed.iter().map(|attempt| attempt.started_at).collect();
    let (Some(from), Some(to)) = (starts.iter().min(), starts.iter().max()) else {
        return Ok(());
    };
    let column = |of: fn(&FailedAttempt) -> i32| changed.iter().map(of).collect::<Vec<i32>>();
    let parts: Vec<i16> = changed.iter().map(|attempt| attempt.part).collect();
    let signatures: Vec<Option<i32>> = changed.iter().map(|attempt| attempt.signature).collect();
    // Raw SQL, because diesel has no update from arrays.
    diesel::sql_query(
            "UPDATE attempt SET signature = changed.signature \
             FROM unnest($2, $3, $4, $5, $6, $7) AS changed (run_number, started_at, test, part, place, signature) \
             WHERE attempt.project_id = $1 AND attempt.started_at BETWEEN $8 AND $9 \
                 AND attempt.run_number = changed.run_number AND attempt.started_at = changed.started_at \
                 AND attempt.test = changed.test AND attempt.part = changed.part \
                 AND attempt.place = changed.place",
        )
        .bind::<SqlUuid, _>(project)
        .bind::<Array<Integer>, _>(column(|attempt| attempt.run_number))
        .bind::<Array<Timestamptz>, _>(&starts)
        .bind::<Array<Integer>, _>(column(|attempt| attempt.test))
        .bind::<Array<SmallInt>, _>(parts)
        .bind::<Array<Integer>, _>(column(|attempt| attempt.place))
        .bind::<Array<Nullable<Integer>>, _>(signatures)
        .bind::<Timestamptz, _>(*from)
        .bind::<Timestamptz, _>(*to)
        .execute(connection)
        .map(drop)
}
