//! Slow, misbehaving and numerous clients.

use std::process::Command;

use assay_testkit::program;
use tokio::net::TcpSocket;

use crate::{
    quiet,
    raw::{self, Connection},
    server,
    world::{Report, World},
};

#[test]
fn headers_that_never_end_are_not_waited_for() {
    let _shared = quiet::shared();
    let mut world = World::new();
    raw::run(async {
        let mut slow = Vec::new();
        for _ in 0..200 {
            let mut connection = Connection::open(world.server.address()).await.unwrap();
            connection
                .send(b"GET /api/v1/projects HTTP/1.1\r\nHost: h\r\nX-Slow: ")
                .await
                .unwrap();
            slow.push(connection);
        }
        assert_eq!(world.ask("/runs").status, 200);
        for mut connection in slow {
            connection.wait_until_closed().await;
        }
    });
    world
        .server
        .until("without their connections", |server| server.descriptors() < 100);
}

#[test]
fn heads_of_any_size_are_refused_or_answered() {
    let _shared = quiet::shared();
    let world = World::new();
    let long = |length: usize| "a".repeat(length);
    let requests = [
        format!("GET /api/v1/{} HTTP/1.1\r\nHost: h\r\n\r\n", long(60_000)),
        format!(
            "GET /api/v1/projects?x={} HTTP/1.1\r\nHost: h\r\n\r\n",
            long(5_000_000)
        ),
        format!(
            "GET /api/v1/projects HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n",
            long(5_000_000)
        ),
        format!(
            "GET /api/v1/projects HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer svc_ro_{}\r\n\r\n",
            long(50_000)
        ),
        format!(
            "GET /api/v1/projects HTTP/1.1\r\nHost: h\r\n{}\r\n",
            "X: y\r\n".repeat(5_000)
        ),
        format!("{} / HTTP/1.1\r\nHost: h\r\n\r\n", long(100_000)),
        long(3_000_000),
    ];
    let before = world.server.megabytes();
    raw::run(async {
        for request in &requests {
            for _ in 0..5 {
                let mut connection = Connection::open(world.server.address()).await.unwrap();
                // The connection may be closed before all bytes were sent.
                if connection.send(request.as_bytes()).await.is_ok()
                    && let Ok(Some(answer)) = connection.answer().await
                {
                    assert!((400..500).contains(&answer.status), "{}", answer.summary());
                }
            }
        }
    });
    assert!(world.server.megabytes() < before + 200);
    assert_eq!(world.ask("/runs").status, 200);
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let _shared = quiet::shared();
    let world = World::new();
    world.import(&Report::whole(1, 10, 60));
    let existing = raw::request(&world.path("/branches"), &world.key);
    let missing = raw::request(&world.path("/runs/none"), &world.key);
    raw::run(async {
        let mut connection = Connection::open(world.server.address()).await.unwrap();
        connection
            .send([existing.as_str(), &missing].concat().repeat(300).as_bytes())
            .await
            .unwrap();
        for turn in 0..600 {
            let answer = connection
                .answer()
                .await
                .unwrap()
                .expect("every request is answered");
            assert_eq!(answer.status, if turn % 2 == 0 { 200 } else { 404 });
        }
    });
}

#[test]
fn clients_that_do_not_read_do_not_delay_others() {
    let _shared = quiet::shared();
    let mut world = World::new();
    let run = world.import(&Report::whole(1, 6_000, 60));
    let below = format!("/runs/{}", run["runId"].as_str().unwrap());
    let size = world.ask(&below).body.len();
    let request = raw::request(&world.path(&below), &world.key);
    let before = world.server.megabytes();
    // The server may still open connections to the database, fewer than 25.
    let descriptors = world.server.descriptors() + 25;
    raw::run(async {
        let mut unread = Vec::new();
        for _ in 0..50 {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(4_096).unwrap();
            let stream = socket
                .connect(world.server.address().parse().unwrap())
                .await
                .unwrap();
            let mut written = tokio::io::BufWriter::new(stream);
            tokio::io::AsyncWriteExt::write_all(&mut written, request.as_bytes())
                .await
                .unwrap();
            tokio::io::AsyncWriteExt::flush(&mut written).await.unwrap();
            unread.push(written);
        }
        // While the server builds the 50 answers, it may reject other requests. Afterwards it answers each one.
        let (path, key) = (world.path("/branches"), world.key.clone());
        world.server.until("answering others", |server| {
            (0..20).all(|_| server.client().get(&path, Some(&key)).status == 200)
        });
        let grown = world.server.megabytes().saturating_sub(before);
        println!("50 unread answers of {size} bytes: memory grew by {grown} MB");
        assert!(grown < 300, "{grown} MB");
        // The server disconnects these clients, although they keep their connections open.
        world.server.until("without their connections", |server| {
            server.descriptors() < descriptors
        });
        drop(unread);
    });
}

#[test]
fn ten_thousand_idle_connections_do_not_delay_others() {
    let _alone = quiet::alone();
    let connections = raw::raise_descriptors().saturating_sub(500).min(10_000);
    let mut world = World::new();
    let before = world.server.megabytes();
    raw::run(async {
        let mut idle = Vec::new();
        for _ in 0..connections {
            idle.push(Connection::open(world.server.address()).await.unwrap());
        }
        assert_eq!(world.ask("/runs").status, 200);
        world.server.ready();
        let grown = world.server.megabytes().saturating_sub(before);
        println!("{connections} idle connections: memory grew by {grown} MB");
        assert!(grown < 1_000, "{grown} MB");
        world
            .server
            .until("without their connections", |server| server.descriptors() < 100);
        drop(idle);
    });
}

#[test]
fn without_descriptors_left_operators_are_answered_and_clients_wait_their_turn() {
    let _shared = quiet::shared();
    let mut world = World::new();
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 256; exec \"$0\""])
        .arg(program("assay-server"));
    let environment = [("ASSAY_DATABASE_URL", world.database.url())];
    world.server = server::start_with(command, world.folder.path(), &environment);
    raw::run(async {
        let mut idle = Vec::new();
        for _ in 0..400 {
            idle.push(Connection::open(world.server.address()).await.unwrap());
        }
        world.server.ready();
        assert!(world.server.is_healthy());
        // The server accepts this connection after it closes the idle ones before it.
        assert_eq!(world.ask("/runs").status, 200);
    });
    assert!(world.server.lives());
}
