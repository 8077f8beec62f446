//! Unpacks gzip, whose members follow one another.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// Members of any content.
const MEMBERS: u64 = 100;
/// Unpacked bytes for each further member. Tools that write many members fill each with 64 KiB.
const BYTES_A_MEMBER: u64 = 8 << 10;

/// Unpacks all members of a gzip file. Each costs about as much time as some kilobytes of content, so a file with many
/// members of little content is refused.
#[derive(Debug)]
pub struct GzipReader<R> {
    /// The member that is read, until the end of the file.
    member: Option<GzDecoder<R>>,
    members: u64,
    unpacked_bytes: u64,
}

impl<R: BufRead> GzipReader<R> {
    /// Creates a reader of packed bytes.
    pub fn new(packed: R) -> Self {
        Self {
            member: Some(GzDecoder::new(packed)),
            members: 1,
            unpacked_bytes: 0,
        }
    }
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let length = member.read(buffer)?;
            if length > 0 {
                self.unpacked_bytes += u64::try_from(length).unwrap_or(u64::MAX);
                return Ok(length);
            }
            let Some(mut packed) = self.member.take().map(GzDecoder::into_inner) else {
                break;
            };
            if packed.fill_buf()?.is_empty() {
                break;
            }
            self.members += 1;
            if self.members > MEMBERS + self.unpacked_bytes / BYTES_A_MEMBER {
                let problem = format!("it has {} gzip members with hardly any content", self.members);
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
            self.member = Some(GzDecoder::new(packed));
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn member(content: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(content).unwrap();
        packed.finish().unwrap()
    }

    fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        GzipReader::new(packed).read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn members_with_content_are_read_and_empty_ones_are_counted() {
        let block = [b'a'; 64 << 10];
        let blocks = [member(&block).repeat(500), member(b"")].concat();
        assert_eq!(unpacked(&blocks).unwrap().len(), 500 * block.len());
        let few = [member(b"").repeat(50), member(b"a").repeat(50)].concat();
        assert_eq!(unpacked(&few).unwrap(), b"a".repeat(50));
        for content in [b"".as_slice(), b"a"] {
            let error = unpacked(&member(content).repeat(7_000)).unwrap_err();
            assert_eq!(
                error.to_string(),
                "it has 101 gzip members with hardly any content"
            );
        }
    }

    #[test]
    fn a_file_that_is_cut_off_ends_in_that_error() {
        let packed = [member(b"a"), member(b"b")].concat();
        for cut in [packed.len() - 1, packed.len() - 9, 25] {
            let error = unpacked(&packed[..cut]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{cut}");
        }
    }
}
