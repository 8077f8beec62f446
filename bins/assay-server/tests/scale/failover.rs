//! The primary is lost and a standby takes its place.

use assay_testkit::{Server, wait_until};

use crate::{
    node::{Node, NodeFolder},
    world::World,
};

#[test]
fn a_promoted_standby_takes_over_without_a_restart_of_the_server() {
    let nodes = NodeFolder::new();
    let mut first = Node::primary(&nodes, "one");
    let everyone = nodes.url(&["one", "two"]);
    let writable = format!("{everyone}&target_session_attrs=read-write");
    let world = World::new(&writable);
    world.import("first");
    let second = Node::standby(&nodes, "two", &first);
    let server = Server::start_with(
        &writable,
        &[("ASSAY_REPLICA_URL", &everyone), ("ASSAY_RATE_LIMIT", "0")],
    );
    assert_eq!(world.runs(&server), 1);
    wait_until("the standby has everything", || {
        second.sql("assay", "SELECT count(*) FROM run") == "1"
    });

    first.kill();
    let answer = world.ask(&server, "/settings");
    assert!(answer.status >= 500 || answer.status == 200, "{}", answer.text());
    second.sql("assay", "SELECT pg_promote()");
    wait_until("the server found the new primary", || {
        world.ask(&server, "/runs").status == 200 && world.ask(&server, "/settings").status == 200
    });
    assert_eq!(world.runs(&server), 1);
    world.import("second");
    wait_until("what is imported is shown", || world.runs(&server) == 2);

    // The former primary returns as a standby of its successor and is read.
    let former = Node::standby(&nodes, "one", &second);
    let begin = former.log().len();
    wait_until("reads go to the new standby", || {
        assert_eq!(world.runs(&server), 2);
        former.log()[begin..].contains(" FROM run ")
    });
    assert_eq!(server.admin().get("/readyz", None).status, 200);
}
