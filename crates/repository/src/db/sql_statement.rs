//! Typed raw SQL, for statements that diesel cannot express, or that take diesel a fifth of a request to build.
//!
//! Like a statement of diesel's query builder, it is prepared once for each connection. A [`diesel::sql_query`] is
//! parsed and planned at every call.

use std::marker::PhantomData;

use diesel::{
    deserialize,
    pg::Pg,
    prelude::*,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    row::NamedRow,
    sql_types::{Array, BigInt, Binary, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use uuid::Uuid;

use crate::db::column::At;

/// A statement whose rows have the SQL types `Row`, in the order of their columns.
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
    Uuid(Uuid),
    At(At),
    BigInt(i64),
    Integer(i32),
    Text(&'a str),
    Bytes(&'a [u8]),
    Integers(&'a [i32]),
    Ats(&'a [At]),
    Uuids(&'a [Uuid]),
    ByteTexts(&'a [Vec<u8>]),
    OptionalTexts(&'a [Option<&'a str>]),
}

impl<'a, Row> SqlStatement<'a, Row> {
    /// Starts a statement with `sql`.
    pub(crate) fn new(sql: &'static str) -> Self {
        Self {
            parts: vec![Part::Sql(sql)],
            row: PhantomData,
        }
    }

    /// A statement whose text has `{}` for each of these lists of pieces, in their order.
    pub(crate) fn filled(sql: &'static str, pieces: &[&[Part<'a>]]) -> Self {
        let mut texts = sql.split("{}");
        let beginning = Self::new(texts.next().unwrap_or_default());
        pieces
            .iter()
            .zip(texts)
            .fold(beginning, |mut statement, (pieces, text)| {
                statement.parts.extend_from_slice(pieces);
                statement.parts.push(Part::Sql(text));
                statement
            })
    }

    /// Appends SQL.
    #[must_use]
    pub(crate) fn sql(mut self, sql: &'static str) -> Self {
        self.parts.push(Part::Sql(sql));
        self
    }

    /// Appends a parameter with this value.
    #[must_use]
    pub(crate) fn bind(mut self, value: impl Into<Part<'a>>) -> Self {
        self.parts.push(value.into());
        self
    }

    /// Appends all of these pieces.
    #[must_use]
    pub(crate) fn all(mut self, parts: &[Part<'a>]) -> Self {
        self.parts.extend_from_slice(parts);
        self
    }
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
    Bytes(&'a [u8]),
    Integers(&'a [i32]),
    Ats(&'a [At]),
    Uuids(&'a [Uuid]),
    ByteTexts(&'a [Vec<u8>]),
    OptionalTexts(&'a [Option<&'a str>])
);

impl<Row> QueryFragment<Pg> for SqlStatement<'_, Row> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for part in &self.parts {
            match part {
                Part::Sql(sql) => out.push_sql(sql),
                Part::Uuid(value) => out.push_bind_param::<SqlUuid, _>(value)?,
                Part::At(value) => out.push_bind_param::<Timestamptz, _>(value)?,
                Part::BigInt(value) => out.push_bind_param::<BigInt, _>(value)?,
                Part::Integer(value) => out.push_bind_param::<Integer, _>(value)?,
                Part::Text(value) => out.push_bind_param::<Text, _>(*value)?,
                Part::Bytes(value) => out.push_bind_param::<Binary, _>(*value)?,
                Part::Integers(values) => out.push_bind_param::<Array<Integer>, _>(*values)?,
                Part::Ats(values) => out.push_bind_param::<Array<Timestamptz>, _>(*values)?,
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

impl<Row> Query for SqlStatement<'_, Row> {
    type SqlType = Row;
}

impl<Row> RunQueryDsl<PgConnection> for SqlStatement<'_, Row> {}
