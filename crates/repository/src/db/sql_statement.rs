//! Typed raw SQL, for statements that diesel cannot express, or that take diesel a fifth of a request to build.
//!
//! Like a statement of diesel's query builder, it is prepared once for each connection. A [`diesel::sql_query`] is
//! parsed and planned at every call.

use std::marker::PhantomData;

use diesel::{
    deserialize,
    pg::{Pg, PgRowByRowLoadingMode},
    prelude::*,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    query_dsl::LoadQuery,
    result::Error as QueryError,
    row::NamedRow,
    sql_types::{
        Array, BigInt, Binary, Bool, Double, Integer, Jsonb, Nullable, SmallInt, SqlType, Text, Timestamptz,
        Uuid as SqlUuid,
    },
};
use serde_json::Value;
use uuid::Uuid;

use crate::db::column::At;

/// A row of a statement, or one of its columns.
pub(crate) trait SqlRow {
    /// Its SQL type, which follows from the Rust type.
    type Sql;
}

macro_rules! columns {
    ($($sql:ty: $type:ty,)*) => {
        $(impl SqlRow for $type {
            type Sql = $sql;
        })*
    };
}

columns! {
    Bool: bool,
    SmallInt: i16,
    Integer: i32,
    BigInt: i64,
    Double: f64,
    Text: String,
    Binary: Vec<u8>,
    Jsonb: Value,
    Timestamptz: At,
    SqlUuid: Uuid,
}

impl<T: SqlRow<Sql: SqlType>> SqlRow for Option<T> {
    type Sql = Nullable<T::Sql>;
}

impl<T: SqlRow<Sql: SqlType>> SqlRow for Vec<Option<T>> {
    type Sql = Array<Nullable<T::Sql>>;
}

macro_rules! tuples {
    ($($($column:ident)+,)*) => {
        $(impl<$($column: SqlRow),+> SqlRow for ($($column),+) {
            type Sql = ($($column::Sql),+);
        })*
    };
}

tuples! {
    A B,
    A B C,
    A B C D,
    A B C D E,
    A B C D E F,
    A B C D E F G,
    A B C D E F G H I,
}

