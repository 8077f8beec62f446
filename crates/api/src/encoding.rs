//! Content codings of a response.
//!
//! A body is compressed whole, on the thread that made it: its length is then known and nothing is chunked.

use std::io::{self, Write};

use actix_web::http::header::{AcceptEncoding, Encoding, HeaderValue};

/// How a body is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As it is.
    Identity,
    /// gzip.
    Gzip,
    /// Brotli.
    Brotli,
    /// Zstandard.
    Zstd,
}

/// The window of 2^20 bytes holds the repetitions of our largest bodies at a fraction of the default's memory.
const BROTLI_WINDOW: i32 = 20;
const BROTLI_QUALITY: i32 = 4;
const ZSTD_LEVEL: i32 = 3;

impl Coding {
    /// What the client likes best of what we offer. One that accepts nothing of it is sent the body as it is,
    /// which serves it better than a refusal.
    pub(crate) fn negotiate(accepted: &AcceptEncoding) -> Self {
        let offered = [
            Encoding::identity(),
            Encoding::gzip(),
            Encoding::brotli(),
            Encoding::zstd(),
        ];
        let chosen = accepted.negotiate(offered.iter());
        [Self::Gzip, Self::Brotli, Self::Zstd]
            .into_iter()
            .find(|coding| {
                chosen
                    .as_ref()
                    .is_some_and(|chosen| chosen.to_string() == coding.name())
            })
            .unwrap_or(Self::Identity)
    }

    /// The value of `Content-Encoding`, if there is to be one.
    pub(crate) const fn header(self) -> Option<HeaderValue> {
        match self {
            Self::Identity => None,
            Self::Gzip | Self::Brotli | Self::Zstd => Some(HeaderValue::from_static(self.name())),
        }
    }

    /// What tells this coding's entity tag from the others'.
    pub(crate) const fn tag_suffix(self) -> &'static str {
        match self {
            Self::Identity => "",
            Self::Gzip => "-gzip",
            Self::Brotli => "-br",
            Self::Zstd => "-zstd",
        }
    }

    /// Codes a whole body.
    pub(crate) fn encode(self, body: Vec<u8>) -> io::Result<Vec<u8>> {
        let room = Vec::with_capacity(body.len() / 8);
        match self {
            Self::Identity => Ok(body),
            Self::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(room, flate2::Compression::fast());
                writer.write_all(&body)?;
                writer.finish()
            }
            Self::Brotli => {
                let parameters = brotli::enc::BrotliEncoderParams {
                    quality: BROTLI_QUALITY,
                    lgwin: BROTLI_WINDOW,
                    ..Default::default()
                };
                let mut coded = room;
                brotli::BrotliCompress(&mut body.as_slice(), &mut coded, &parameters)?;
                Ok(coded)
            }
            Self::Zstd => zstd::bulk::compress(&body, ZSTD_LEVEL),
        }
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
    fn the_clients_favourite_is_taken() {
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
}
