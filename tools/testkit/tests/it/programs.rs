//! The real programs over the test's own database.

use assay_testkit::{Cli, Server, TestDatabase};

#[test]
fn the_command_line_and_the_server_work_on_one_database() {
    let database = TestDatabase::new();
    let cli = Cli::new(database.url());
    let organization = cli.json(&["org", "create", "Acme", "--plan", "pro"]);
    let id = organization["id"].as_str().unwrap();
    cli.json(&["project", "create", "--org", id, "web"]);
    let created = cli.json(&["key", "create", "--org", id, "--days", "30"]);
    let key = created["key"].as_str().unwrap();
    assert_eq!(cli.run(&["no such command"]).status.code(), Some(2));

    let server = Server::start(database.url());
    let answer = server.client().get("/api/v1/projects", Some(key));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["projects"][0]["name"], "web");
    assert_eq!(server.client().get("/api/v1/projects", None).status, 401);
    assert_eq!(server.admin().get("/healthz", None).status, 200);
}
