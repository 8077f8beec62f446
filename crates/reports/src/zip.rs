//! Finds the report in a zip of Playwright's blob reporter: the file whose name ends in `.jsonl`.

/// A file of an archive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// The stored bytes.
    pub(crate) bytes: &'a [u8],
    /// Whether the bytes are deflated. Otherwise they are the file itself.
    pub(crate) is_deflated: bool,
}

/// Whether the bytes begin with the signature of a zip.
pub(crate) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// The report, found through the directory at the archive's end. `None` if the archive is broken or has no report.
pub(crate) fn report(archive: &[u8]) -> Option<Entry<'_>> {
    // The last record has 22 bytes. A comment of at most 64 KiB follows it.
    let tail = archive.len().saturating_sub(22 + 0xffff);
    let last = archive.get(tail..)?;
    let end = last.windows(4).rposition(|bytes| bytes == b"PK\x05\x06")?;
    let end = last.get(end..)?;
    let (count, mut at) = (number(end, 10, 2)?, number(end, 16, 4)?);
    for _ in 0..count {
        let entry = archive
            .get(at..)
            .filter(|entry| entry.starts_with(b"PK\x01\x02"))?;
        let name_length = number(entry, 28, 2)?;
        let name = entry.get(46..46 + name_length)?;
        if name.ends_with(b".jsonl") {
            let (method, length, begin) = (
                number(entry, 10, 2)?,
                number(entry, 20, 4)?,
                number(entry, 42, 4)?,
            );
            let local = archive
                .get(begin..)
                .filter(|local| local.starts_with(b"PK\x03\x04"))?;
            let data = 30 + number(local, 26, 2)? + number(local, 28, 2)?;
            return matches!(method, 0 | 8).then_some(Entry {
                bytes: local.get(data..data.checked_add(length)?)?,
                is_deflated: method == 8,
            });
        }
        at += 46 + name_length + number(entry, 30, 2)? + number(entry, 32, 2)?;
    }
    None
}

/// A little-endian number of `length` bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + length)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| (number << 8) | usize::from(*byte)),
    )
}
