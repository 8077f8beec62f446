//! Reads go to a standby while it keeps up.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{Server, program, text, wait_until};

use crate::{
    gated::{BLOCKED, EXCUSED, GatedRun},
    node::{Node, NodeFolder},
    world::{World, new_key},
};

/// Text in the log of every read of a project's data, in both forms of statements, and of every look-up of a key.
const DATA: [&str; 2] = ["\"project_id\" = $", ".project_id = $"];
const KEYS: &str = "\"api_key\"";

/// A server that reads from a standby.
fn serve(nodes: &NodeFolder) -> Server {
    Server::start_with(
        &nodes.url(&["one"]),
        &[
            ("ASSAY_REPLICA_URL", &nodes.url(&["two"])),
            ("ASSAY_RATE_LIMIT", "0"),
        ],
    )
}

fn data_statements(log: &str) -> usize {
    log.lines()
        .filter(|line| DATA.iter().any(|data| line.contains(data)))
        .count()
}

/// Waits until the standby alone answers a round of reads.
///
/// Several rounds are needed, because on a busy machine a standby may be a second behind for a moment.
fn wait_for_reads_of(standby: &Node<'_>, primary: &Node<'_>, world: &World, server: &Server) {
    wait_until("all reads come from the standby", || {
        let (before, before_primary) = (standby.log().len(), primary.log().len());
        for path in [
            "/runs",
            "/flaky",
            "/tests/adds",
            "/tests/adds/status",
            "/branches",
        ] {
            for _ in 0..4 {
                let answer = world.ask(server, path);
                assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            }
        }
        let read = data_statements(&standby.log()[before..]);
        let read_of_primary = data_statements(&primary.log()[before_primary..]);
        read >= 20 && read_of_primary == 0
    });
    assert!(!standby.log().contains(KEYS), "only the primary checks keys");
    assert!(primary.log().contains(KEYS));
}

#[test]
fn a_standby_is_read_from_while_it_is_less_than_a_second_behind() {
    let nodes = NodeFolder::new();
    let primary = Node::primary(&nodes, "one");
    let world = World::new(&nodes.url(&["one"]));
    world.import("first");
    let standby = Node::standby(&nodes, "two", &primary);
    let server = serve(&nodes);
    wait_for_reads_of(&standby, &primary, &world, &server);
    assert_eq!(world.runs(&server), 1);

    // A standby whose replay has stopped without a notice.
    standby.sql("assay", "SELECT pg_wal_replay_pause()");
    wait_until("replay is paused", || {
        standby.sql("assay", "SELECT pg_get_wal_replay_pause_state()") == "paused"
    });
    let run = world.import("second");
    let imported = Instant::now();
    let answer = world.ask(&server, &format!("/runs/{run}"));
    assert_eq!(answer.status, 200, "a printed id is found: {}", answer.text());
    thread::sleep(Duration::from_secs(1).saturating_sub(imported.elapsed()));
    for _ in 0..20 {
        assert_eq!(world.runs(&server), 2, "no answer is more than a second old");
    }
    assert_eq!(standby.sql("assay", "SELECT count(*) FROM run"), "1");
    wait_until("the log has the reason why the primary answers", || {
        assert_eq!(world.runs(&server), 2);
        server.log().contains("the primary answers: it is too far behind")
    });

    // A revocation on the primary takes effect, whatever the standby has replayed.
    let key = new_key(&world.cli);
    let ask = || {
        let path = format!("/api/v1/projects/{}/runs", world.project);
        server.client().get(&path, key["key"].as_str()).status
    };
    assert_eq!(ask(), 200);
    let revoked = world
        .cli
        .run(&["key", "revoke", key["id"].as_str().unwrap(), "--yes"]);
    assert!(revoked.status.success(), "{revoked:?}");
    thread::sleep(Duration::from_secs(1));
    assert_eq!(ask(), 401);

    standby.sql("assay", "SELECT pg_wal_replay_resume()");
    wait_for_reads_of(&standby, &primary, &world, &server);
    assert_eq!(world.runs(&server), 2);
    assert!(server.log().contains("standbys are read from again"));
}

#[test]
fn of_two_standbys_behind_one_address_the_one_that_keeps_up_is_read() {
    let nodes = NodeFolder::new();
    let primary = Node::primary(&nodes, "one");
    let world = World::new(&nodes.url(&["one"]));
    world.import("first");
    let (late, other) = (
        Node::standby(&nodes, "two", &primary),
        Node::standby(&nodes, "three", &primary),
    );
    let settings = [
        ("ASSAY_REPLICA_URL", nodes.url(&["two", "three"])),
        ("ASSAY_RATE_LIMIT", "0".to_owned()),
    ];
    let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
    let server = Server::start_with(&nodes.url(&["one"]), &settings);
    wait_until("a standby answers", || {
        assert_eq!(world.runs(&server), 1);
        data_statements(&late.log()) + data_statements(&other.log()) > 10
    });
    late.sql("assay", "SELECT pg_wal_replay_pause()");
    world.import("second");
    thread::sleep(Duration::from_secs(1));
    wait_until("the other standby alone answers", || {
        let before = [&late, &primary, &other].map(|node| data_statements(&node.log()));
        for _ in 0..20 {
            assert_eq!(world.runs(&server), 2, "no answer is more than a second old");
        }
        let after = [&late, &primary, &other].map(|node| data_statements(&node.log()));
        after[..2] == before[..2] && after[2] >= before[2] + 20
    });
}

