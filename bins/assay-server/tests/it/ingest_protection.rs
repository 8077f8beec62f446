//! Uploads that are malicious, slow or too many.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use assay_domain::key::{KeyKind, mint};
use assay_testkit::{Client, assert_contains, wait_until};

use crate::ingest::{BOUNDARY, IngestServer, PASSES, assert_refused, code, now, of_form};

/// Sends a head and a body over a new connection, and reads until the server closes it.
pub(crate) fn exchange(client: &Client, head: &str, body: impl Fn(&mut TcpStream)) -> String {
    let mut stream = TcpStream::connect(client.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    body(&mut stream);
    let mut answer = Vec::new();
    // If the server closes while the client still sends, the connection is reset. The bytes before the reset count.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn head(key: &str, more: &str) -> String {
    format!(
        "POST /ingest/v1/reports HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n{more}\r\n"
    )
}

#[test]
fn a_request_refused_by_its_head_gets_no_continue_and_its_body_is_not_read() {
    let ingest = IngestServer::new();
    let client = ingest.server.ingest();
    let unknown = mint(KeyKind::Ingest, now()).0;
    for (key, more, status) in [
        (unknown.reveal(), "Content-Length: 1000\r\n", "401"),
        (&ingest.read_key, "Content-Length: 1000\r\n", "401"),
        (&ingest.key, "Content-Length: 99999999999\r\n", "413"),
        (
            &ingest.key,
            "Content-Length: 1000\r\nContent-Encoding: br\r\n",
            "415",
        ),
    ] {
        let answer = exchange(
            client,
            &head(key, &format!("{more}Expect: 100-continue\r\n")),
            |_| {},
        );
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.ends_with('}'), "{answer}");
        // The same without waiting for `100 Continue`.
        let answer = exchange(client, &head(key, more), |stream| {
            let _ = stream.write_all(&[b' '; 1000]);
        });
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    // The access log has both kinds of refusals.
    for (status, refusals) in [("status=401", 4), ("status=413", 2), ("status=415", 2)] {
        wait_until(status, || ingest.server.log().matches(status).count() == refusals);
    }
    let length = PASSES.len();
    let more = format!("Content-Length: {length}\r\nExpect: 100-continue\r\n");
    let answer = exchange(client, &head(&ingest.key, &more), |stream| {
        let mut interim = [0; 25];
        stream.read_exact(&mut interim).unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(PASSES.as_bytes()).unwrap();
    });
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
}

#[test]
fn a_body_that_is_slow_cut_endless_or_a_bomb_costs_its_sender_only() {
    let ingest = IngestServer::with(&[
        ("ASSAY_INGEST_BODY_MIB", "4"),
        ("ASSAY_INGEST_UNPACKED_MIB", "16"),
    ]);
    let client = ingest.server.ingest();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let answer = exchange(
                client,
                &head(&ingest.key, "Content-Length: 100000\r\n"),
                |stream| {
                    stream.write_all(b"<a>").unwrap();
                },
            );
            assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
            assert_contains(&answer, "too_slow");
        });
        scope.spawn(|| {
            // The body is cut off: the client closes its half.
            let mut stream = TcpStream::connect(client.address()).unwrap();
            stream
                .write_all(head(&ingest.key, "Content-Length: 1000\r\n").as_bytes())
                .unwrap();
            stream.write_all(b"<testsuites>").unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 400 "),
                "{answer}"
            );
        });
        // No chunk with its line ends. A client that closes its half gets the same answer.
        for (body, closes) in [
            "zz\r\n",
            "2\r\n<axx",
            "3\n<a>",
            "fffffffffffffffff\r\n",
            "3\r\n<a>\r\nx",
            "0\r\n\rx",
            "3;\u{1}\r\n",
        ]
        .into_iter()
        .flat_map(|body| [(body, false), (body, true)])
        {
            let ingest = &ingest;
            scope.spawn(move || {
                let head = head(&ingest.key, "Transfer-Encoding: chunked\r\n");
                let answer = exchange(client, &format!("{head}{body}"), |stream| {
                    if closes {
                        stream.shutdown(std::net::Shutdown::Write).unwrap();
                    }
                });
                assert!(answer.starts_with("HTTP/1.1 400 "), "{body:?}: {answer:?}");
                // The end of a connection may be seen before the broken chunk.
                let is_named = answer.contains("chunked transfer coding");
                assert!(closes || is_named, "{body:?}: {answer}");
            });
        }
        scope.spawn(|| {
            // The name of a field is wrong, and the rest of the body does not come.
            let multipart = "Content-Type: multipart/form-data; boundary=B\r\nContent-Length: 100000\r\n";
            let part = b"--B\r\nContent-Disposition: form-data; name=\"brunch\"\r\n\r\n";
            let began = Instant::now();
            let answer = exchange(client, &head(&ingest.key, multipart), |stream| {
                stream.write_all(part).unwrap();
            });
            assert!(
                answer.starts_with("HTTP/1.1 400 ") && answer.contains("brunch"),
                "{answer}"
            );
            assert!(
                !answer.contains("too_slow"),
                "{answer} after {:?}",
                began.elapsed()
            );
        });
        scope.spawn(|| {
            let chunk = [
                format!("{:x}\r\n", 64 << 10).into_bytes(),
                vec![b' '; 64 << 10],
                b"\r\n".to_vec(),
            ]
            .concat();
            let answer = exchange(
                client,
                &head(&ingest.key, "Transfer-Encoding: chunked\r\n"),
                |stream| {
                    let began = Instant::now();
                    while stream.write_all(&chunk).is_ok() {
                        assert!(
                            began.elapsed() < Duration::from_secs(60),
                            "the body is read without end"
                        );
                    }
                },
            );
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 413 "),
                "{answer}"
            );
        });
        scope.spawn(|| {
            let bomb = zstd::encode_all(vec![b' '; 64 << 20].as_slice(), 3).unwrap();
            let answer = ingest.post(
                "/ingest/v1/reports",
                &ingest.key,
                &[("Content-Encoding", "zstd")],
                &bomb,
            );
            assert_refused(&answer, 413, "too_large");
        });
        scope.spawn(|| {
            // No boundary begins a part.
            let bomb = zstd::encode_all(vec![b' '; 64 << 20].as_slice(), 3).unwrap();
            let headers = [("Content-Encoding", "zstd"), ("Content-Type", &of_form())];
            let answer = ingest.post("/ingest/v1/reports", &ingest.key, &headers, &bomb);
            assert_refused(&answer, 400, "invalid_parameter");
            assert!(
                answer.text().contains("64 KiB begin no part"),
                "{}",
                answer.text()
            );
        });
        scope.spawn(|| {
            let part = format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"r\"; filename=\"a\"\r\n\r\n\r\n"
            );
            let body = zstd::encode_all(part.repeat(100_000).as_bytes(), 3).unwrap();
            let headers = [("Content-Encoding", "zstd"), ("Content-Type", &of_form())];
            let answer = ingest.post("/ingest/v1/reports", &ingest.key, &headers, &body);
            assert_refused(&answer, 413, "too_large");
        });
    });
    // The server continues to work.
    let answer = ingest.send(&ingest.key, &[], &[("r.xml", PASSES.as_bytes())]);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let log = ingest.server.log();
    assert!(!log.contains(&ingest.key) && !log.contains("testcase"), "{log}");
    assert!(!log.contains("panic"), "{log}");
}

#[test]
fn uploads_beyond_the_rate_limit_get_a_retry_time() {
    let ingest = IngestServer::with(&[("ASSAY_INGEST_RATE_LIMIT", "2")]);
    // The window may change in between. Then three uploads may pass.
    let answers: Vec<_> = (0..5)
        .map(|_| ingest.send(&ingest.key, &[], &[("r.xml", PASSES.as_bytes())]))
        .collect();
    let limited = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(code(limited), "rate_limited");
    let after: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    // Describing the key is not counted.
    let about = ingest.server.ingest().get("/ingest/v1/key", Some(&ingest.key));
    assert_eq!(about.status, 200);
}
