//! Sixty requests per minute and key, on a server with a limit.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    comparison::Comparison,
    http::{self, Response},
    stack::Stack,
};

/// The 61st request of a window gets an empty 429, on any path. Another key's request does not.
pub fn limit(comparison: &mut Comparison, stack: &Stack, first: &str, second: &str) {
    let server = stack.another_server(&[]);
    let ask = |authorization: Option<&str>, path: &str| -> Response {
        let head: Vec<(&str, &[u8])> = authorization
            .iter()
            .map(|value| ("Authorization", value.as_bytes()))
            .collect();
        http::ask(server.client().address(), "GET", path.as_bytes(), &head).expect("an answer")
    };
    let (mine, other) = (format!("Bearer {first}"), format!("Bearer {second}"));
    let answers: Vec<Response> = (0..130).map(|_| ask(Some(&mine), "/projects")).collect();
    let admitted = answers.iter().take_while(|answer| answer.status == 200).count();
    // A window may have ended in the meantime.
    comparison.holds((60..=120).contains(&admitted), || {
        format!("{admitted} requests before the first 429")
    });
    let refusals: Vec<&Response> = answers.iter().filter(|answer| answer.status == 429).collect();
    comparison.holds(!refusals.is_empty(), || "no 429 in 130 requests".to_owned());
    for refusal in refusals {
        comparison.holds(
            refusal.body.is_empty() && refusal.header("retry-after").is_none(),
            || format!("{refusal:?}"),
        );
    }
    for path in ["/nonsense", "/projects/x/runs?days=8"] {
        comparison.same("the edge comes first", &ask(Some(&mine), path).status, &429);
    }
    for scheme in ["bearer", "BEARER", "Bearer "] {
        comparison.same(
            "all spellings of the header share one budget",
            &ask(Some(&format!("{scheme} {first}")), "/projects").status,
            &429,
        );
    }
    comparison.same(
        "each key has its own budget",
        &ask(Some(&other), "/projects").status,
        &200,
    );
    let refused: Vec<u16> = (0..130)
        .map(|_| ask(Some("Bearer nonsense"), "/projects").status)
        .collect();
    comparison.holds(refused[..60].iter().all(|status| *status == 401), || {
        format!("nonsense: {refused:?}")
    });
    comparison.holds(refused.contains(&429), || "a wrong key is not counted".to_owned());
    let patience = Instant::now() + Duration::from_secs(62);
    while Instant::now() < patience && ask(Some(&mine), "/projects").status == 429 {
        sleep(Duration::from_secs(2));
    }
    comparison.same("after sixty seconds", &ask(Some(&mine), "/projects").status, &200);
    let metrics = http::send(
        server.admin().address(),
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        false,
    );
    comparison.same("/healthz", &metrics.map(|answer| answer.status), &Some(200));
}
