//! The branches of a project.

use assay_domain::project::Project;
use diesel::{
    PgConnection, QueryResult, RunQueryDsl,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{self, Text, Timestamptz},
};
use uuid::Uuid;

use crate::{column::At, pool::Read};

/// Every branch with a visible run, by code point.
pub(crate) fn list(connection: &mut PgConnection, of: &Project) -> Read<Vec<String>> {
    let visible = Visible {
        project: of.id.0,
        from: At(of.visible_from),
    };
    Ok(visible.load(connection)?)
}

/// Steps from branch to branch in the index `run_by_branch`, each step to the newest run of the next one, so that
/// the work follows the branches. `DISTINCT`, which is what the query builder can say, reads every run.
#[derive(QueryId)]
struct Visible {
    project: Uuid,
    from: At,
}

impl Query for Visible {
    type SqlType = Text;
}

impl RunQueryDsl<PgConnection> for Visible {}

impl QueryFragment<Pg> for Visible {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH RECURSIVE newest AS ((SELECT branch, started_at FROM run WHERE run.project_id = ");
        out.push_bind_param::<sql_types::Uuid, _>(&self.project)?;
        out.push_sql(
            " AND branch IS NOT NULL ORDER BY branch, started_at DESC LIMIT 1) UNION ALL \
             SELECT next.branch, next.started_at FROM newest, LATERAL (\
             SELECT run.branch, run.started_at FROM run WHERE run.project_id = ",
        );
        out.push_bind_param::<sql_types::Uuid, _>(&self.project)?;
        out.push_sql(
            " AND run.branch > newest.branch ORDER BY run.branch, run.started_at DESC LIMIT 1) AS next) \
             SELECT branch FROM newest WHERE started_at >= ",
        );
        out.push_bind_param::<Timestamptz, _>(&self.from)?;
        out.push_sql(" ORDER BY branch");
        Ok(())
    }
}