/// Declares a row with named columns, in the order of the statement.
macro_rules! sql_row {
    (
        $(#[$attribute:meta])*
        $vis:vis struct $name:ident {
            $($(#[$of_column:meta])* $column_vis:vis $column:ident: $type:ty,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(diesel::Queryable)]
        $vis struct $name {
            $($(#[$of_column])* $column_vis $column: $type,)*
        }

        impl $crate::db::sql_statement::SqlRow for $name {
            type Sql = ($(<$type as $crate::db::sql_statement::SqlRow>::Sql,)*);
        }
    };
}
pub(crate) use sql_row;

/// A statement with rows of this kind.
#[derive(Debug)]
pub(crate) struct SqlStatement<'a, Row> {
    parts: Vec<Part<'a>>,
    row: PhantomData<Row>,
}

/// A piece of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'a> {
    /// Text of this program. Input is always a bound value.
    Sql(&'static str),
    /// The place of a value or of further text.
    Named(&'static str),
    Uuid(Uuid),
    At(At),
    BigInt(i64),
    Integer(i32),
    Text(&'a str),
    Bytes(&'a [u8]),
    Integers(&'a [i32]),
    Ats(&'a [At]),
    Texts(&'a [&'a str]),
    Uuids(&'a [Uuid]),
    ByteTexts(&'a [Vec<u8>]),
    OptionalTexts(&'a [Option<&'a str>]),
}

impl<'a, Row> SqlStatement<'a, Row> {
    /// Starts a statement with `sql`. Each `{name}` in it stands for what [`Self::bind`] or [`Self::text`] gives.
    pub(crate) fn new(sql: &'static str) -> Self {
        Self {
            parts: parts(sql).collect(),
            row: PhantomData,
        }
    }

    /// Appends SQL, with names like those of [`Self::new`].
    #[must_use]
    pub(crate) fn sql(mut self, sql: &'static str) -> Self {
        self.parts.extend(parts(sql));
        self
    }

    /// Puts SQL wherever the name stands. It may have names of its own, which are given afterwards.
    #[must_use]
    pub(crate) fn text(self, name: &str, sql: &'static str) -> Self {
        self.texts(name, &[sql])
    }

    /// Like [`Self::text`] with pieces of SQL.
    #[must_use]
    pub(crate) fn texts(self, name: &str, sql: &[&'static str]) -> Self {
        let pieces = sql.iter().flat_map(|sql| parts(sql));
        self.put(name, &pieces.collect::<Vec<_>>())
    }

    /// Puts a parameter with this value wherever the name stands.
    #[must_use]
    pub(crate) fn bind(self, name: &str, value: impl Into<Part<'a>>) -> Self {
        self.put(name, &[value.into()])
    }

    fn put(mut self, name: &str, pieces: &[Part<'a>]) -> Self {
        let is_named = |part: &Part<'_>| matches!(part, Part::Named(of) if *of == name);
        while let Some(place) = self.parts.iter().position(is_named) {
            self.parts.splice(place..=place, pieces.iter().copied());
        }
        self
    }
}

/// The text and the names of a statement, in their order.
fn parts<'a>(sql: &'static str) -> impl Iterator<Item = Part<'a>> {
    let mut texts = sql.split('{');
    let beginning = texts.next().map(Part::Sql);
    let named = texts.filter_map(|text| text.split_once('}'));
    let named = named.flat_map(|(name, text)| [Part::Named(name), Part::Sql(text)]);
    beginning.into_iter().chain(named)
}

/// A row that a statement returns only so that it is counted.
///
/// A distributed database counts the rows of `INSERT … SELECT … ON CONFLICT` in the command tag even if its condition
/// left them unchanged. `RETURNING` has the changed rows only.
pub(crate) struct ChangedRow;

impl QueryableByName<Pg> for ChangedRow {
    fn build<'a>(_: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        Ok(Self)
    }
}

macro_rules! values {
    ($($variant:ident($type:ty)),*) => {
        $(impl<'a> From<$type> for Part<'a> {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

values!(
    Uuid(Uuid),
    At(At),
    BigInt(i64),
    Integer(i32),
    Text(&'a str),
    Bytes(&'a [u8]),
    Integers(&'a [i32]),
    Ats(&'a [At]),
    Texts(&'a [&'a str]),
    Uuids(&'a [Uuid]),
    ByteTexts(&'a [Vec<u8>]),
    OptionalTexts(&'a [Option<&'a str>])
);

impl<Row> QueryFragment<Pg> for SqlStatement<'_, Row> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for part in &self.parts {
            match part {
                Part::Sql(sql) => out.push_sql(sql),
                Part::Named(name) => {
                    return Err(QueryError::QueryBuilderError(
                        format!("no value of {name}").into(),
                    ));
                }
                Part::Uuid(value) => out.push_bind_param::<SqlUuid, _>(value)?,
                Part::At(value) => out.push_bind_param::<Timestamptz, _>(value)?,
                Part::BigInt(value) => out.push_bind_param::<BigInt, _>(value)?,
                Part::Integer(value) => out.push_bind_param::<Integer, _>(value)?,
                Part::Text(value) => out.push_bind_param::<Text, _>(*value)?,
                Part::Bytes(value) => out.push_bind_param::<Binary, _>(*value)?,
                Part::Integers(values) => out.push_bind_param::<Array<Integer>, _>(*values)?,
                Part::Ats(values) => out.push_bind_param::<Array<Timestamptz>, _>(*values)?,
                Part::Texts(values) => out.push_bind_param::<Array<Text>, _>(*values)?,
                Part::Uuids(values) => out.push_bind_param::<Array<SqlUuid>, _>(*values)?,
                Part::ByteTexts(values) => out.push_bind_param::<Array<Binary>, _>(*values)?,
                Part::OptionalTexts(values) => out.push_bind_param::<Array<Nullable<Text>>, _>(*values)?,
            }
        }
        Ok(())
    }
}

impl<Row> QueryId for SqlStatement<'_, Row> {
    type QueryId = ();
    /// The cache of prepared statements finds it by its text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Row: SqlRow> Query for SqlStatement<'_, Row> {
    type SqlType = Row::Sql;
}

/// Iterates over rows that are read one at a time.
type RowByRow<'connection, 'query, Statement, Row> =
    <Statement as LoadQuery<'query, PgConnection, Row, PgRowByRowLoadingMode>>::RowIter<'connection>;

impl<Row: SqlRow> SqlStatement<'_, Row> {
    /// All rows.
    pub(crate) fn load<'query>(self, connection: &mut PgConnection) -> QueryResult<Vec<Row>>
    where
        Self: LoadQuery<'query, PgConnection, Row>,
    {
        RunQueryDsl::load(self, connection)
    }

    /// The first row.
    pub(crate) fn get_result<'query>(self, connection: &mut PgConnection) -> QueryResult<Row>
    where
        Self: LoadQuery<'query, PgConnection, Row>,
    {
        RunQueryDsl::get_result(self, connection)
    }

    /// The rows, one at a time in memory.
    pub(crate) fn load_iter<'connection, 'query: 'connection>(
        self,
        connection: &'connection mut PgConnection,
    ) -> QueryResult<RowByRow<'connection, 'query, Self, Row>>
    where
        Row: 'connection,
        Self: LoadQuery<'query, PgConnection, Row, PgRowByRowLoadingMode> + 'connection,
    {
        RunQueryDsl::load_iter(self, connection)
    }
}

impl<Row> RunQueryDsl<PgConnection> for SqlStatement<'_, Row> {}
