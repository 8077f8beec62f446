//! Entity tags, codings and answers without a body.

use crate::{
    comparison::Comparison,
    http::{Client, escape},
    stack::Stack,
    world::Organization,
};

/// The routes whose answers may be cached and revalidated.
pub fn caching(comparison: &mut Comparison, stack: &Stack, organization: &Organization) {
    let client = Client::new(stack.address(), &organization.key);
    let project = &organization.projects[0];
    let project_path = format!("/projects/{}", escape(&project.id));
    let run = &project
        .runs
        .iter()
        .max_by_key(|run| run.started())
        .expect("a run");
    let test = escape(&run.tests()[0].name);
    for path in [
        format!("{project_path}/runs/{}", run.id),
        format!("{project_path}/runs/{}/tests/{test}", run.id),
        format!("{project_path}/settings"),
        format!("{project_path}/branches"),
    ] {
        let answer = client.get(&path);
        let tag = answer.header("etag").unwrap_or_default().to_owned();
        comparison.holds(tag.starts_with('"'), || {
            format!("GET {path}: etag {tag:?} is not strong")
        });
        comparison.same(
            &format!("GET {path}: cache-control"),
            &answer.header("cache-control"),
            &Some("private, no-cache"),
        );
        for (asked, status) in [(tag.as_str(), 304), ("*", 304), ("\"other\"", 200)] {
            let again = client.ask("GET", &path, &[("If-None-Match", asked)]);
            comparison.same(
                &format!("GET {path} if none matches {asked}"),
                &again.status,
                &status,
            );
            comparison.holds(again.body.is_empty() == (status == 304), || {
                format!("GET {path}: a body with {status}")
            });
        }
        for coding in ["gzip", "br", "zstd"] {
            let packed = client.ask("GET", &path, &[("Accept-Encoding", coding)]);
            let encoding = packed.header("content-encoding");
            comparison.holds(
                packed.status == 200 && encoding.is_none_or(|encoding| encoding == coding),
                || format!("GET {path} as {coding}: {encoding:?}"),
            );
        }
    }
}
