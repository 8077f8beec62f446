//! SQL text of this program as an expression of diesel's query builder, where diesel has no words for it.
//!
//! A statement with a [`diesel::dsl::sql`] is parsed and planned at every call. One with these expressions is prepared
//! once for each connection.

use std::marker::PhantomData;

use diesel::{
    expression::{TypedExpressionType, ValidGrouping, is_aggregate},
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, QueryFragment, QueryId},
    sql_types::SqlType,
};

/// An expression of the SQL type `Type`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StaticSql<Type> {
    sql: &'static str,
    sql_type: PhantomData<Type>,
}

/// An expression with this text, which names its tables. Input is never a part of it.
pub(crate) const fn static_sql<Type>(sql: &'static str) -> StaticSql<Type> {
    StaticSql {
        sql,
        sql_type: PhantomData,
    }
}

impl<Type: SqlType + TypedExpressionType> Expression for StaticSql<Type> {
    type SqlType = Type;
}

impl<Type> QueryFragment<Pg> for StaticSql<Type> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(self.sql);
        Ok(())
    }
}

impl<Type> QueryId for StaticSql<Type> {
    type QueryId = ();
    /// The cache of prepared statements finds a statement with it by its text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Type, Source> AppearsOnTable<Source> for StaticSql<Type> where Self: Expression {}

impl<Type, Source> SelectableExpression<Source> for StaticSql<Type> where Self: Expression {}

impl<Type, Grouping> ValidGrouping<Grouping> for StaticSql<Type> {
    type IsAggregate = is_aggregate::Never;
}