#[test]
fn the_decision_of_a_gate_is_read_from_a_standby_and_is_at_most_a_second_old() {
    let nodes = NodeFolder::new();
    let primary = Node::primary(&nodes, "one");
    let world = World::new(&nodes.url(&["one"]));
    world.import("first");
    let standby = Node::standby(&nodes, "two", &primary);
    let made = world
        .cli
        .json(&["key", "create-ingest", "--project", &world.project]);
    let gated = GatedRun::new(
        &nodes.url(&["one"]),
        &[
            ("ASSAY_REPLICA_URL", &nodes.url(&["two"])),
            ("ASSAY_RATE_LIMIT", "0"),
        ],
        [&text(&made["key"]), &world.key, &world.project],
    );
    wait_for_reads_of(&standby, &primary, &world, &gated.server);
    assert!(!gated.page().contains(EXCUSED));

    let stored = gated.excuse();
    assert_eq!(stored.status, 201, "{}", stored.text());
    wait_until("the page shows the decision of the standby", || {
        let (before, before_primary) = (standby.log().len(), primary.log().len());
        let is_shown = gated.page().contains(EXCUSED);
        let is_read_in = |log: &str| log.contains("\"upload\".\"decision\"");
        is_shown && is_read_in(&standby.log()[before..]) && !is_read_in(&primary.log()[before_primary..])
    });

    standby.sql("assay", "SELECT pg_wal_replay_pause()");
    wait_until("replay is paused", || {
        standby.sql("assay", "SELECT pg_get_wal_replay_pause_state()") == "paused"
    });
    let replaced = gated.block();
    assert_eq!(replaced.json()["effect"], "replaced", "{}", replaced.text());
    thread::sleep(Duration::from_secs(1));
    for _ in 0..5 {
        let page = gated.page();
        assert!(page.contains(BLOCKED) && !page.contains(EXCUSED), "{page}");
    }
    let outcome = "SELECT decision->>'outcome' FROM upload";
    assert_eq!(standby.sql("assay", outcome), "excused");
    assert_eq!(primary.sql("assay", outcome), "blocked");
}

#[test]
fn a_standby_that_is_cut_off_is_not_taken_for_an_idle_one() {
    let nodes = NodeFolder::new();
    let primary = Node::primary(&nodes, "one");
    let world = World::new(&nodes.url(&["one"]));
    world.import("first");
    let standby = Node::standby(&nodes, "two", &primary);
    let server = serve(&nodes);
    wait_for_reads_of(&standby, &primary, &world, &server);

    // It has replayed everything that it ever received.
    standby.sql("assay", "ALTER SYSTEM SET primary_conninfo = 'host=/nowhere'");
    standby.sql("assay", "SELECT pg_reload_conf()");
    wait_until("the standby is cut off", || {
        standby.sql("assay", "SELECT count(*) FROM pg_stat_wal_receiver") == "0"
    });
    world.import("second");
    thread::sleep(Duration::from_secs(1));
    for _ in 0..20 {
        assert_eq!(world.runs(&server), 2);
    }
    assert_eq!(standby.sql("assay", "SELECT count(*) FROM run"), "1");
}

#[test]
fn losing_a_standby_under_load_fails_no_request_and_it_is_used_again_after_its_return() {
    let nodes = NodeFolder::new();
    let primary = Node::primary(&nodes, "one");
    let world = World::new(&nodes.url(&["one"]));
    world.import("first");
    let mut standby = Node::standby(&nodes, "two", &primary);
    let server = serve(&nodes);
    wait_for_reads_of(&standby, &primary, &world, &server);

    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let load: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (mut answers, mut slowest) = (0_u64, Duration::ZERO);
                    while !ended.load(Ordering::Relaxed) {
                        let begun = Instant::now();
                        let answer = world.ask(&server, "/runs");
                        slowest = slowest.max(begun.elapsed());
                        assert_eq!(answer.status, 200, "{}", answer.text());
                        assert_eq!(answer.json()["total"], 1);
                        answers += 1;
                    }
                    (answers, slowest)
                })
            })
            .collect();
        for _ in 0..2 {
            standby.kill();
            let before = data_statements(&primary.log());
            wait_until("the primary answers", || {
                data_statements(&primary.log()) > before + 100
            });
            let begin = standby.log().len();
            standby.restart();
            wait_until("the standby is read from again", || {
                data_statements(&standby.log()[begin..]) > 100
            });
        }
        ended.store(true, Ordering::Relaxed);
        for load in load {
            let (answers, slowest) = load.join().unwrap();
            println!("{answers} answers, the slowest after {slowest:?}");
        }
    });
    assert!(server.log().contains("the primary answers"), "{}", server.log());
}

#[test]
fn a_server_starts_and_answers_without_its_standbys() {
    let nodes = NodeFolder::new();
    let _primary = Node::primary(&nodes, "one");
    let world = World::new(&nodes.url(&["one"]));
    world.import("first");
    // An absent server, and the primary itself, which is not a standby.
    for replicas in [nodes.url(&["two"]), nodes.url(&["one"])] {
        let server = Server::start_with(
            &nodes.url(&["one"]),
            &[("ASSAY_REPLICA_URL", &replicas), ("ASSAY_RATE_LIMIT", "0")],
        );
        assert_eq!(world.runs(&server), 1);
        wait_until("the log has the reason", || {
            server.log().contains("the primary answers")
        });
        assert_eq!(world.runs(&server), 1);
    }
}

#[test]
fn standbys_whose_address_is_malformed_are_refused_at_the_start() {
    let refused = Command::new(program("assay-server"))
        .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
        .args(["--database-url", "postgresql://127.0.0.1:1/x"])
        .env("ASSAY_REPLICA_URL", "postgresql://u:secret@[/x")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success());
    assert!(
        stderr.contains("ASSAY_REPLICA_URL") && !stderr.contains("secret"),
        "{stderr}"
    );
}
