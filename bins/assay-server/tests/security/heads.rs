//! Heads that the protocol layer refuses. They get JSON answers like every other error.

use std::{io::Write, net::TcpStream};

use assay_testkit::{Response, wire};
use rustls::version::TLS13;

use crate::{contract::Contract, tls, world::World};

fn refused_heads(key: &str) -> Vec<(&'static str, u16, Vec<u8>)> {
    let head = |target: &str, fields: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n{fields}\r\n")
            .into_bytes()
    };
    let base = "/api/v1/projects";
    vec![
        (
            "raw letters beyond ASCII",
            400,
            head(&format!("{base}?search=ünï"), ""),
        ),
        ("a raw space", 400, head(&format!("{base}?search=a b"), "")),
        (
            "a target of 70,000 bytes",
            400,
            head(&format!("{base}?search={}", "a".repeat(70_000)), ""),
        ),
        ("120 fields", 431, head(base, &"X: y\r\n".repeat(120))),
        (
            "a field of 200,000 bytes",
            431,
            head(base, &format!("X: {}\r\n", "y".repeat(200_000))),
        ),
        ("a field without a colon", 400, head(base, "No colon\r\n")),
        (
            "two lengths",
            400,
            head(base, "Content-Length: 1\r\nContent-Length: 2\r\n"),
        ),
        (
            "no host",
            400,
            format!("GET {base} HTTP/1.1\r\n\r\n").into_bytes(),
        ),
        (
            "another version",
            400,
            format!("GET {base} HTTP/9.9\r\nHost: a\r\n\r\n").into_bytes(),
        ),
        ("no request", 400, b"\x16\x03\x01\x02\x00\r\n\r\n".to_vec()),
    ]
}

fn assert_refused(contract: &Contract, what: &str, status: u16, answer: Option<Response>) {
    let answer = answer.unwrap_or_else(|| panic!("{what}: no answer"));
    assert_eq!(answer.status, status, "{what}: {}", answer.summary());
    assert_eq!(answer.code(), "invalid_parameter", "{what}: {}", answer.summary());
    assert_eq!(answer.header("connection"), Some("close"), "{what}");
    contract
        .refusal(&answer, false)
        .unwrap_or_else(|why| panic!("{what}: {why}"));
}

#[test]
fn a_head_that_is_refused_is_answered_as_json() {
    let (world, contract) = (World::new(), Contract::read());
    for (what, status, head) in refused_heads(&world.keys.good) {
        // Repeated, because closing a connection too early only sometimes loses its answer.
        for _ in 0..5 {
            assert_refused(&contract, what, status, wire::send(world.address, &head, false));
        }
        let good = format!(
            "GET /api/v1/projects HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n\r\n",
            world.keys.good
        );
        let mut stream = TcpStream::connect(world.address).unwrap();
        stream
            .write_all(&[good.repeat(3).as_bytes(), &head].concat())
            .unwrap();
        let mut unread = Vec::new();
        for _ in 0..3 {
            assert_eq!(
                wire::read(&mut stream, &mut unread, false).unwrap().status,
                200,
                "{what}"
            );
        }
        assert_refused(
            &contract,
            what,
            status,
            wire::read(&mut stream, &mut unread, false),
        );
        assert!(wire::read(&mut stream, &mut unread, false).is_none() && unread.is_empty());
    }
    assert!(!world.server.log().contains(" ERROR "), "{}", world.server.log());
}

#[test]
fn a_refused_head_is_answered_as_json_over_tls() {
    let (world, contract, folder) = (World::new(), Contract::read(), tempfile::tempdir().unwrap());
    let trusted = tls::issue(folder.path());
    let (_server, address) = tls::start(&world.database, folder.path());
    for (what, status, head) in refused_heads(&world.keys.good) {
        let stream = TcpStream::connect(address).unwrap();
        let mut stream = tls::handshake(stream, &trusted, &[&TLS13], &[]).unwrap();
        stream.write_all(&head).unwrap();
        let answer = wire::read(&mut stream, &mut Vec::new(), false);
        assert_refused(&contract, what, status, answer);
    }
}

#[test]
fn a_late_head_is_answered_as_json() {
    let (world, contract) = (World::new(), Contract::read());
    let mut stream = wire::connect(world.address);
    stream
        .write_all(b"GET /api/v1/projects HTTP/1.1\r\nX-Slow: ")
        .unwrap();
    let answer = wire::read(&mut stream, &mut Vec::new(), false);
    assert_refused(&contract, "half a head", 408, answer);
}
