//! The prompt in answers of the attempts route.

use crate::{
    client::Api,
    ids::{PROJECT, RUN, TEST, TEST_ENCODED},
};

#[actix_web::test]
async fn the_prompt_names_the_test_the_project_and_the_task() {
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
        "Commit: `c0ffee`",
        "broken, from 20 run(s) of 14 days",
        "Evidence: `Failing several runs in a row: ",
        "api/cart.spec.ts:12",
        "root cause",
        "Never weaken",
    ] {
        assert!(prompt.contains(part), "{part:?} is missing in:\n{prompt}");
    }
}
