//! A file with the rows of a table.

use std::{
    fs::{self, File},
    io::BufWriter,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use assay_repository::{ExportRow, ExportValue};
use clap::ValueEnum;
use parquet::{
    basic::{Compression, Encoding, Type as PhysicalType, ZstdLevel},
    data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::{
        parser::parse_message_type,
        types::{ColumnPath, Type},
    },
};

use super::Table;
use crate::archive;

/// The number of rows of a row group, which is in memory until it is written.
const GROUP_ROWS: usize = 122_880;
/// The bytes of texts after which a row group with fewer rows is written.
const GROUP_BYTES: usize = 32 << 20;
/// The columns whose values mostly grow by small steps.
const GROWING: [&str; 2] = ["test", "started_at"];

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns with types, compressed by zstd
    Parquet,
    /// Text with a header; no value and an empty text are the same
    Csv,
}

impl Format {
    /// The ending of a file's name.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
        }
    }
}

/// A file that is being written. It has a temporary name until it is finished.
pub(crate) struct TableFile {
    table: &'static Table,
    path: PathBuf,
    rows: u64,
    writer: RowWriter,
}

enum RowWriter {
    Parquet(ParquetRows),
    Csv(csv::Writer<BufWriter<File>>),
}

impl TableFile {
    /// A new file, in the place of one that was not finished.
    pub(crate) fn create(path: PathBuf, table: &'static Table, format: Format) -> anyhow::Result<Self> {
        let file = archive::create(&path)?;
        let schema = Arc::new(parse_message_type(&format!(
            "message {} {{{}}}",
            table.name, table.columns
        ))?);
        let writer = match format {
            Format::Parquet => RowWriter::Parquet(ParquetRows::new(file, schema)?),
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(BufWriter::new(file));
                writer.write_record(schema.get_fields().iter().map(|field| field.name()))?;
                RowWriter::Csv(writer)
            }
        };
        Ok(Self {
            table,
            path,
            rows: 0,
            writer,
        })
    }

    /// Its table.
    pub(crate) const fn table(&self) -> &'static Table {
        self.table
    }

    /// The number of its rows.
    pub(crate) const fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends a row, with a value for each column of the table.
    pub(crate) fn push(&mut self, row: ExportRow) -> anyhow::Result<()> {
        self.rows += 1;
        let pushed = match &mut self.writer {
            RowWriter::Parquet(rows) => rows.push(row),
            RowWriter::Csv(writer) => writer.serialize(row).map_err(Into::into),
        };
        pushed.with_context(|| could_not_write(&self.path))
    }

    /// Completes the file and gives it this name. Returns its size in bytes.
    pub(crate) fn finish(self, to: &Path) -> anyhow::Result<u64> {
        let Self { path, writer, .. } = self;
        let finish = || -> anyhow::Result<u64> {
            let file = match writer {
                RowWriter::Parquet(rows) => rows.finish()?,
                RowWriter::Csv(writer) => writer
                    .into_inner()
                    .map_err(|error| error.into_error())?
                    .into_inner()
                    .map_err(|error| error.into_error())?,
            };
            file.sync_all()?;
            fs::rename(&path, to)?;
            Ok(file.metadata()?.len())
        };
        finish().with_context(|| could_not_write(to))
    }
}

fn could_not_write(path: &Path) -> String {
    format!("could not write {}", path.display())
}

/// The rows of a Parquet file. Those of its last row group are in memory.
struct ParquetRows {
    writer: SerializedFileWriter<File>,
    schema: Arc<Type>,
    rows: Vec<ExportRow>,
    text_bytes: usize,
}

impl ParquetRows {
    fn new(file: File, schema: Arc<Type>) -> anyhow::Result<Self> {
        let mut properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?));
        for name in GROWING {
            let column = ColumnPath::from(name);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        Ok(Self {
            writer: SerializedFileWriter::new(file, Arc::clone(&schema), Arc::new(properties.build()))?,
            schema,
            rows: Vec::new(),
            text_bytes: 0,
        })
    }

    fn push(&mut self, row: ExportRow) -> anyhow::Result<()> {
        self.text_bytes += row.iter().map(text_bytes).sum::<usize>();
        self.rows.push(row);
        if self.rows.len() == GROUP_ROWS || self.text_bytes >= GROUP_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> anyhow::Result<()> {
        let mut group = self.writer.next_row_group()?;
        for (index, field) in self.schema.get_fields().iter().enumerate() {
            let mut column = group.next_column()?.context("more columns than in the schema")?;
            let values = self.rows.iter().filter_map(|row| row.get(index));
            let levels: Vec<i16> = values
                .clone()
                .map(|value| i16::from(*value != ExportValue::Null))
                .collect();
            let levels = field.is_optional().then_some(levels.as_slice());
            macro_rules! write {
                ($type:ty, $($value:pat => $cell:expr),+) => {{
                    let of_type = values.filter_map(|value| match value { $($value => Some($cell),)+ _ => None });
                    column.typed::<$type>().write_batch(&of_type.collect::<Vec<_>>(), levels, None)?
                }};
            }
            match field.get_physical_type() {
                PhysicalType::INT32 => write!(Int32Type, ExportValue::Int(value) => *value),
                PhysicalType::INT64 => {
                    write!(Int64Type, ExportValue::Long(value) => *value, ExportValue::Time(at) => at.unix_ms())
                }
                PhysicalType::DOUBLE => write!(DoubleType, ExportValue::Real(value) => *value),
                PhysicalType::BOOLEAN => write!(BoolType, ExportValue::Flag(value) => *value),
                PhysicalType::BYTE_ARRAY => {
                    write!(ByteArrayType, ExportValue::Text(text) => ByteArray::from(&**text))
                }
                other @ (PhysicalType::FLOAT | PhysicalType::INT96 | PhysicalType::FIXED_LEN_BYTE_ARRAY) => {
                    bail!("no column has the type {other}")
                }
            };
            column.close()?;
        }
        group.close()?;
        self.rows.clear();
        self.text_bytes = 0;
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<File> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        Ok(self.writer.into_inner()?)
    }
}

fn text_bytes(value: &ExportValue) -> usize {
    if let ExportValue::Text(text) = value {
        text.len()
    } else {
        0
    }
}
