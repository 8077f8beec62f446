//! Every request gets one of the documented answers.

use assay_http_api::ROUTES;
use proptest::prelude::*;

use crate::{
    client::Api,
    ids::{FINGERPRINT, PROJECT, RUN, TEST_ENCODED},
};

fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(PROJECT.to_owned()),
        Just(RUN.to_owned()),
        Just(TEST_ENCODED.to_owned()),
        Just(FINGERPRINT.to_owned()),
        "([a-z0-9.~+-]|%[0-9a-f]{2}|%){1,12}",
    ]
}

fn pair() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("days"),
        Just("branch"),
        Just("sha"),
        Just("status"),
        Just("perPage"),
        Just("cursor"),
        Just("direction"),
        Just("filePath"),
        Just("category"),
        Just("search"),
        Just("owner"),
        Just("sort"),
        Just("page"),
        Just("explain"),
        Just("%"),
    ];
    let value = prop_oneof![
        Just("30".to_owned()),
        Just("25".to_owned()),
        Just("flaky".to_owned()),
        Just("next".to_owned()),
        "([a-zA-Z0-9=+_-]|%[0-9a-f]{2}|%){0,12}",
    ];
    (name, value).prop_map(|(name, value)| format!("{name}={value}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn is_answered_as_documented(
        route in 0..ROUTES.len(),
        parts in proptest::collection::vec(part(), 4),
        query in proptest::collection::vec(pair(), 0..4),
    ) {
        let mut parts = parts.into_iter();
        let path: Vec<_> = ROUTES[route]
            .path
            .split('/')
            .map(|segment| if segment.starts_with('{') { parts.next().unwrap() } else { segment.to_owned() })
            .collect();
        let uri = format!("{}?{}", path.join("/"), query.join("&"));
        let answer = actix_web::rt::System::new().block_on(async { Api::new().get(&uri).await });
        let code = if answer.status == 200 { String::new() } else { answer.json()["code"].to_string() };
        let documented = match answer.status.as_u16() {
            200 => true,
            400 => ["\"invalid_parameter\"", "\"invalid_period\"", "\"ambiguous_test\""].contains(&code.as_str()),
            404 => code.ends_with("_not_found\""),
            _ => false,
        };
        prop_assert!(documented, "{uri}: {} {code}", answer.status);
    }
}
