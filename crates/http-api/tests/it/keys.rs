//! The costs of a request whose key is not known.

use std::time::Duration;

use actix_web::http::Method;

use crate::api::Api;

/// The processor time of this thread, independent of other load.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Parsing these queries and tags takes a hundred times as long as reading them.
#[actix_web::test]
async fn a_request_is_not_parsed_before_its_key_is_known() {
    let api = Api::new();
    let (unknown, ..) = &api.bad_keys[1];
    let unknown = format!("Bearer {}", unknown.reveal());
    let (one_name, many_names) = ("a".repeat(58_000), "a&".repeat(29_000));
    let (one_tag, many_tags) = (format!("\"{one_name}\""), "\"\",".repeat(14_500));
    let mut shortest = Vec::new();
    for (query, tags) in [
        (&one_name, &one_tag),
        (&many_names, &one_tag),
        (&one_name, &many_tags),
    ] {
        let uri = format!("/api/v1/projects?{query}");
        let headers = [
            ("Authorization", unknown.as_str()),
            ("If-None-Match", tags),
            ("Accept-Encoding", tags),
        ];
        let mut times = Vec::new();
        for _ in 0..10 {
            let before = processor_time();
            let answer = api.send(Method::GET, &uri, &headers).await;
            times.push(processor_time() - before);
            answer.fails(401, "invalid_key", "an unknown key");
        }
        shortest.push(times.into_iter().min().unwrap());
    }
    let allowed = shortest[0] * 3 + Duration::from_millis(2);
    assert!(shortest.iter().all(|took| *took < allowed), "{shortest:?}");
}
