//! Admission control by key, over HTTP.

use std::{rc::Rc, sync::atomic::Ordering, time::Duration};

use actix_web::{
    http::Method,
    rt::{spawn, time::sleep},
};
use assay_domain::key::{KeyKind, mint};

use crate::{client::Api, ids::NOW, store::Mode};

#[actix_web::test]
async fn keys_that_do_not_exist_take_no_more_threads_together_than_one_key() {
    let api = Rc::new(Api::on_threads(4));
    // This look-up makes the key known.
    api.get("/projects").await.ok();
    api.seed.set_mode(Mode::UnknownKeysHang);
    let unknown_keys: Vec<_> = (0..8)
        .map(|_| {
            let (api, key) = (Rc::clone(&api), mint(KeyKind::Read, NOW).0);
            spawn(async move {
                let authorization = format!("Bearer {}", key.reveal());
                let headers = [("Authorization", authorization.as_str())];
                api.send(Method::GET, "/api/v1/projects", &headers).await
            })
        })
        .collect();
    while api.seed.unknown_key_look_ups.load(Ordering::SeqCst) < 2 {
        sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..3 {
        api.get("/projects").await.ok();
    }
    assert_eq!(
        api.seed.unknown_key_look_ups.load(Ordering::SeqCst),
        2,
        "half of the threads"
    );
    api.seed.set_mode(Mode::Healthy);
    for answer in unknown_keys {
        answer
            .await
            .unwrap()
            .fails(401, "invalid_key", "a key that was made up");
    }
}
