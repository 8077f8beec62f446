//! One module per route: compares every field of every answer with the oracle.

pub mod attempts;
pub mod flaky;
pub mod projects;
pub mod run_detail;
pub mod runs;
pub mod signatures;
pub mod verdicts;

mod history;
mod settings;
mod signature;

pub use history::history;
pub use settings::{branches, settings};

use serde_json::Value;

use crate::{
    clock::{self, DAY},
    http::{Client, Response, escape},
    oracle::Fingerprints,
    tally::Tally,
    world::{Organization, Project},
};

/// The inputs of one project's checks.
pub struct Scene<'a> {
    pub client: Client,
    pub organization: &'a Organization,
    pub project: &'a Project,
    pub now: i64,
    pub fingerprints: Fingerprints,
}

impl Scene<'_> {
    /// The path of this project with the given segments, each escaped.
    pub fn path(&self, parts: &[&str]) -> String {
        let mut path = format!("/projects/{}", escape(&self.project.id));
        for part in parts {
            path.push('/');
            path.push_str(&escape(part));
        }
        path
    }

    /// An answer that must be a success.
    pub fn get(&self, tally: &mut Tally, path: &str) -> Value {
        let answer = self.client.get(path);
        good(tally, path, &answer);
        answer.json_or_null()
    }

    /// The periods of the plan.
    pub fn periods(&self) -> Vec<i64> {
        [7, 30, 90]
            .into_iter()
            .filter(|days| *days <= self.organization.plan.retention())
            .collect()
    }
}

/// Checks the properties of every success.
pub fn good(tally: &mut Tally, path: &str, answer: &Response) -> bool {
    let fine = tally.that(answer.status == 200, || {
        format!(
            "GET {path}: expected 200, got {} {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        )
    });
    let json = answer.header("content-type").unwrap_or_default();
    tally.that(json.starts_with("application/json"), || {
        format!("GET {path}: content-type {json:?}")
    });
    let cache = answer.header("cache-control").unwrap_or_default();
    tally.that(
        cache == "private, no-store" || cache == "private, no-cache",
        || format!("GET {path}: cache-control {cache:?}"),
    );
    fine
}

/// Checks the properties of every refusal.
pub fn refused(tally: &mut Tally, path: &str, answer: &Response, status: u16, code: &str) -> bool {
    let is_refused = tally.that((answer.status, answer.code().as_str()) == (status, code), || {
        let body: String = String::from_utf8_lossy(&answer.body).chars().take(200).collect();
        format!(
            "GET {path}: expected {status} {code}, got {} {body}",
            answer.status
        )
    });
    tally.that(!answer.sentence().is_empty(), || {
        format!("GET {path}: the error has no sentence")
    });
    let fields = answer.json_or_null().as_object().map_or(0, serde_json::Map::len);
    tally.that(fields == 2, || {
        format!(
            "GET {path}: an error is {{error, code}}, got {}",
            answer.json_or_null()
        )
    });
    tally.that(answer.header("service-key-expires-at").is_none(), || {
        format!("GET {path}: the expiry header belongs to good answers")
    });
    is_refused
}

/// The window of an answer: this many days until now.
pub fn window(tally: &mut Tally, path: &str, answer: &Value, days: i64) {
    let window = &answer["window"];
    tally.same(
        &format!("GET {path}: window.days"),
        &window["days"].as_i64(),
        &Some(days),
    );
    let read = |name: &str| window[name].as_str().and_then(clock::parse).unwrap_or_default();
    let (from, to) = (read("from"), read("to"));
    tally.that(to - from == days * DAY, || {
        format!("GET {path}: the window {window} is not {days} days")
    });
    tally.that((clock::now() - to).abs() < 5_000, || {
        format!("GET {path}: the window {window} does not end now")
    });
}

/// The `page` object of a numbered list.
pub fn page(tally: &mut Tally, path: &str, answer: &Value, number: i64, per_page: i64, total: usize) {
    let count = (total as i64 + per_page - 1) / per_page;
    tally.matches(
        &format!("GET {path}: page"),
        &answer["page"],
        &serde_json::json!({
            "page": number.min(count.max(1)),
            "perPage": per_page,
            "total": total,
            "pageCount": count.max(1),
        }),
    );
}

/// A numbered list: the field of its entries, its sort, and what identifies an entry on pages of every size.
pub struct List<'a, K> {
    pub field: &'a str,
    pub sort: &'a str,
    pub key: fn(&Value) -> K,
}

/// All entries of a list, which must be the same in pages of 10, 25 and 50. A page past the end is the last page.
pub fn all_pages<K: PartialEq>(
    tally: &mut Tally,
    scene: &Scene<'_>,
    query: &str,
    list: &List<'_, K>,
    total: usize,
) -> Vec<Value> {
    let mut first_entries: Option<Vec<Value>> = None;
    let joint = if query.contains('?') { '&' } else { '?' };
    for per_page in [50, 25, 10] {
        let mut entries = Vec::new();
        let pages = total.div_ceil(per_page).max(1);
        for number in 1..=pages {
            let path = format!("{query}{joint}perPage={per_page}&page={number}");
            let answer = scene.get(tally, &path);
            page(tally, &path, &answer, number as i64, per_page as i64, total);
            tally.same(
                &format!("GET {path}: sort"),
                &answer["sort"],
                &serde_json::json!(list.sort),
            );
            entries.extend(answer[list.field].as_array().cloned().unwrap_or_default());
        }
        let path = format!("{query}{joint}perPage={per_page}&page=99999");
        let last = scene.get(tally, &path);
        page(tally, &path, &last, pages as i64, per_page as i64, total);
        match &first_entries {
            Some(first) => {
                let keys = |entries: &[Value]| -> Vec<K> { entries.iter().map(list.key).collect() };
                tally.that(keys(first) == keys(&entries), || {
                    format!("GET {query}: pages of {per_page} have other entries")
                });
            }
            None => first_entries = Some(entries),
        }
    }
    first_entries.unwrap_or_default()
}
