//! A code host: the routes for comments and check runs of GitHub, notes of GitLab, threads of Azure Repos and reports of
//! Bitbucket Cloud, with their pages, limits and refusals. docs/pull-requests.md names the documentation of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

/// GitHub refuses a longer text with 422.
const LONGEST: usize = 65_536;
const AZURE: &str = "/0a-1b/_apis/git/repositories/2c-3d/pullRequests/7/threads";
/// A proxy gets the whole address. It signs the request, so that there is no token.
const BITBUCKET: &str = "http://api.bitbucket.org/2.0/repositories/shop/web/commit/";
/// The id of the user of all tokens.
const OWN: u64 = 41;
/// The token of the jobs.
pub(crate) const TOKEN: &str = "ghs_jobs";
/// The token of a person.
pub(crate) const PERSONAL: &str = "ghp_person";
/// The token of a fork's pull request, which may only read.
pub(crate) const FORK: &str = "ghs_fork";

/// A comment.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) body: String,
    /// `Bot` or `User`.
    pub(crate) author: &'static str,
}

/// The state of the host.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) comments: BTreeMap<u64, Stored>,
    /// The threads of Azure Repos whose comment was deleted. They stay in its list.
    pub(crate) deleted: BTreeSet<u64>,
    /// The check runs of GitHub.
    pub(crate) check_runs: BTreeMap<u64, Value>,
    /// The reports of Bitbucket by their paths, each with its annotations.
    pub(crate) reports: BTreeMap<String, (Value, Vec<Value>)>,
    next_id: u64,
    /// Method and path of each request, without the query.
    pub(crate) requests: Vec<(String, String)>,
    /// How many of the next requests are refused for their rate.
    pub(crate) limited: u32,
}

/// A running host.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) api: String,
    pub(crate) state: Arc<Mutex<State>>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let api = format!("http://{}", listener.local_addr().unwrap());
        let state: Arc<Mutex<State>> = Arc::default();
        let served = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&served);
                thread::spawn(move || answer(stream.unwrap(), &state));
            }
        });
        Self { api, state }
    }

    /// A comment of somebody else.
    pub(crate) fn add(&self, author: &'static str, body: &str) -> u64 {
        let mut state = self.state.lock().unwrap();
        state.add(author, body)
    }

    pub(crate) fn bodies(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state
            .comments
            .values()
            .map(|comment| comment.body.clone())
            .collect()
    }

    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        self.state.lock().unwrap().requests.clone()
    }
}

impl State {
    fn add(&mut self, author: &'static str, body: &str) -> u64 {
        self.next_id += 1;
        let body = body.to_owned();
        self.comments.insert(self.next_id, Stored { body, author });
        self.next_id
    }
}

fn answer(mut stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap() == 0 {
        return;
    }
    let (mut length, mut token) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "authorization" => token = value.trim().strip_prefix("Bearer ").unwrap().to_owned(),
            "private-token" => token = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let json = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    let mut words = first.split_whitespace();
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut state = state.lock().unwrap();
    state.requests.push((method.to_owned(), path.to_owned()));
    let (status, extra, answer) = respond(&mut state, (method, path, query), &token, &json);
    drop(state);
    let answer = answer.map_or_else(String::new, |json| json.to_string());
    write!(
        stream,
        "HTTP/1.1 {status} Status\r\nConnection: close\r\n{extra}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
        answer.len()
    )
    .unwrap();
}

type Reply = (u16, &'static str, Option<Value>);

fn respond(state: &mut State, (method, path, query): (&str, &str, &str), token: &str, json: &Value) -> Reply {
    let text = json["body"].as_str().map(str::to_owned);
    if let Some(path) = path.strip_prefix(BITBUCKET) {
        return report(state, method, path, json);
    }
    if state.limited > 0 {
        state.limited -= 1;
        return (
            403,
            "Retry-After: 0\r\n",
            Some(json!({"message": "You have exceeded a secondary rate limit."})),
        );
    }
    match (token, method) {
        (TOKEN | PERSONAL, _) | (FORK, "GET") => {}
        (FORK, _) => {
            return (
                403,
                "",
                Some(json!({"message": "Resource not accessible by integration"})),
            );
        }
        _ => return (401, "", Some(json!({"message": "Bad credentials"}))),
    }
    if let Some(rest) = path.strip_prefix(AZURE) {
        return thread(state, (method, rest, query), json);
    }
    if path.contains("/check-runs") {
        return check_run(state, (method, path), json);
    }
    if path == "/user" {
        return (200, "", Some(json!({"id": OWN})));
    }
    if path == "/_apis/connectionData" {
        return (200, "", Some(json!({"authenticatedUser": {"id": OWN}})));
    }
    let list = [
        "/repos/shop/web/issues/7/comments",
        "/projects/12/merge_requests/7/notes",
    ];
    if list.contains(&path) {
        return match method {
            "GET" => (200, "", Some(page(state, query))),
            "POST" => match text.filter(|text| text.chars().count() <= LONGEST) {
                Some(text) => {
                    let id = state.add("Bot", &text);
                    (201, "", Some(json!({"id": id})))
                }
                None => (422, "", Some(json!({"message": "Validation Failed"}))),
            },
            _ => (404, "", None),
        };
    }
    let one = [
        "/repos/shop/web/issues/comments/",
        "/projects/12/merge_requests/7/notes/",
    ];
    let id = one
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix)?.parse::<u64>().ok());
    let Some(id) = id.filter(|id| state.comments.contains_key(id)) else {
        return (404, "", Some(json!({"message": "Not Found"})));
    };
    match (method, text) {
        ("PATCH" | "PUT", Some(text)) if text.chars().count() <= LONGEST => {
            state.comments.get_mut(&id).unwrap().body = text;
            (200, "", Some(json!({"id": id})))
        }
        ("PATCH" | "PUT", _) => (422, "", Some(json!({"message": "Validation Failed"}))),
        ("DELETE", _) => {
            state.comments.remove(&id);
            (204, "", None)
        }
        _ => (404, "", None),
    }
}

