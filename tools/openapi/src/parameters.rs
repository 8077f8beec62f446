//! The parameters, by the names that the routes use for them.

use assay_domain::{
    cause::Knowledge,
    merge_queue::RunKind,
    page::PerPage,
    period::Days,
    run::Outcome,
    signature::{Category, SignatureSort},
    verdict::{FlakySort, TestSort, VerdictStatus},
};

use serde_json::Value;

use crate::json::{Fields, object, texts};

const PROJECT: &str = "01a1fb15-b298-7514-9198-bca91f3e7e8b";
const RUN: &str = "01a1fb15-b298-7514-9198-bcb385600000";
const TEST: &str = "api > api/cart.spec.ts > basket > accepts an order on the second try";

/// Postgres cannot store NUL, so a text with one is rejected.
const WITHOUT_NUL: &str = "^[^\\u0000]*$";

/// Every parameter. Parameters with the same name and different meanings on several routes have separate names here.
pub(crate) fn components() -> Fields {
    [
        ("projectId", path("projectId", text([("format", "uuid".into())]), PROJECT, "An id of the project list. Any other text gets `project_not_found`.")),
        ("runId", path("runId", text([("format", "uuid".into())]), RUN, "An id of the runs list, or the id of any shard of a sharded run. Any other text gets `run_not_found`.")),
        ("commitSha", path("commitSha", text([("pattern", "^[0-9a-fA-F]{4,64}$".into())]), "9b4437ba", "A commit or tested revision, or its beginning, ignoring case. Text of another form gets `commit_not_found`.")),
        ("testName", path("testName", text([("minLength", 1.into())]), TEST, "The full stored test name, percent-encoded with `/` as `%2F`. The flaky list finds it by a part of it (`search`); a run's detail has the names of all its tests.")),
        ("fingerprint", path("fingerprint", text([("pattern", "^[0-9A-Za-z_-]{1,128}$".into())]), "bbd72ea9b25addb5cbf17e2d21b71317", "A fingerprint of the error-signature list. Text of another form gets `error_not_found`.")),
        ("branchName", path("branchName", text([("minLength", 1.into())]), "release/1.2", "The exact name of a branch, percent-encoded with `/` as `%2F`. A branch without a visible run gets `branch_not_found`.")),
        ("filePath", file_path()),
        ("days", days()),
        ("branch", query("branch", text([("minLength", 1.into()), ("maxLength", 200.into()), ("pattern", WITHOUT_NUL.into())]), "Only this branch, by its exact name.", Some("main"))),
        ("sha", query("sha", text([("pattern", "^[0-9a-fA-F]{4,40}$".into())]), "Only runs whose commit or tested revision begins with this, ignoring case.", Some("9b4437ba"))),
        ("pullRequest", query("pullRequest", integer([("minimum", 1.into())]), "Only runs of this pull request, also those in which a merge queue tested it with others.", None)),
        ("runKind", query("kind", text([("enum", texts(RunKind::ALL))]), "Only runs of merge queues, or only the others.", None)),
        ("runStatus", query("status", text([("enum", texts(Outcome::ALL))]), "Only runs with this outcome.", None)),
        ("trusted", query("trusted", object([("type", "boolean".into())]), "Only runs that were sent with a trusted key, or only those of keys for pull requests only, which may be public.", None)),
        ("flakyStatus", query("status", text([("enum", texts([VerdictStatus::Flaky, VerdictStatus::Broken]))]), "Only tests with this verdict.", None)),
        ("testStatus", query("status", text([("enum", texts(VerdictStatus::ALL))]), "Only tests with this verdict.", None)),
        ("testSort", query("sort", text([("enum", texts(TestSort::ALL)), ("default", TestSort::Verdict.as_str().into())]), "The order: by verdict, the worst first, then by time lost; by time lost, flake score, failure rate or impact on the stable branch, the largest first; or by name. Ties are ordered by `flakeScore`, then name, then file; null is last.", None)),
        ("file", query("file", text([("minLength", 1.into()), ("maxLength", 200.into()), ("pattern", WITHOUT_NUL.into())]), "Only tests whose file contains this, ignoring case.", Some("cart.spec.ts"))),
        ("failsOn", query("branch", text([("minLength", 1.into()), ("maxLength", 200.into()), ("pattern", WITHOUT_NUL.into())]), "Only tests with a failed attempt on this branch, by its exact name.", Some("main"))),
        ("failsIn", query("variant", text([("minLength", 1.into()), ("maxLength", 500.into()), ("pattern", WITHOUT_NUL.into())]), "Only tests with a failed attempt in this variant, by its exact name; `(default)` for runs without a suite.", Some("e2e"))),
        ("error", query("error", text([("minLength", 1.into()), ("maxLength", 200.into()), ("pattern", WITHOUT_NUL.into())]), "Only tests that failed with this error signature in the window, by its fingerprint.", None)),
        ("red", query("red", object([("type", "boolean".into()), ("default", false.into())]), "Only tests whose newest result on the stable branch failed.", None)),
        ("new", query("new", object([("type", "boolean".into()), ("default", false.into())]), "Only tests that first failed in the last seven days and ran without a failure before.", None)),
        ("group", query("group", text([("enum", texts(["owner"]))]), "`owner` adds the counts of the matching tests by owner.", None)),
        ("category", query("category", text([("enum", texts(Category::ALL))]), "Only signatures of this category.", None)),
        ("testSearch", query("search", text([("minLength", 1.into()), ("maxLength", 200.into()), ("pattern", WITHOUT_NUL.into())]), "Only tests whose name or file contains this, ignoring case.", Some("checkout"))),
        ("owner", query("owner", text([("minLength", 1.into()), ("maxLength", 200.into()), ("pattern", WITHOUT_NUL.into())]), "Only tests with this owner, ignoring case; `unowned` for those without one.", Some("@org/web"))),
        ("errorSearch", query("search", text([("minLength", 1.into()), ("maxLength", 200.into()), ("pattern", WITHOUT_NUL.into())]), "Only signatures whose title or message, or the file of one of their tests, contains this, ignoring case.", Some("timeout"))),
        ("flakySort", query("sort", text([("enum", texts(FlakySort::ALL)), ("default", FlakySort::TimeLost.as_str().into())]), "The order, the largest first: by time lost, by failure rate, or by impact on the stable branch.", None)),
        ("errorSort", query("sort", text([("enum", texts(SignatureSort::ALL)), ("default", SignatureSort::Occurrences.as_str().into())]), "The order: by occurrences, by the number of tests, by the latest or by the first occurrence; the largest or latest first.", None)),
        ("timingsBefore", query("before", text([("format", "date-time".into()), ("pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)$".into())]), "Only runs whose parts had all arrived before this time. Machines of one build give the time of its commit, or another one that they share. Without it, the time of the request.", Some("2026-11-20T18:00:00Z"))),
        ("page", query("page", integer([("minimum", 1.into()), ("default", 1.into())]), "The page, from 1. A page past the end gets the last page.", None)),
        ("perPage", per_page()),
        ("limit", query("limit", integer([("enum", Value::Array(vec![10.into(), 25.into(), 50.into(), 200.into()])), ("default", 10.into())]), "Failures per page.", None)),
        ("uploadLimit", query("limit", integer([("enum", Value::Array(vec![10.into(), 25.into(), 50.into(), 200.into()])), ("default", 10.into())]), "The most uploads of the answer.", None)),
        ("causeMode", query("mode", text([("enum", texts(Knowledge::ALL)), ("default", Knowledge::AtTheTime.as_str().into())]), "Whether later runs count: `at_the_time` reads the runs that started until this one, `hindsight` also those of the 14 days after it.", None)),
        ("cursor", query("cursor", text([("pattern", "^[0-9A-Za-z_-]{1,64}$".into())]), "Opaque. Pass `nextCursor` for older runs; pass `prevCursor` together with `direction=prev` for newer ones.", Some("AQAAAaH6RsnYAAAACAY22YE"))),
        ("direction", query("direction", text([("enum", texts(["next", "prev"])), ("default", "next".into())]), "Older (`next`) or newer (`prev`) runs than the cursor. `prev` needs a cursor.", None)),
        ("explain", query("explain", object([("type", "boolean".into()), ("default", false.into())]), "Adds to each entry the evidence behind its verdict.", None)),
        ("ifNoneMatch", header("If-None-Match", "The `ETag` of an answer that the client has. If it is still valid, the answer is 304 without a body.")),
        ("requestId", header("X-Request-Id", "The client's own id for this request: 1 to 64 letters, digits, `.`, `_` and `-`. The answer and the server's log contain it. Any other text is replaced.")),
    ]
    .into_iter()
    .map(|(name, parameter)| (component(name), parameter))
    .collect()
}

