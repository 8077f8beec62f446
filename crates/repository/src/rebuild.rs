//! Packs: storing one, and making them anew from the rows that they are derived from.

use assay_domain::{id::ProjectId, store::StoreError};
use diesel::{ExpressionMethods, PgConnection, QueryDsl, QueryResult, RunQueryDsl};
use uuid::Uuid;

use crate::{
    Database,
    column::At,
    pack::Pack,
    pool::Read,
    record::RunContents,
    schema::{project, run, run_pack},
};

/// Stores a run's pack, in the place of its former one if there is any.
pub(crate) fn store_pack(
    connection: &mut PgConnection,
    project: Uuid,
    run: i32,
    started_at: At,
    pack: &Pack,
) -> QueryResult<usize> {
    let bytes = pack.encode();
    diesel::insert_into(run_pack::table)
        .values((
            run_pack::project_id.eq(project),
            run_pack::run_number.eq(run),
            run_pack::started_at.eq(started_at),
            run_pack::pack.eq(&bytes),
        ))
        .on_conflict((run_pack::project_id, run_pack::run_number))
        .do_update()
        .set((run_pack::started_at.eq(started_at), run_pack::pack.eq(&bytes)))
        .execute(connection)
}

impl Database {
    /// Makes the packs of all of a project's runs anew from its results and returns how many there are. They come out as
    /// they were, unless they were damaged or written by an older version.
    pub fn rebuild_packs(&self, project: ProjectId) -> Result<usize, StoreError> {
        let numbers: Vec<i32> = self.run("reading runs", |connection| {
            Ok::<_, crate::pool::WorkError<StoreError>>(
                run::table
                    .filter(run::project_id.eq(project.0))
                    .order(run::number)
                    .select(run::number)
                    .load(connection)?,
            )
        })?;
        for number in &numbers {
            self.write("rebuilding a pack", |connection| {
                rebuild(connection, project.0, *number)
            })?;
        }
        Ok(numbers.len())
    }
}

/// A transaction of its own for each run, so that imports wait for no more than one.
fn rebuild(connection: &mut PgConnection, project: Uuid, number: i32) -> Read<()> {
    project::table
        .find(project)
        .select(project::id)
        .for_no_key_update()
        .first::<Uuid>(connection)?;
    let started_at: Option<At> = diesel::OptionalExtension::optional(
        run::table
            .find((project, number))
            .select(run::started_at)
            .first(connection),
    )?;
    // The run may have been pruned meanwhile.
    if let Some(started_at) = started_at {
        let pack = RunContents::load(connection, project, number)?.pack();
        store_pack(connection, project, number, started_at, &pack)?;
    }
    Ok(())
}
