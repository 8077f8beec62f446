//! Converts the bytes of a file to text: unpacks, bounds and decodes them.

use std::{
    borrow::Cow,
    io::{self, Read},
    str,
    sync::atomic::{AtomicUsize, Ordering},
};

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use flate2::read::DeflateDecoder;

use crate::{
    gzip::GzipReader,
    limits, memory,
    report::{ReadError, SourceFile, whole_import},
    zip,
};

/// The file's text: gzip or zip unpacked, then decoded. The encoding is that of the byte-order mark, UTF-16 without a
/// mark, that of the declaration, UTF-8 or Windows-1252, whichever fits first. If the text ends inside a character,
/// that character is dropped.
pub(crate) fn decode<'a>(
    file: &'a SourceFile,
    unpacked_bytes: &UnpackedBytes,
) -> Result<Cow<'a, str>, ReadError> {
    match unpack(file, unpacked_bytes)? {
        Cow::Borrowed(bytes) => {
            hold_text_of(bytes, file)?;
            Ok(text(bytes))
        }
        Cow::Owned(bytes) if named_encoding(&bytes).is_some() => {
            hold(MOST_PER_BYTE.saturating_mul(bytes.len()), file)?;
            Ok(Cow::Owned(text(&bytes).into_owned()))
        }
        // A text that is UTF-8 already is not copied.
        Cow::Owned(bytes) => Ok(Cow::Owned(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                hold(MOST_PER_BYTE.saturating_mul(error.as_bytes().len()), file)?;
                text(error.as_bytes()).into_owned()
            }
        })),
    }
}

/// Most bytes of text that a byte of another encoding becomes.
const MOST_PER_BYTE: usize = 3;

/// Takes the memory for the text of bytes, if it is a copy of them.
fn hold_text_of(bytes: &[u8], file: &SourceFile) -> Result<(), ReadError> {
    let is_copied = named_encoding(bytes).is_some() || str::from_utf8(bytes).is_err();
    let copied = if is_copied { bytes.len() } else { 0 };
    hold(MOST_PER_BYTE.saturating_mul(copied), file)
}

/// Takes memory until the end of the file.
fn hold(bytes: usize, file: &SourceFile) -> Result<(), ReadError> {
    if memory::hold(bytes) {
        return Ok(());
    }
    memory::check(&file.name)
}

/// The budget of bytes that all files of one import share: those of the files, and those that archives unpack to.
#[derive(Debug)]
pub struct UnpackedBytes {
    left: AtomicUsize,
    limit: usize,
}

impl UnpackedBytes {
    /// A budget of this many bytes.
    pub const fn new(bytes: usize) -> Self {
        Self {
            left: AtomicUsize::new(bytes),
            limit: bytes,
        }
    }

    /// The bytes that were taken.
    pub fn taken(&self) -> usize {
        self.limit.saturating_sub(self.left.load(Ordering::Relaxed))
    }

    /// Gives everything back, to read the same files again.
    pub fn clear(&self) {
        self.left.store(self.limit, Ordering::Relaxed);
    }

    /// Takes `bytes` bytes from the budget. Fails if fewer are left.
    fn take(&self, bytes: usize, file: &SourceFile) -> Result<(), ReadError> {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| {
                remaining.checked_sub(bytes)
            })
            .map(|_| ())
            .map_err(|_| {
                let limit = format!("{} MiB", self.limit >> 20);
                ReadError::too_large(&file.name, whole_import::BYTES, limit)
            })
    }
}

/// The beginning of the file's text, for recognizing its format.
pub(crate) fn beginning(bytes: &[u8], max_bytes: usize) -> String {
    let mut head = Vec::new();
    match archive(bytes) {
        Some((archive, _)) => {
            // A broken archive is reported when it is read. Format detection needs only its intact part.
            let max_bytes = u64::try_from(max_bytes).unwrap_or(u64::MAX);
            let _cut = archive.take(max_bytes).read_to_end(&mut head);
        }
        None => head.extend_from_slice(bytes.get(..max_bytes).unwrap_or(bytes)),
    }
    text(&head).into_owned()
}

