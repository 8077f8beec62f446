//! Content codings of a response.
//!
//! A body is compressed as a whole on the thread that made it, so that its length is known and it is not chunked.

use std::{
    io::{self, Write},
    mem,
};

use actix_web::http::header::{AcceptEncoding, Encoding, HeaderValue};

/// The coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// Identity.
    Identity,
    /// gzip.
    Gzip,
    /// Brotli.
    Brotli,
    /// Zstandard.
    Zstd,
}

/// A window of 2^20 bytes covers the repetitions of the largest bodies with a fraction of the default's memory.
const BROTLI_WINDOW: i32 = 20;
/// The window for a body that is coded in pieces. It is smaller because the coder's memory is held until the client has
/// read the last piece.
const PIECES_WINDOW: i32 = 18;
const BROTLI_QUALITY: i32 = 4;
const ZSTD_LEVEL: i32 = 3;

impl Coding {
    /// The coding that the client prefers among the supported ones. A client that accepts none of them gets the body
    /// as it is, which is more useful than an error.
    pub fn negotiate(accepted: &AcceptEncoding) -> Self {
        let offered = [
            Encoding::identity(),
            Encoding::gzip(),
            Encoding::brotli(),
            Encoding::zstd(),
        ];
        let preferred = accepted.negotiate(offered.iter());
        [Self::Gzip, Self::Brotli, Self::Zstd]
            .into_iter()
            .find(|coding| {
                preferred
                    .as_ref()
                    .is_some_and(|preferred| preferred.to_string() == coding.name())
            })
            .unwrap_or(Self::Identity)
    }

    /// The value of `Content-Encoding`; `None` for identity.
    pub const fn header(self) -> Option<HeaderValue> {
        match self {
            Self::Identity => None,
            Self::Gzip | Self::Brotli | Self::Zstd => Some(HeaderValue::from_static(self.name())),
        }
    }

    /// The suffix that separates this coding's entity tag from those of other codings.
    pub const fn tag_suffix(self) -> &'static str {
        match self {
            Self::Identity => "",
            Self::Gzip => "-gzip",
            Self::Brotli => "-br",
            Self::Zstd => "-zstd",
        }
    }

    /// Encodes a whole body.
    pub fn encode(self, body: Vec<u8>) -> io::Result<Vec<u8>> {
        let buffer = Vec::with_capacity(body.len() / 8);
        match self {
            Self::Identity => Ok(body),
            Self::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(buffer, flate2::Compression::fast());
                writer.write_all(&body)?;
                writer.finish()
            }
            Self::Brotli => {
                let parameters = brotli::enc::BrotliEncoderParams {
                    quality: BROTLI_QUALITY,
                    lgwin: BROTLI_WINDOW,
                    ..Default::default()
                };
                let mut coded = buffer;
                brotli::BrotliCompress(&mut body.as_slice(), &mut coded, &parameters)?;
                Ok(coded)
            }
            Self::Zstd => zstd::bulk::compress(&body, ZSTD_LEVEL),
        }
    }

    /// Starts to encode a body in pieces.
    pub fn encoder(self) -> io::Result<Encoder> {
        Ok(match self {
            Self::Identity => Encoder::Identity,
            Self::Gzip => Encoder::Gzip(flate2::write::GzEncoder::new(
                Vec::new(),
                flate2::Compression::fast(),
            )),
            Self::Brotli => {
                let parameters = brotli::enc::BrotliEncoderParams {
                    quality: BROTLI_QUALITY,
                    lgwin: PIECES_WINDOW,
                    ..Default::default()
                };
                Encoder::Brotli(Box::new(brotli::CompressorWriter::with_params(
                    Vec::new(),
                    4096,
                    &parameters,
                )))
            }
            Self::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.set_parameter(zstd::zstd_safe::CParameter::WindowLog(
                    PIECES_WINDOW.unsigned_abs(),
                ))?;
                Encoder::Zstd(encoder)
            }
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }
}

