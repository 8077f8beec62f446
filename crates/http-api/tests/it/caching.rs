//! Entity tags, revalidation and compression.

use std::io::Read;

use crate::{
    client::Api,
    ids::{PROJECT, RUN, SHARD, TEST_ENCODED},
};

fn tagged() -> [String; 4] {
    [
        format!("/projects/{PROJECT}/runs/{RUN}"),
        format!("/projects/{PROJECT}/runs/{RUN}/tests/{TEST_ENCODED}"),
        format!("/projects/{PROJECT}/settings"),
        format!("/projects/{PROJECT}/branches"),
    ]
}

#[actix_web::test]
async fn a_tagged_answer_is_revalidated() {
    let api = Api::new();
    for path in tagged() {
        let first = api.get(&path).await;
        first.ok();
        assert_eq!(first.header("cache-control"), Some("private, no-cache"), "{path}");
        let tag = first.header("etag").unwrap();
        assert!(
            tag.starts_with('"') && tag.ends_with('"'),
            "{tag} is not a strong tag"
        );

        for condition in [tag, "*", &format!("\"other\", {tag}"), &format!("W/{tag}")] {
            let revalidated = api.get_with(&path, &[("If-None-Match", condition)]).await;
            assert_eq!(revalidated.status, 304, "{path} {condition}");
            assert!(revalidated.body.is_empty());
            assert_eq!(revalidated.header("etag"), Some(tag));
            assert_eq!(revalidated.header("cache-control"), Some("private, no-cache"));
            assert_eq!(revalidated.header("content-type"), None);
        }
        for unknown in ["\"other\"", "nonsense", ""] {
            api.get_with(&path, &[("If-None-Match", unknown)]).await.ok();
        }
    }
}

#[actix_web::test]
async fn answers_without_a_tag_are_not_cacheable() {
    let api = Api::new();
    for path in [
        "/projects".to_owned(),
        format!("/projects/{PROJECT}/runs"),
        format!("/projects/{PROJECT}/flaky"),
    ] {
        let answer = api.get_with(&path, &[("If-None-Match", "*")]).await;
        answer.ok();
        assert_eq!(
            answer.header("cache-control"),
            Some("private, no-store"),
            "{path}"
        );
        assert_eq!(answer.header("etag"), None, "{path}");
    }
}

#[actix_web::test]
async fn every_shard_answers_the_same_bytes() {
    let api = Api::new();
    let run = api.get(&format!("/projects/{PROJECT}/runs/{RUN}")).await;
    let shard = api.get(&format!("/projects/{PROJECT}/runs/{SHARD}")).await;
    assert_eq!(
        (run.header("etag"), &run.body),
        (shard.header("etag"), &shard.body)
    );
}

#[actix_web::test]
async fn a_large_body_is_compressed_under_a_tag_of_its_own() {
    let api = Api::new();
    *api.seed.padding.lock().unwrap() = 500;
    let path = format!("/projects/{PROJECT}/runs/{RUN}");
    let plain = api.get(&path).await;
    assert_eq!(plain.header("content-encoding"), None);
    let mut tags = vec![plain.header("etag").unwrap().to_owned()];

    for (name, decode) in [
        (
            "gzip",
            (|body| read(flate2::read::GzDecoder::new(body))) as fn(&[u8]) -> Vec<u8>,
        ),
        ("br", |body| read(brotli::Decompressor::new(body, 4_096))),
        ("zstd", |body| zstd::decode_all(body).unwrap()),
    ] {
        let coded = api.get_with(&path, &[("Accept-Encoding", name)]).await;
        assert_eq!(coded.header("content-encoding"), Some(name));
        assert_eq!(coded.header("vary"), Some("Accept-Encoding"));
        assert!(coded.body.len() < plain.body.len() / 5, "{name}");
        assert_eq!(decode(&coded.body), plain.body, "{name}");

        let tag = coded.header("etag").unwrap();
        let again = api
            .get_with(&path, &[("Accept-Encoding", name), ("If-None-Match", tag)])
            .await;
        assert_eq!(again.status, 304);
        // A strong tag identifies its own bytes only.
        assert_eq!(api.get_with(&path, &[("If-None-Match", tag)]).await.status, 200);
        tags.push(tag.to_owned());
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4);
}

#[actix_web::test]
async fn a_small_body_is_sent_as_it_is() {
    let api = Api::new();
    let answer = api
        .get_with("/projects", &[("Accept-Encoding", "gzip, br, zstd")])
        .await;
    answer.ok();
    assert_eq!(answer.header("content-encoding"), None);
}

fn read(mut decoder: impl Read) -> Vec<u8> {
    let mut plain = Vec::new();
    decoder.read_to_end(&mut plain).unwrap();
    plain
}