fn unpack<'a>(file: &'a SourceFile, unpacked_bytes: &UnpackedBytes) -> Result<Cow<'a, [u8]>, ReadError> {
    let too_large = || {
        let limit = format!("{} MiB", limits::FILE_BYTES >> 20);
        ReadError::too_large(&file.name, "the file", limit)
    };
    let Some((mut archive, format)) = archive(&file.bytes) else {
        if file.bytes.len() > limits::FILE_BYTES {
            return Err(too_large());
        }
        unpacked_bytes.take(file.bytes.len(), file)?;
        return Ok(Cow::Borrowed(&file.bytes));
    };
    // The archive itself is in memory, too.
    unpacked_bytes.take(file.bytes.len(), file)?;
    let mut unpacked = Vec::new();
    loop {
        let before = unpacked.len();
        let read = archive.as_mut().take(PIECE_BYTES).read_to_end(&mut unpacked);
        let unpacked_now = unpacked.len() - before;
        hold(unpacked_now, file)?;
        if unpacked.len() > limits::FILE_BYTES {
            return Err(too_large());
        }
        unpacked_bytes.take(unpacked_now, file)?;
        match read {
            Ok(0) => return Ok(Cow::Owned(unpacked)),
            Ok(_) => {}
            // An archive that is cut off is read up to its end, like any file that is cut off.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !unpacked.is_empty() => {
                return Ok(Cow::Owned(unpacked));
            }
            Err(error) => {
                return Err(ReadError::Broken {
                    file: file.name.clone(),
                    line: 1,
                    format,
                    problem: format!("the archive does not unpack ({error})"),
                });
            }
        }
    }
}

/// The bytes of an archive that are unpacked at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// The name of zip in messages.
const ZIP: &str = "zip";

/// A reader of an archive's contents, and the archive's name for messages. `None` if the bytes are not an archive.
fn archive(bytes: &[u8]) -> Option<(Box<dyn Read + '_>, &'static str)> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Some((Box::new(GzipReader::new(bytes)), "gzip"));
    }
    let entry = zip::is_zip(bytes).then(|| zip::report(bytes)).flatten()?;
    Some(if entry.is_deflated {
        (Box::new(DeflateDecoder::new(entry.bytes)), ZIP)
    } else {
        (Box::new(entry.bytes), ZIP)
    })
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Some((encoding, mark)) = named_encoding(bytes) {
        return encoding
            .decode_without_bom_handling(bytes.get(mark..).unwrap_or_default())
            .0;
    }
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(error) if error.error_len().is_none() => {
            // The text ends inside its last character.
            str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default())
                .map_or(Cow::Borrowed(""), Cow::Borrowed)
        }
        Err(_) if mostly_utf8(bytes) => String::from_utf8_lossy(bytes),
        Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0,
    }
}

/// The encoding that the beginning of the bytes shows, and the length of a byte-order mark.
fn named_encoding(bytes: &[u8]) -> Option<(&'static Encoding, usize)> {
    Encoding::for_bom(bytes).or_else(|| Some((unmarked_utf16(bytes).or_else(|| declared(bytes))?, 0)))
}

/// Whether the bytes have more multi-byte characters than invalid sequences. They are then UTF-8 into which a test
/// printed binary data.
fn mostly_utf8(bytes: &[u8]) -> bool {
    let (mut multi_byte, mut invalid) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        multi_byte += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    multi_byte > invalid
}

/// Detects UTF-16 without a byte-order mark: the first character of markup or JSON has a NUL beside it.
fn unmarked_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes {
        [b'<' | b'{' | b'[', 0, ..] => Some(UTF_16LE),
        [0, b'<' | b'{' | b'[', ..] => Some(UTF_16BE),
        _ => None,
    }
}

