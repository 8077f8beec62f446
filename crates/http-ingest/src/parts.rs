//! Unpacks a received body and splits it into report files and fields.
//!
//! A first pass measures the size of the parts, which is the memory that the second pass needs to collect them. Both
//! passes read one piece at a time and are bounded. Archives among the files are unpacked by their readers.

mod heads;
mod measure;

use std::{
    fs::File,
    io::{self, Read, Seek as _},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use actix_web::{
    http::header::{self, HeaderMap},
    web::Bytes,
};
use assay_ingest::{UploadField, values::LONGEST_FILE_NAME};
use assay_reports::{GzipReader, SourceFile};
use futures_util::Stream;

use crate::{
    admit::too_long,
    error::IngestError,
    fields::{RawFields, field_of},
    limits::{FIELDS, Limits},
};

pub(crate) use self::{heads::PartHeads, measure::measure};

/// Bytes that are unpacked at a time.
const PIECE: usize = 64 << 10;
/// Most bytes in a row outside of the contents of parts: before the first part, after the last one, or in the head of a
/// part. The parser keeps them in memory.
const LONGEST_HEAD: usize = 64 << 10;
/// The largest window of Zstandard, as a power of two: enough for its levels up to 19. A decoder takes that much
/// memory.
const ZSTD_WINDOW: u32 = 23;
/// The file name of a raw body in messages.
const RAW_NAME: &str = "report";

/// The encoding of a body, as its head declares it.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    coding: Coding,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
    Zstd,
}

#[derive(Debug, Clone)]
enum Form {
    /// `multipart/form-data` with this boundary.
    Multipart(String),
    /// The body is one report.
    Raw,
}

impl Shape {
    /// The shape that a request's head declares.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, IngestError> {
        let text = |name| {
            let mut values = headers.get_all(name);
            let first = values.next().map(|value| value.to_str().unwrap_or("?"));
            (first, values.next().is_some())
        };
        let coding = match text(header::CONTENT_ENCODING) {
            (None, _) => Coding::Identity,
            (Some(coding), false) => match coding.trim().to_ascii_lowercase().as_str() {
                "identity" | "" => Coding::Identity,
                "gzip" | "x-gzip" => Coding::Gzip,
                "zstd" => Coding::Zstd,
                _ => return Err(IngestError::UnsupportedCoding),
            },
            (Some(_), true) => return Err(IngestError::UnsupportedCoding),
        };
        let content_type = text(header::CONTENT_TYPE).0.unwrap_or_default();
        let is_multipart = content_type
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("multipart/");
        let form = match is_multipart {
            true => Form::Multipart(
                multer::parse_boundary(content_type)
                    .map_err(|error| IngestError::BadMultipart(error.to_string()))?,
            ),
            false => Form::Raw,
        };
        Ok(Self { coding, form })
    }

    /// Whether the body is one report. Its fields are then in the query.
    pub(crate) const fn is_raw(&self) -> bool {
        matches!(self.form, Form::Raw)
    }

    /// A whole body of at most this many unpacked bytes.
    pub(crate) fn unpacked(&self, file: &File, most: u64) -> Result<Vec<u8>, IngestError> {
        let mut bytes = Vec::new();
        let mut reader = self.reader(file)?.take(most + 1);
        reader.read_to_end(&mut bytes).map_err(not_unpacked)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length <= most) {
            Ok(bytes)
        } else {
            Err(too_long(most))
        }
    }

    fn reader(&self, file: &File) -> Result<Box<dyn Read + Send>, IngestError> {
        let mut file = file.try_clone().map_err(IngestError::Spool)?;
        file.rewind().map_err(IngestError::Spool)?;
        let file = io::BufReader::with_capacity(PIECE, file);
        Ok(match self.coding {
            Coding::Identity => Box::new(file),
            Coding::Gzip => Box::new(GzipReader::new(file)),
            Coding::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(file).map_err(IngestError::DoesNotUnpack)?;
                decoder
                    .window_log_max(ZSTD_WINDOW)
                    .map_err(IngestError::DoesNotUnpack)?;
                Box::new(decoder)
            }
        })
    }
}