/// The name of a parameter's component. Generators create a type for each component, so no schema may have the same
/// name.
pub(crate) fn component(name: &str) -> String {
    format!("{name}Parameter")
}

fn path(name: &str, schema: Value, example: &str, description: &str) -> Value {
    object([
        ("name", name.into()),
        ("in", "path".into()),
        ("required", true.into()),
        ("description", description.into()),
        ("schema", schema),
        ("example", example.into()),
    ])
}

fn query(name: &str, schema: Value, description: &str, example: Option<&str>) -> Value {
    let mut parameter = object([
        ("name", name.into()),
        ("in", "query".into()),
        ("required", false.into()),
        ("description", description.into()),
        ("schema", schema),
    ]);
    if let Some(example) = example {
        parameter["example"] = example.into();
    }
    parameter
}

fn header(name: &str, description: &str) -> Value {
    object([
        ("name", name.into()),
        ("in", "header".into()),
        ("required", false.into()),
        ("description", description.into()),
        ("schema", text([])),
    ])
}

fn days() -> Value {
    let lengths = Days::ALL.map(|days| days.count().into());
    let schema = integer([
        ("enum", Value::Array(lengths.to_vec())),
        ("default", Days::default().count().into()),
    ]);
    let description = "The period in days, ending now. It must not exceed the plan's retention (Standard 60, Pro 90): \
                       `invalid_period`.";
    query("days", schema, description, None)
}

fn per_page() -> Value {
    let sizes =
        [PerPage::Ten, PerPage::TwentyFive, PerPage::Fifty].map(|size| i64::from(size.count()).into());
    let schema = integer([
        ("enum", Value::Array(sizes.to_vec())),
        ("default", i64::from(PerPage::default().count()).into()),
    ]);
    query("perPage", schema, "Entries a page.", None)
}

fn file_path() -> Value {
    let description = "The stored file of the test; empty for a test without a file. Needed only if several \
                       files have the name; `ambiguous_test` lists them.";
    let mut parameter = query(
        "filePath",
        text([("pattern", WITHOUT_NUL.into())]),
        description,
        Some("tests/api/cart.spec.ts"),
    );
    parameter["allowEmptyValue"] = true.into();
    parameter
}

fn text<const N: usize>(rules: [(&str, Value); N]) -> Value {
    [("type", "string".into())].into_iter().chain(rules).collect()
}

fn integer<const N: usize>(rules: [(&str, Value); N]) -> Value {
    [("type", "integer".into())].into_iter().chain(rules).collect()
}
