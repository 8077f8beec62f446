//! The commands of docs/scaling.md make a standby, show its lag, promote it and remove its slot.

use std::fs;

use assay_testkit::{Server, assert_contains, wait_until};

use crate::{
    node::{Node, NodeFolder},
    world::World,
};

const DATA: &str = "/var/lib/postgresql/17/main";

/// The blocks of commands of the page's section, for the nodes of this test.
fn commands(data: &str) -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scaling.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("\n## 2. Standbys\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh deploys\n").skip(1);
    let mut commands: Vec<String> = blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .filter(|block| !block.contains("systemctl"))
        .collect();
    for (written, here) in [
        ("db1.internal", "127.0.0.1"),
        ("10.0.0.12/32", "127.0.0.1/32"),
        (DATA, data),
    ] {
        assert!(commands.iter().any(|block| block.contains(written)), "{written}");
        for block in &mut commands {
            *block = block.replace(written, here);
        }
    }
    commands
}

#[test]
fn the_commands_of_the_page_make_a_standby_that_is_read_and_takes_over_without_a_restart_of_the_server() {
    let nodes = NodeFolder::with_tcp("one");
    let mut first = Node::primary(&nodes, "one");
    // As after an installation, nothing but the page's line lets a standby connect.
    first.allow("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n");
    let data = nodes.data_folder("two");
    let commands = commands(&data.display().to_string());
    let [role, line, copy, lag, promote, remove] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    let both = nodes.url(&["one", "two"]);
    let writable = format!("{both}&target_session_attrs=read-write");
    let world = World::new(&writable);
    world.import("first");

    first.shell(role).unwrap();
    let refused = first.shell(copy).unwrap_err();
    assert_contains(&refused, "no pg_hba.conf entry");
    first.shell(line).unwrap();
    wait_until("the new line takes effect", || {
        first.sql(
            "postgres",
            "SELECT count(*) FROM pg_hba_file_rules WHERE database = '{replication}'",
        ) == "1"
    });
    let progress = first.shell(copy).unwrap();
    assert!(progress.contains("(100%)"), "--progress shows it: {progress}");
    let second = Node::start(&nodes, "two", data);
    second.allow("local all all trust\nlocal replication all trust\n");

    wait_until("the page's query shows that nothing is missing", || {
        let shown = first.shell(lag).unwrap();
        assert_contains(&shown, "assay_standby_1");
        shown.contains("streaming") && shown.contains("0 bytes")
    });

    let server = Server::start_with(
        &writable,
        &[("ASSAY_REPLICA_URL", &both), ("ASSAY_RATE_LIMIT", "0")],
    );
    wait_until("reads are counted for the standby", || {
        assert_eq!(world.runs(&server), 1);
        metric(&server, "assay_database_reads_total{node=\"standby\"}").is_some_and(|reads| reads > 10)
    });
    assert!(second.log().contains(" FROM run "));
    first.kill();
    second.shell(promote).unwrap();
    wait_until("the server found the new primary", || {
        world.ask(&server, "/runs").status == 200 && world.ask(&server, "/settings").status == 200
    });
    let before = metric(&server, "assay_database_reads_total{node=\"primary\"}").unwrap_or(0);
    assert_eq!(world.runs(&server), 1);
    wait_until("reads are counted for the primary", || {
        assert_eq!(world.runs(&server), 1);
        metric(&server, "assay_database_reads_total{node=\"primary\"}") > Some(before)
    });
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
    drop((server, former));

    // The former primary was repaired. Its slot still keeps the log.
    first.restart();
    let slots = "SELECT count(*) FROM pg_replication_slots";
    assert_eq!(first.sql("postgres", slots), "1");
    assert!(first.shell(lag).unwrap().contains("not connected"));
    first.shell(remove).unwrap();
    assert_eq!(first.sql("postgres", slots), "0");
}

/// The value of the sample whose line begins like this.
fn metric(server: &Server, begin: &str) -> Option<u64> {
    let text = server.admin().get("/metrics", None).text();
    let line = text.lines().find(|line| line.starts_with(begin))?;
    Some(line.rsplit(' ').next().unwrap().parse().unwrap())
}
