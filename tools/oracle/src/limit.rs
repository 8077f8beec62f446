//! Sixty requests per minute and key, on a server with a limit.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use assay_testkit::Server;

use crate::{
    clock::{self, MINUTE},
    comparison::Comparison,
    http::{self, Response},
    stack::Stack,
};

/// The 61st request of a window gets an empty 429, on any path. Another key's request does not.
pub fn limit(comparison: &mut Comparison, stack: &Stack, first: &str, second: &str) {
    // A window is a minute of the clock. Rounds, each with a new server, are repeated until one is within a window.
    let server = loop {
        let server = stack.another_server(&[]);
        let mut round = Comparison::default();
        round.section("limit");
        let begun = clock::now() / MINUTE;
        check_window(&mut round, &server, first, second);
        if clock::now() / MINUTE == begun {
            comparison.absorb(round);
            break server;
        }
    };
    let mine = format!("Bearer {first}");
    let patience = Instant::now() + Duration::from_secs(62);
    while Instant::now() < patience && ask(&server, &mine, "/projects").status == 429 {
        sleep(Duration::from_secs(2));
    }
    comparison.same(
        "after sixty seconds",
        &ask(&server, &mine, "/projects").status,
        &200,
    );
    let metrics = http::send(
        server.admin().address(),
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        false,
    );
    comparison.same("/healthz", &metrics.map(|answer| answer.status), &Some(200));
}

fn ask(server: &Server, authorization: &str, path: &str) -> Response {
    let head = [("Authorization", authorization.as_bytes())];
    http::ask(server.client().address(), "GET", path.as_bytes(), &head).expect("an answer")
}

/// The checks of a new server within one window.
fn check_window(comparison: &mut Comparison, server: &Server, first: &str, second: &str) {
    let (mine, other) = (format!("Bearer {first}"), format!("Bearer {second}"));
    let answers: Vec<Response> = (0..130).map(|_| ask(server, &mine, "/projects")).collect();
    let admitted = answers.iter().take_while(|answer| answer.status == 200).count();
    comparison.same("requests before the first 429", &admitted, &60);
    let refusals: Vec<&Response> = answers.iter().filter(|answer| answer.status == 429).collect();
    comparison.same("requests with 429", &refusals.len(), &70);
    for refusal in refusals {
        comparison.holds(
            refusal.body.is_empty() && refusal.header("retry-after").is_none(),
            || format!("{refusal:?}"),
        );
    }
    for path in ["/nonsense", "/projects/x/runs?days=8"] {
        comparison.same("the edge comes first", &ask(server, &mine, path).status, &429);
    }
    for scheme in ["bearer", "BEARER", "Bearer "] {
        comparison.same(
            "all spellings of the header share one budget",
            &ask(server, &format!("{scheme} {first}"), "/projects").status,
            &429,
        );
    }
    comparison.same(
        "each key has its own budget",
        &ask(server, &other, "/projects").status,
        &200,
    );
    let refused: Vec<u16> = (0..130)
        .map(|_| ask(server, "Bearer nonsense", "/projects").status)
        .collect();
    comparison.holds(refused[..60].iter().all(|status| *status == 401), || {
        format!("nonsense: {refused:?}")
    });
    comparison.holds(refused.contains(&429), || "a wrong key is not counted".to_owned());
}
