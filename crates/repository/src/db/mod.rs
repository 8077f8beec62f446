//! The connection to Postgres: pool, standbys, connection strings, tables, conversions of columns, partitions.

pub(crate) mod column;
pub(crate) mod connection_string;
pub(crate) mod partition;
pub(crate) mod period;
pub(crate) mod pool;
pub(crate) mod postgres;
pub(crate) mod session;
pub(crate) mod standbys;
pub(crate) mod static_sql;
#[rustfmt::skip]
pub(crate) mod schema;
pub(crate) mod sql_statement;
