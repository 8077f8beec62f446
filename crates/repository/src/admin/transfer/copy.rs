//! Rows as a stream: `COPY` in its text format, one row at a time.

use std::{
    cell::RefCell,
    io::{self, BufRead as _, Write},
};

use assay_domain::store::RowSink;
use diesel::{
    connection::SimpleConnection as _,
    pg::CopyTarget,
    prelude::*,
    result::{DatabaseErrorKind, Error as QueryError},
};
use uuid::Uuid;

use crate::db::pool::WorkError;

/// Writes the rows of a table to the sink. Returns how many there were.
pub(crate) type CopyOut = fn(&mut PgConnection, &mut dyn RowSink) -> Result<u64, CopyError>;
/// Stores the rows of the source in a table. Returns how many there were.
pub(crate) type CopyIn = fn(&mut PgConnection, &mut dyn io::Read) -> Result<u64, CopyError>;

/// Why rows were not copied.
pub(crate) enum CopyError {
    Query(QueryError),
    /// The archive's side failed.
    Archive(io::Error),
}

impl From<QueryError> for CopyError {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

/// Names the owner of the rows that are copied out until the transaction ends. `COPY` takes no parameters.
pub(crate) fn select_owner(connection: &mut PgConnection, owner: Uuid) -> QueryResult<()> {
    // No `set_config`: a distributed database passes only this statement on to the nodes that have the rows.
    connection.batch_execute(&format!("SET LOCAL assay.owner = '{owner}'"))
}

pub(crate) fn out_of<T: CopyTarget>(
    connection: &mut PgConnection,
    target: T,
    sink: &mut dyn RowSink,
) -> Result<u64, CopyError> {
    let mut copied = 0;
    let mut stream = diesel::copy_to(target).load_raw(connection)?;
    loop {
        // Postgres sends each row as one message.
        let row = stream.fill_buf().map_err(server_failed)?;
        if row.is_empty() {
            break;
        }
        sink.write_row(row).map_err(CopyError::Archive)?;
        copied += 1;
        let length = row.len();
        stream.consume(length);
    }
    drop(stream);
    // This reads the end of the stream. If the server failed midway, the stream ended without an error, and this fails,
    // because the transaction is aborted.
    connection.batch_execute("SELECT")?;
    Ok(copied)
}

pub(crate) fn into_table<T>(
    connection: &mut PgConnection,
    table: T,
    source: &mut dyn io::Read,
) -> Result<u64, CopyError>
where
    T: Table + CopyTarget<Table = T> + Copy,
{
    let (source, unreadable) = (RefCell::new(source), RefCell::new(None));
    let stored = diesel::copy_from(table)
        .from_raw_data(table, |server: &mut dyn Write| {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let length = match source.borrow_mut().read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(length) => length,
                    Err(error) => {
                        let stop = failed(&error);
                        unreadable.replace(Some(error));
                        return Err(stop);
                    }
                };
                server
                    .write_all(buffer.get(..length).unwrap_or_default())
                    .map_err(|error| failed(&error))?;
            }
        })
        .execute(connection);
    match (stored, unreadable.into_inner()) {
        (_, Some(error)) => Err(CopyError::Archive(error)),
        (Ok(rows), None) => Ok(u64::try_from(rows).unwrap_or(u64::MAX)),
        (Err(error), None) => Err(CopyError::Query(error)),
    }
}

fn server_failed(error: io::Error) -> CopyError {
    CopyError::Query(failed(&error))
}

fn failed(error: &io::Error) -> QueryError {
    QueryError::DatabaseError(DatabaseErrorKind::Unknown, Box::new(error.to_string()))
}

impl CopyError {
    /// The error of the transaction that copies. `archive` converts an error of the archive.
    pub(crate) fn of_work<E>(self, archive: impl FnOnce(io::Error) -> E) -> WorkError<E> {
        match self {
            Self::Query(error) => WorkError::Query(error),
            Self::Archive(error) => WorkError::Refused(archive(error)),
        }
    }
}