/// The encoding that an XML declaration names. A declaration that contradicts the bytes (UTF-16 over single bytes) is
/// ignored. A declaration of UTF-8 is ignored, too, because invalid UTF-8 is Windows-1252 in practice.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..bytes.len().min(256))?.trim_ascii_start();
    let declaration = head.strip_prefix(b"<?xml")?;
    let end = declaration.windows(2).position(|pair| pair == b"?>")?;
    let declaration = str::from_utf8(declaration.get(..end)?).ok()?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let label = value.get(1..)?.split(quote).next()?;
    Encoding::for_label(label.as_bytes()).filter(|encoding| ![UTF_8, UTF_16LE, UTF_16BE].contains(encoding))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(bytes: &[u8]) -> SourceFile {
        SourceFile {
            name: "report".into(),
            bytes: bytes.to_vec(),
            modified: None,
        }
    }

    fn unpacked_bytes() -> UnpackedBytes {
        UnpackedBytes::new(limits::IMPORT_BYTES)
    }

    fn decoded(bytes: &[u8]) -> String {
        decode(&file(bytes), &unpacked_bytes()).unwrap().into_owned()
    }

    #[test]
    fn a_byte_order_mark_takes_precedence_over_the_declaration() {
        assert_eq!(decoded(b"\xef\xbb\xbf{\"a\":\"\xc3\xa9\"}"), "{\"a\":\"é\"}");
        let utf16: Vec<u8> = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-16\"?><a b='é'/>"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert!(decoded(&utf16).ends_with("<a b='é'/>"));
        let unmarked: Vec<u8> = "<a b='é'/>".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decoded(&unmarked), "<a b='é'/>");
    }

    #[test]
    fn a_packed_text_has_the_encoding_of_the_unpacked_one() {
        let utf16: Vec<u8> = "{\"a\": 1}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let declared = b"<?xml version=\"1.0\" encoding='iso-8859-2'?><a b='\xc2\xb3'/>";
        for bytes in [&*utf16, declared, b"{\"a\":\"caf\xc3\xa9\"}"] {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(bytes).unwrap();
            assert_eq!(decoded(&packed.finish().unwrap()), decoded(bytes));
        }
    }

    #[test]
    fn a_declared_encoding_is_used_and_an_undeclared_one_is_guessed() {
        assert_eq!(
            decoded(b"<?xml version=\"1.0\" encoding='iso-8859-2'?><a b='\xb3'/>"),
            "<?xml version=\"1.0\" encoding='iso-8859-2'?><a b='ł'/>"
        );
        assert_eq!(decoded(b"<a b='caf\xe9 \x80'/>"), "<a b='café €'/>");
        assert!(decoded(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?><a b='caf\xe9'/>").contains("café"));
        assert_eq!(decoded(b"caf\xc3\xa9 \xe2\x9c\x93 \xff"), "café ✓ \u{fffd}");
        assert!(decoded(b"<?xml version=\"1.0\" encoding=\"UTF-16\"?><a b='x'/>").contains("b='x'"));
    }

    #[test]
    fn a_text_cut_inside_a_character_stays_utf8() {
        assert_eq!(decoded(b"{\"a\":\"caf\xc3\xa9\xc3"), "{\"a\":\"café");
    }

    #[test]
    fn gzip_is_unpacked_and_bounded() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"{\"a\": 1}").unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(decoded(&packed), "{\"a\": 1}");
        assert_eq!(beginning(&packed, 4), "{\"a\"");
        assert!(matches!(
            decode(&file(&packed[..4]), &unpacked_bytes()),
            Err(ReadError::Broken { format: "gzip", .. })
        ));

        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let zeros = vec![b' '; 1 << 20];
        for _ in 0..=(limits::FILE_BYTES >> 20) {
            bomb.write_all(&zeros).unwrap();
        }
        let bomb = file(&bomb.finish().unwrap());
        assert!(matches!(
            decode(&bomb, &unpacked_bytes()),
            Err(ReadError::TooLarge { .. })
        ));
    }

    #[test]
    fn an_import_is_bounded_by_the_unpacked_size_of_its_archives() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&vec![b' '; 3 << 20]).unwrap();
        let archive = file(&packed.finish().unwrap());
        let unpacked_bytes = UnpackedBytes::new(7 << 20);
        for _ in 0..2 {
            assert_eq!(decode(&archive, &unpacked_bytes).unwrap().len(), 3 << 20);
        }
        let error = decode(&archive, &unpacked_bytes).unwrap_err().to_string();
        assert!(
            error.contains("the import as a whole, unpacked, exceeds"),
            "{error}"
        );
    }
}