/// Receives the parts of a body.
trait Visit {
    /// Begins a report file.
    fn file(&mut self, name: String) -> Result<(), IngestError>;
    /// Continues that file.
    fn data(&mut self, bytes: &[u8]) -> Result<(), IngestError>;
    /// Ends that file.
    fn end(&mut self) -> Result<(), IngestError>;
    /// Receives a whole field.
    fn field(&mut self, field: UploadField, value: Vec<u8>) -> Result<(), IngestError>;
}

/// Reads the files and fields of a body.
pub(crate) fn collect(
    file: &File,
    shape: &Shape,
    limits: &Limits,
) -> Result<(Vec<SourceFile>, RawFields), IngestError> {
    let mut parts = Parts::default();
    walk(file, shape, limits, &mut parts)?;
    Ok((parts.files, parts.fields))
}

/// Collects the parts of a body.
#[derive(Default)]
struct Parts {
    files: Vec<SourceFile>,
    fields: RawFields,
}

impl Visit for Parts {
    fn file(&mut self, name: String) -> Result<(), IngestError> {
        self.files.push(SourceFile {
            name,
            bytes: Vec::new(),
            modified: None,
        });
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        if let Some(file) = self.files.last_mut() {
            file.bytes.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), IngestError> {
        if let Some(file) = self.files.last_mut() {
            file.bytes.shrink_to_fit();
        }
        Ok(())
    }

    fn field(&mut self, field: UploadField, value: Vec<u8>) -> Result<(), IngestError> {
        self.fields.add(field, value)
    }
}

fn walk(file: &File, shape: &Shape, limits: &Limits, visit: &mut impl Visit) -> Result<(), IngestError> {
    let mut reader = shape.reader(file)?;
    match &shape.form {
        Form::Raw => {
            visit.file(RAW_NAME.to_owned())?;
            let mut piece = vec![0; PIECE];
            loop {
                let length = reader.read(&mut piece).map_err(not_unpacked)?;
                if length == 0 {
                    return visit.end();
                }
                visit.data(piece.get(..length).unwrap_or_default())?;
            }
        }
        Form::Multipart(boundary) => walk_multipart(reader, boundary, limits, visit),
    }
}

fn walk_multipart(
    mut reader: Box<dyn Read + Send>,
    boundary: &str,
    limits: &Limits,
    visit: &mut impl Visit,
) -> Result<(), IngestError> {
    let demand = Arc::new(Demand::default());
    let pieces = Pieces {
        reader: &mut *reader,
        demand: Arc::clone(&demand),
    };
    let mut parts = multer::Multipart::new(pieces, boundary);
    let (mut files, mut fields) = (0, 0);
    while let Some(mut part) = complete(parts.next_field(), &demand).map_err(not_multipart)? {
        if let Some(name) = part.file_name() {
            files += 1;
            if files > limits.files {
                return Err(IngestError::TooLarge {
                    subject: "The number of files",
                    limit: limits.files.to_string(),
                });
            }
            visit.file(file_name(name)?)?;
            while let Some(bytes) = complete(part.chunk(), &demand).map_err(not_multipart)? {
                visit.data(&bytes)?;
            }
            visit.end()?;
            continue;
        }
        fields += 1;
        if fields > FIELDS {
            return Err(IngestError::TooLarge {
                subject: "The number of fields",
                limit: FIELDS.to_string(),
            });
        }
        let name = part.name().ok_or_else(|| {
            IngestError::BadMultipart("a part has neither a name nor a file name".to_owned())
        })?;
        let field = field_of(name)?;
        let most = field.most_bytes();
        let mut value = Vec::new();
        while let Some(bytes) = complete(part.chunk(), &demand).map_err(not_multipart)? {
            value.extend_from_slice(&bytes);
            if value.len() > most {
                return Err(IngestError::bad(
                    field.name(),
                    format!("expected at most {most} bytes"),
                ));
            }
        }
        visit.field(field, value)?;
    }
    drop(parts);
    // What follows the last part is ignored, but an archive has its checksum at its end.
    let most = u64::try_from(LONGEST_HEAD).unwrap_or(u64::MAX);
    let rest = io::copy(&mut reader.take(most + 1), &mut io::sink()).map_err(not_unpacked)?;
    if rest > most {
        return Err(IngestError::BadMultipart(format!(
            "more than {} KiB follow the last part",
            LONGEST_HEAD >> 10
        )));
    }
    if files == 0 {
        return Err(IngestError::BadMultipart(
            "it holds no report file; send each as a part with a file name, as curl -F report=@FILE does"
                .to_owned(),
        ));
    }
    Ok(())
}

/// The name of a report file in messages.
fn file_name(name: &str) -> Result<String, IngestError> {
    let is_sound = !name.is_empty()
        && !name.starts_with('/')
        && !name.split('/').any(|part| part == "..")
        && !name.contains(char::is_control);
    if !is_sound {
        let excerpt = IngestError::excerpt(name);
        return Err(IngestError::bad(
            "the file name",
            format!("{excerpt:?} is not a relative path with / and without .. and control characters"),
        ));
    }
    if name.chars().count() > LONGEST_FILE_NAME {
        return Err(IngestError::bad(
            "the file name",
            format!("expected at most {LONGEST_FILE_NAME} characters"),
        ));
    }
    Ok(name.to_owned())
}

fn not_unpacked(error: io::Error) -> IngestError {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        IngestError::Truncated
    } else {
        IngestError::DoesNotUnpack(error)
    }
}

