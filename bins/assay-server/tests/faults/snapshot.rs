//! All data of a world in the API, as text.
//!
//! Ids are numbered in the order of their appearance. Times of requests and imports are removed, so that two worlds
//! with the same history have the same text.

use std::collections::HashMap;

use assay_testkit::{text, wire::escape};
use serde_json::Value;

use crate::world::World;

/// Fields with the time of the request or of the import.
const TIMES: [&str; 5] = ["from", "to", "now", "evaluatedAt", "createdAt"];

/// Reports the first line that differs between two worlds, if any.
pub(crate) fn assert_same(left: &str, right: &str, context: &str) {
    let differing = left
        .lines()
        .zip(right.lines())
        .find(|(left, right)| left != right);
    assert!(differing.is_none(), "{context}: {differing:#?}");
    assert_eq!(left.lines().count(), right.lines().count(), "{context}");
}

/// The bodies of all routes.
pub(crate) fn of(world: &World) -> String {
    let mut walk = Walk {
        world,
        ids: HashMap::new(),
        text: String::new(),
    };
    let projects = world.server.client().get("/api/v1/projects", Some(&world.key));
    walk.write("/projects", &projects.text());
    for below in [
        "/settings",
        "/branches",
        "/flaky?explain=true&perPage=50",
        "/errors?days=90&perPage=50",
    ] {
        walk.get(below);
    }
    let mut tests = Vec::new();
    for run in walk.pages() {
        let run = text(&run["id"]);
        let detail = walk.get(&format!("/runs/{run}"));
        for test in detail["tests"].as_array().unwrap() {
            let test = (
                text(&test["testName"]),
                test["filePath"].as_str().map(str::to_owned),
            );
            walk.get(&of_test(&format!("/runs/{run}/tests"), &test, ""));
            if !tests.contains(&test) {
                tests.push(test);
            }
        }
    }
    tests.sort();
    for test in &tests {
        walk.get(&of_test("/tests", test, ""));
        walk.get(&of_test("/tests", test, "/status"));
    }
    let errors = world.get("/errors?days=90&perPage=50");
    for error in errors["errors"].as_array().unwrap() {
        walk.get(&format!("/errors/{}?days=90", text(&error["fingerprint"])));
    }
    walk.text
}

struct Walk<'a> {
    world: &'a World,
    ids: HashMap<String, usize>,
    text: String,
}

impl Walk<'_> {
    /// All runs, by cursor.
    fn pages(&mut self) -> Vec<Value> {
        let (mut runs, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.world.get(&format!("/runs?days=90&perPage=10{cursor}"));
            self.write("/runs", &without_cursors(page.clone()));
            runs.extend(page["runs"].as_array().unwrap().iter().cloned());
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return runs,
            }
        }
    }

    fn get(&mut self, below: &str) -> Value {
        let answer = self.world.ask(below);
        assert_eq!(answer.status, 200, "{below}: {}", answer.text());
        // The requests contain ids, so they are numbered, too.
        self.write(below, &answer.text());
        answer.json()
    }

    fn write(&mut self, path: &str, body: &str) {
        for line in [path, &without_times(body)] {
            let line = self.numbered(line);
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }

    fn numbered(&mut self, text: &str) -> String {
        let mut numbered = String::new();
        let mut rest = text;
        while let Some(at) = (0..rest.len()).find(|at| rest.get(*at..at + 36).is_some_and(is_id)) {
            let count = self.ids.len();
            let number = *self.ids.entry(rest[at..at + 36].to_owned()).or_insert(count);
            numbered.push_str(&rest[..at]);
            numbered.push_str(&format!("#{number}"));
            rest = &rest[at + 36..];
        }
        numbered + rest
    }
}

fn is_id(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    })
}

/// A cursor is a position, which contains an id in another form.
fn without_cursors(mut page: Value) -> String {
    page["nextCursor"] = Value::Null;
    page["prevCursor"] = Value::Null;
    page.to_string()
}

fn without_times(body: &str) -> String {
    let fields = TIMES.map(|field| (format!("\"{field}\":\""), '"'));
    // A prompt contains the time of the stored verdict.
    let prompts = (", judged ".to_owned(), ' ');
    let mut body = body.to_owned();
    for (begin, end) in fields.into_iter().chain([prompts]) {
        let mut from = 0;
        while let Some(at) = body[from..].find(&begin) {
            let at = from + at + begin.len();
            let end = at + body[at..].find(end).unwrap();
            body.replace_range(at..end, "");
            from = at;
        }
    }
    body
}

fn of_test(before: &str, (name, file): &(String, Option<String>), after: &str) -> String {
    let query = file.as_deref().map(|file| format!("?filePath={}", escape(file)));
    format!("{before}/{}{after}{}", escape(name), query.unwrap_or_default())
}