/// The id of the user who wrote a comment.
fn user(comment: &Stored) -> u64 {
    match comment.author {
        "Bot" => OWN,
        _ => OWN + 1,
    }
}

/// The comments of a page, oldest first.
fn page(state: &State, query: &str) -> Value {
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value.parse::<usize>().unwrap())
    };
    let per_page = parameter("per_page").unwrap_or(30).min(100);
    let skip = (parameter("page").unwrap_or(1) - 1) * per_page;
    let comments = state.comments.iter().skip(skip).take(per_page);
    let each = comments.map(|(id, comment)| {
        let user = json!({"id": user(comment), "type": comment.author});
        json!({"id": id, "body": comment.body, "user": user, "author": user})
    });
    each.collect()
}

/// Threads of Azure Repos.
fn thread(state: &mut State, (method, rest, query): (&str, &str, &str), json: &Value) -> Reply {
    if query != "api-version=7.1" {
        return (400, "", Some(json!({"message": "No api-version was supplied."})));
    }
    if rest.is_empty() {
        return match method {
            "GET" => {
                let thread = |(id, stored): (&u64, &Stored)| match state.deleted.contains(id) {
                    true => json!({"id": id, "comments": [{"id": 1, "isDeleted": true}]}),
                    false => {
                        json!({"id": id, "comments": [{"id": 1, "content": stored.body, "author": {"id": user(stored)}}]})
                    }
                };
                let threads: Vec<Value> = state.comments.iter().map(thread).collect();
                (200, "", Some(json!({"count": threads.len(), "value": threads})))
            }
            _ => {
                let content = json["comments"][0]["content"].as_str().unwrap();
                let id = state.add("Bot", content);
                (200, "", Some(json!({"id": id})))
            }
        };
    }
    let id = rest
        .strip_prefix('/')
        .and_then(|rest| rest.strip_suffix("/comments/1"));
    let id: u64 = id.unwrap().parse().unwrap();
    match method {
        "PATCH" => {
            let content = json["content"].as_str().unwrap();
            content.clone_into(&mut state.comments.get_mut(&id).unwrap().body);
            (200, "", Some(json!({"id": 1})))
        }
        _ => {
            state.deleted.insert(id);
            (200, "", None)
        }
    }
}

/// Check runs of GitHub.
fn check_run(state: &mut State, (method, path): (&str, &str), json: &Value) -> Reply {
    let refused = || (422, "", Some(json!({"message": "Validation Failed"})));
    if method == "GET" {
        let runs: Vec<Value> = state.check_runs.values().cloned().collect();
        return (
            200,
            "",
            Some(json!({"total_count": runs.len(), "check_runs": runs})),
        );
    }
    let output = &json["output"];
    let summary = output["summary"].as_str().unwrap();
    if summary.chars().count() > 65_535 || output["annotations"].as_array().unwrap().len() > 50 {
        return refused();
    }
    let id = match path.rsplit_once("/check-runs/") {
        Some((_, id)) => id.parse().unwrap(),
        None => u64::try_from(state.check_runs.len()).unwrap() + 1,
    };
    let mut run = json.clone();
    run["id"] = json!(id);
    state.check_runs.insert(id, run);
    (
        if method == "POST" { 201 } else { 200 },
        "",
        Some(json!({"id": id})),
    )
}

/// Reports of Bitbucket Cloud.
fn report(state: &mut State, method: &str, path: &str, json: &Value) -> Reply {
    let length = |value: &Value| value.as_str().unwrap_or_default().chars().count();
    let refused = || (400, "", Some(json!({"error": {"message": "bad request"}})));
    match method {
        "PUT" => {
            let is_long = length(&json["title"]) > 450 || length(&json["details"]) > 2_000;
            if is_long || json["data"].as_array().unwrap().len() > 10 {
                return refused();
            }
            let annotations = state.reports.remove(path).map(|(_, annotations)| annotations);
            let stored = (json.clone(), annotations.unwrap_or_default());
            state.reports.insert(path.to_owned(), stored);
            (200, "", Some(json.clone()))
        }
        "POST" => {
            let added = json.as_array().unwrap();
            let is_refused = |of: &Value| {
                let summary = length(&of["summary"]);
                summary == 0 || summary > 450 || length(&of["details"]) > 2_000
            };
            if added.len() > 100 || added.iter().any(is_refused) {
                return refused();
            }
            let path = path.strip_suffix("/annotations").unwrap();
            state.reports.get_mut(path).unwrap().1.extend(added.clone());
            (200, "", Some(json.clone()))
        }
        _ => match state.reports.remove(path) {
            Some(_) => (204, "", None),
            None => (404, "", None),
        },
    }
}
