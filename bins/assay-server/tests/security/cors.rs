//! Web pages of other origins, tested with the program.

use assay_testkit::{Server, TestDatabase, wire};

#[test]
fn only_pages_of_listed_origins_get_an_answer_to_a_preflight_request() {
    let database = TestDatabase::new();
    let listed = "https://dashboard.example.org";
    let server = Server::start_with(database.url(), &[("ASSAY_CORS_ORIGINS", listed)]);
    for (origin, status, allowed) in [(listed, 204, Some(listed)), ("https://evil.example", 401, None)] {
        let head = [("Origin", origin), ("Access-Control-Request-Method", "GET")];
        let answer = wire::ask(
            server.client().address(),
            "OPTIONS",
            "/api/v1/projects",
            None,
            &head,
        );
        assert_eq!(answer.status, status, "{}", answer.summary());
        assert_eq!(answer.header("access-control-allow-origin"), allowed);
        assert_eq!(answer.header("vary"), Some("Origin"));
    }
}
