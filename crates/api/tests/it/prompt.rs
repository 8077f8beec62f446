//! The prompt as the attempts route answers it.

use crate::{
    client::Api,
    ids::{PROJECT, RUN, TEST, TEST_ENCODED},
};

#[actix_web::test]
async fn names_the_test_the_project_and_what_is_wanted() {
    let body = Api::new()
        .get(&format!("/projects/{PROJECT}/runs/{RUN}/tests/{TEST_ENCODED}"))
        .await
        .ok();
    let prompt = body["attempts"][0]["copyPrompt"].as_str().unwrap();
    for part in [
        TEST,
        "shop",
        "main",
        "passed on retry #1",
        "flaky",
        "api/cart.spec.ts:12",
        "root cause",
        "Never weaken",
    ] {
        assert!(prompt.contains(part), "{part:?} is missing in:\n{prompt}");
    }
}