fn not_multipart(error: multer::Error) -> IngestError {
    if let multer::Error::StreamReadFailed(error) = error {
        return match error.downcast::<io::Error>() {
            Ok(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                IngestError::BadMultipart(error.to_string())
            }
            Ok(error) => not_unpacked(*error),
            Err(error) => IngestError::BadMultipart(error.to_string()),
        };
    }
    let is_cut = matches!(
        error,
        multer::Error::IncompleteStream
            | multer::Error::IncompleteHeaders
            | multer::Error::IncompleteFieldData { .. }
    );
    if is_cut {
        IngestError::Truncated
    } else {
        IngestError::BadMultipart(error.to_string())
    }
}

/// The parser's demand for more of a body. The parser buffers all ready data, so a piece is ready only on demand.
#[derive(Debug, Default)]
struct Demand {
    /// Whether the parser needs another piece.
    is_due: AtomicBool,
    /// Bytes since the parser last returned a part or some content of a part. The parser keeps all of them.
    unread: AtomicUsize,
}

/// Streams a reader, one piece for each demand.
struct Pieces<'r> {
    reader: &'r mut (dyn Read + Send),
    demand: Arc<Demand>,
}

impl Stream for Pieces<'_> {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if !self.demand.is_due.swap(false, Ordering::Relaxed) {
            return Poll::Pending;
        }
        if self.demand.unread.load(Ordering::Relaxed) > LONGEST_HEAD {
            return Poll::Ready(Some(Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("more than {} KiB begin no part", LONGEST_HEAD >> 10),
            ))));
        }
        let mut piece = vec![0; PIECE];
        Poll::Ready(match self.reader.read(&mut piece) {
            Ok(0) => None,
            Ok(length) => {
                self.demand.unread.fetch_add(length, Ordering::Relaxed);
                piece.truncate(length);
                Some(Ok(Bytes::from(piece)))
            }
            Err(error) => Some(Err(error)),
        })
    }
}

/// Completes a future over [`Pieces`]. While it is pending, it needs another piece.
fn complete<F: Future>(future: F, demand: &Demand) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            demand.unread.store(0, Ordering::Relaxed);
            return output;
        }
        demand.is_due.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