/// Encodes a body in pieces.
pub enum Encoder {
    /// Identity.
    Identity,
    /// gzip.
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    /// Brotli.
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    /// Zstandard.
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// Encodes a piece and flushes it, so that the client can decode all of it once it has arrived.
    pub fn piece(&mut self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        fn write_and_flush<W: Write>(writer: &mut W, bytes: &[u8]) -> io::Result<()> {
            writer.write_all(bytes)?;
            writer.flush()
        }
        match self {
            Self::Identity => Ok(bytes),
            Self::Gzip(writer) => write_and_flush(writer, &bytes).map(|()| mem::take(writer.get_mut())),
            Self::Brotli(writer) => write_and_flush(writer, &bytes).map(|()| mem::take(writer.get_mut())),
            Self::Zstd(writer) => write_and_flush(writer, &bytes).map(|()| mem::take(writer.get_mut())),
        }
    }

    /// Encodes the last piece and ends the body.
    pub fn end(self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        match self {
            Self::Identity => Ok(bytes),
            Self::Gzip(mut writer) => writer.write_all(&bytes).and_then(|()| writer.finish()),
            Self::Brotli(mut writer) => writer.write_all(&bytes).map(|()| writer.into_inner()),
            Self::Zstd(mut writer) => writer.write_all(&bytes).and_then(|()| writer.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use actix_web::http::header::Header;
    use actix_web::test::TestRequest;

    use super::*;

    fn negotiated(accept: &str) -> Coding {
        let request = TestRequest::default()
            .insert_header(("Accept-Encoding", accept))
            .to_http_request();
        Coding::negotiate(&AcceptEncoding::parse(&request).unwrap())
    }

    #[test]
    fn the_coding_that_the_client_prefers_is_chosen() {
        for (accept, expected) in [
            ("", Coding::Identity),
            ("identity", Coding::Identity),
            ("gzip", Coding::Gzip),
            ("br", Coding::Brotli),
            ("zstd", Coding::Zstd),
            ("gzip;q=0.5, br;q=0.9, zstd;q=0.7", Coding::Brotli),
            ("gzip;q=0", Coding::Identity),
            ("deflate", Coding::Identity),
            ("identity;q=0", Coding::Identity),
        ] {
            assert_eq!(negotiated(accept), expected, "{accept:?}");
        }
    }

    #[test]
    fn every_coding_decodes_to_the_same_body() {
        let body = b"{\"testName\": \"basket > pays\"}".repeat(2_000);
        let coded = Coding::Gzip.encode(body.clone()).unwrap();
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(coded.as_slice())
            .read_to_end(&mut plain)
            .unwrap();
        assert!(plain == body && coded.len() < body.len() / 10);

        let coded = Coding::Brotli.encode(body.clone()).unwrap();
        let mut plain = Vec::new();
        brotli::BrotliDecompress(&mut coded.as_slice(), &mut plain).unwrap();
        assert!(plain == body && coded.len() < body.len() / 10);

        let coded = Coding::Zstd.encode(body.clone()).unwrap();
        assert!(zstd::decode_all(coded.as_slice()).unwrap() == body && coded.len() < body.len() / 10);
    }

    #[test]
    fn a_body_in_pieces_decodes_to_the_same_bytes() {
        let decode = |coding: Coding, coded: &[u8]| {
            let mut plain = Vec::new();
            match coding {
                Coding::Identity => plain.extend_from_slice(coded),
                Coding::Gzip => drop(
                    flate2::read::GzDecoder::new(coded)
                        .read_to_end(&mut plain)
                        .unwrap(),
                ),
                Coding::Brotli => brotli::BrotliDecompress(&mut { coded }, &mut plain).unwrap(),
                Coding::Zstd => plain = zstd::decode_all(coded).unwrap(),
            }
            plain
        };
        for coding in [Coding::Identity, Coding::Gzip, Coding::Brotli, Coding::Zstd] {
            let mut encoder = coding.encoder().unwrap();
            let mut coded = Vec::new();
            for piece in ["[1", ",2", ",3"] {
                let piece = encoder.piece(piece.into()).unwrap();
                assert!(!piece.is_empty());
                coded.extend(piece);
            }
            coded.extend(encoder.end(b"]".to_vec()).unwrap());
            assert_eq!(decode(coding, &coded), b"[1,2,3]", "{coding:?}");
        }
    }
}
