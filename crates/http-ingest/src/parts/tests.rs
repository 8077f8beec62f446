use std::io::{Seek as _, Write as _};

use assay_reports::{Options, UnpackedBytes};

use super::*;

const BOUNDARY: &str = "assay-test";

fn multipart(parts: &[(&str, Option<&str>, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, bytes) in parts {
        let file = file
            .map(|file| format!("; filename=\"{file}\""))
            .unwrap_or_default();
        body.extend(
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n").bytes(),
        );
        body.extend_from_slice(bytes);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").bytes());
    body
}

fn spooled(body: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(body).unwrap();
    file.rewind().unwrap();
    file
}

fn shape(coding: Coding) -> Shape {
    Shape {
        coding,
        form: Form::Multipart(BOUNDARY.to_owned()),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// A zip of one file.
fn zip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    let packed = packed.finish().unwrap();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
    let name = b"report.jsonl";
    let deflated = [8, 0];
    let mut archive = Vec::new();
    archive.extend(b"PK\x03\x04\x14\0\0\0");
    archive.extend(deflated);
    archive.extend([0; 8]);
    archive.extend([length(&packed), length(bytes)].concat());
    archive.extend([12, 0, 0, 0]);
    archive.extend(name);
    archive.extend(&packed);
    let directory = length(&archive);
    archive.extend(b"PK\x01\x02\x14\0\x14\0\0\0");
    archive.extend(deflated);
    archive.extend([0; 8]);
    archive.extend([length(&packed), length(bytes)].concat());
    archive.extend([12, 0]);
    archive.extend([0; 16]);
    archive.extend(name);
    archive.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    archive.extend([58, 0, 0, 0]);
    archive.extend(directory);
    archive.extend([0, 0]);
    archive
}

fn limits(unpacked_bytes: u64) -> Limits {
    Limits {
        unpacked_bytes,
        files: 3,
        ..Limits::default()
    }
}

#[test]
fn files_and_fields_come_out_as_they_went_in_under_every_coding() {
    // Longer than a piece, and contains text like a boundary.
    let long = b"\r\n--assay-tes\r\n--".repeat(10_000);
    let packed = gzip(&long);
    let body = multipart(&[
        ("branch", None, b"main"),
        ("r", Some("a/b.xml"), &long),
        ("r", Some("c.xml.gz"), &packed),
    ]);
    for (coding, body) in [
        (Coding::Identity, body.clone()),
        (Coding::Gzip, gzip(&body)),
        (Coding::Zstd, zstd::encode_all(body.as_slice(), 3).unwrap()),
    ] {
        let file = spooled(&body);
        let limits = limits(10 << 20);
        let measured = measure(&file, &shape(coding), &limits).unwrap();
        let expected = u64::try_from(4 + long.len() + packed.len()).unwrap();
        assert_eq!(measured, expected, "{coding:?}");
        let (files, _) = collect(&file, &shape(coding), &limits).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["a/b.xml", "c.xml.gz"]);
        assert!(files[0].bytes == long && files[1].bytes == packed);
    }
}

#[test]
fn a_body_cut_anywhere_is_refused_and_ends() {
    let body = multipart(&[("branch", None, b"main"), ("r", Some("a.xml"), b"<a/>")]);
    let end = body.len() - "--\r\n".len();
    for cut in 0..end {
        let refused = collect(&spooled(&body[..cut]), &shape(Coding::Identity), &limits(1_000));
        let error = refused.map(|_| cut).unwrap_err();
        assert_eq!(error.code(), "invalid_parameter", "{cut}: {error}");
    }
    for (coding, packed) in [
        (Coding::Gzip, gzip(&body)),
        (Coding::Zstd, zstd::encode_all(body.as_slice(), 3).unwrap()),
    ] {
        for cut in 0..packed.len() - 8 {
            let refused = collect(&spooled(&packed[..cut]), &shape(coding), &limits(1_000));
            let error = refused.map(|_| cut).unwrap_err();
            assert_eq!(error.code(), "invalid_parameter", "{coding:?} {cut}: {error}");
        }
    }
}

/// The error of a body that is measured, collected and read within these limits.
fn refusal(body: &[u8], coding: Coding, limits: &Limits) -> IngestError {
    let (file, shape) = (spooled(body), shape(coding));
    if let Err(error) = measure(&file, &shape, limits) {
        return error;
    }
    let (files, _) = collect(&file, &shape, limits).unwrap();
    let unpacked_bytes = UnpackedBytes::new(usize::try_from(limits.unpacked_bytes).unwrap());
    let options = Options {
        unpacked_bytes: Some(&unpacked_bytes),
        ..Options::default()
    };
    assay_reports::read(files, &options).unwrap_err().into()
}

#[test]
fn bodies_that_unpack_beyond_the_limit_are_refused_at_every_level() {
    let spaces = [b"<testsuite/>".as_slice(), &vec![b' '; 2 << 20]].concat();
    let body = multipart(&[("r", Some("a.xml"), &spaces)]);
    let inner = multipart(&[("r", Some("a.xml"), &gzip(&spaces))]);
    // Files with the same content are unpacked once.
    let several = multipart(&[
        ("r", Some("a.xml"), &gzip(&spaces[..700_000])),
        ("r", Some("b.xml"), &gzip(&spaces[..700_001])),
    ]);
    // Neither this archive nor its content exceeds the limit, but both together do.
    let digits: String = (0..100_000_u64)
        .map(|n| format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    let dense = multipart(&[("r", Some("a.xml"), &gzip(&digits.as_bytes()[..900_000]))]);
    for (coding, body) in [
        (Coding::Identity, body.clone()),
        (Coding::Gzip, gzip(&body)),
        (Coding::Zstd, zstd::encode_all(body.as_slice(), 3).unwrap()),
        (Coding::Identity, inner),
        (Coding::Identity, several),
        (Coding::Identity, dense),
    ] {
        let error = refusal(&body, coding, &limits(1 << 20));
        assert_eq!(error.code(), "too_large", "{coding:?}: {error}");
        assert!(error.to_string().contains("1 MiB"), "{error}");
    }
}

#[test]
fn the_report_in_a_zip_counts_with_its_unpacked_bytes() {
    for (unpacked, code) in [(500_000, "unrecognised"), (2 << 20, "too_large")] {
        let body = multipart(&[("r", Some("a.zip"), &zip(&vec![b' '; unpacked]))]);
        let error = refusal(&body, Coding::Identity, &limits(1 << 20));
        assert_eq!(error.code(), code, "{error}");
    }
}

#[test]
fn archives_of_many_members_without_content_are_refused() {
    let members = gzip(b"").repeat(7_000);
    let file = multipart(&[("r", Some("a.xml"), &members)]);
    for (coding, body) in [(Coding::Identity, file), (Coding::Gzip, members)] {
        let error = refusal(&body, coding, &limits(1 << 20));
        assert!(
            error.to_string().contains("members with hardly any content"),
            "{error}"
        );
    }
}

#[test]
fn bytes_that_begin_no_part_are_refused_before_they_are_read_to_their_end() {
    let endless = vec![b'a'; 4 << 20];
    let head = format!("--{BOUNDARY}\r\nX: ").into_bytes();
    let padding = format!("--{BOUNDARY}").into_bytes();
    for body in [
        endless.clone(),
        [head, endless].concat(),
        [padding, vec![b' '; 4 << 20]].concat(),
    ] {
        let refused = measure(&spooled(&body), &shape(Coding::Identity), &limits(64 << 20));
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "invalid_parameter");
        assert!(error.to_string().contains("64 KiB begin no part"), "{error}");
    }
}

#[test]
fn parts_beyond_the_limits_and_hostile_names_are_refused() {
    let code = |body: &[u8]| {
        let refused = collect(&spooled(body), &shape(Coding::Identity), &limits(64 << 20));
        refused.map(|_| ()).unwrap_err().code()
    };
    let many = vec![("r", Some("a.xml"), b"".as_slice()); 100_000];
    assert_eq!(code(&multipart(&many)), "too_large");
    let fields = vec![("branch", None, b"a".as_slice()); 100_000];
    assert_eq!(code(&multipart(&fields)), "invalid_parameter");
    for name in ["/etc/passwd", "../a", "a/../b", "a\tb", ""] {
        let body = multipart(&[("r", Some(name), b"x")]);
        assert_eq!(code(&body), "invalid_parameter", "{name:?}");
    }
    assert_eq!(
        code(&multipart(&[("r", Some(&"a".repeat(301)), b"x")])),
        "invalid_parameter"
    );
    assert_eq!(
        code(&multipart(&[("branch", None, b"main")])),
        "invalid_parameter"
    );
    assert_eq!(
        code(&multipart(&[("root", None, &vec![b'a'; 10_000])])),
        "invalid_parameter"
    );
    assert_eq!(code(b"nonsense"), "invalid_parameter");
    assert_eq!(code(b""), "invalid_parameter");
}
