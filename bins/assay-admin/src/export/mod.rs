//! Exports of a project: files of rows in Parquet or CSV.
//!
//! A *piece* is a file of each table with the rows of some whole runs. Its files are written under a temporary name and
//! renamed, the file of the runs last. So a file of runs means that the piece is complete.

mod folder;
mod table;
mod table_file;

pub(crate) use folder::{ExportFolder, Piece, Written};
pub(crate) use table::{TESTS, Table};
pub(crate) use table_file::{Format, TableFile};
