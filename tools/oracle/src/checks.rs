//! One module per route: compares every field of every answer with the oracle.

pub mod attempts;
pub mod flaky;
pub mod health;
pub mod projects;
pub mod releases;
pub mod run_detail;
pub mod runs;
pub mod signatures;
pub mod test_list;
pub mod verdicts;

mod history;
mod settings;
mod signature;

pub use history::history;
pub use settings::{branches, settings};

use serde_json::Value;

use crate::{
    clock::{self, DAY},
    comparison::Comparison,
    http::{Client, Response, escape},
    oracle::Fingerprints,
    world::{Organization, Project},
};

/// The inputs of one project's checks.
pub struct ProjectChecks<'a> {
    pub client: Client,
    pub organization: &'a Organization,
    pub project: &'a Project,
    pub now: i64,
    pub fingerprints: Fingerprints,
}

impl ProjectChecks<'_> {
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
    pub fn get(&self, comparison: &mut Comparison, path: &str) -> Value {
        let answer = self.client.get(path);
        good(comparison, path, &answer);
        answer.json_or_null()
    }

    /// An answer that must be a success, with a window of this many days until the request.
    pub fn get_window(&self, comparison: &mut Comparison, path: &str, days: i64) -> Value {
        let sent = clock::now();
        let answer = self.get(comparison, path);
        window(comparison, path, &answer, sent, days);
        answer
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
pub fn good(comparison: &mut Comparison, path: &str, answer: &Response) -> bool {
    let fine = comparison.holds(answer.status == 200, || {
        format!(
            "GET {path}: expected 200, got {} {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        )
    });
    let json = answer.header("content-type").unwrap_or_default();
    comparison.holds(json.starts_with("application/json"), || {
        format!("GET {path}: content-type {json:?}")
    });
    let cache = answer.header("cache-control").unwrap_or_default();
    comparison.holds(
        cache == "private, no-store" || cache == "private, no-cache",
        || format!("GET {path}: cache-control {cache:?}"),
    );
    fine
}

/// Checks the properties of every refusal.
pub fn refused(comparison: &mut Comparison, path: &str, answer: &Response, status: u16, code: &str) -> bool {
    let is_refused = comparison.holds((answer.status, answer.code().as_str()) == (status, code), || {
        let body: String = String::from_utf8_lossy(&answer.body).chars().take(200).collect();
        format!(
            "GET {path}: expected {status} {code}, got {} {body}",
            answer.status
        )
    });
    comparison.holds(!answer.sentence().is_empty(), || {
        format!("GET {path}: the error has no sentence")
    });
    let fields = answer.json_or_null().as_object().map_or(0, serde_json::Map::len);
    comparison.holds(fields == 2, || {
        format!(
            "GET {path}: an error is {{error, code}}, got {}",
            answer.json_or_null()
        )
    });
    comparison.holds(answer.header("service-key-expires-at").is_none(), || {
        format!("GET {path}: the expiry header belongs to good answers")
    });
    is_refused
}

/// The window of the answer to a request that was sent at `sent` or later: this many days until the request.
fn window(comparison: &mut Comparison, path: &str, answer: &Value, sent: i64, days: i64) {
    let window = &answer["window"];
    comparison.same(
        &format!("GET {path}: window.days"),
        &window["days"].as_i64(),
        &Some(days),
    );
    let read = |name: &str| window[name].as_str().and_then(clock::parse).unwrap_or_default();
    let (from, to) = (read("from"), read("to"));
    comparison.holds(to - from == days * DAY, || {
        format!("GET {path}: the window {window} is not {days} days")
    });
    comparison.holds((sent..=clock::now()).contains(&to), || {
        format!("GET {path}: the window {window} does not end at the request")
    });
}

/// The `page` object of a numbered list.
pub fn page(
    comparison: &mut Comparison,
    path: &str,
    answer: &Value,
    number: i64,
    per_page: i64,
    total: usize,
) {
    let count = (total as i64 + per_page - 1) / per_page;
    comparison.matches(
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

/// A numbered list: the field of its entries, its sort (empty for a list of one order), and what identifies an entry on pages of every size.
pub struct List<'a, K> {
    pub field: &'a str,
    pub sort: &'a str,
    pub key: fn(&Value) -> K,
}

/// What identifies a test of a list.
pub fn test_key(entry: &Value) -> (String, Option<String>) {
    let text = |name: &str| entry[name].as_str().map(str::to_owned);
    (text("testName").unwrap_or_default(), text("filePath"))
}

/// All entries of a list of tests. Pages are compared by their tests.
pub fn listed_tests(
    comparison: &mut Comparison,
    checks: &ProjectChecks<'_>,
    query: &str,
    sort: &str,
    total: usize,
) -> Vec<Value> {
    let list = List {
        field: "tests",
        sort,
        key: test_key,
    };
    all_pages(comparison, checks, query, &list, total)
}

/// All entries of a list, which must be the same in pages of 10, 25 and 50. A page past the end is the last page.
pub fn all_pages<K: PartialEq>(
    comparison: &mut Comparison,
    checks: &ProjectChecks<'_>,
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
            let answer = checks.get(comparison, &path);
            page(comparison, &path, &answer, number as i64, per_page as i64, total);
            comparison.same(
                &format!("GET {path}: sort"),
                &answer["sort"],
                &match list.sort {
                    "" => Value::Null,
                    sort => sort.into(),
                },
            );
            entries.extend(answer[list.field].as_array().cloned().unwrap_or_default());
        }
        let path = format!("{query}{joint}perPage={per_page}&page=99999");
        let last = checks.get(comparison, &path);
        page(comparison, &path, &last, pages as i64, per_page as i64, total);
        match &first_entries {
            Some(first) => {
                let keys = |entries: &[Value]| -> Vec<K> { entries.iter().map(list.key).collect() };
                comparison.holds(keys(first) == keys(&entries), || {
                    format!("GET {query}: pages of {per_page} have other entries")
                });
            }
            None => first_entries = Some(entries),
        }
    }
    first_entries.unwrap_or_default()
}
