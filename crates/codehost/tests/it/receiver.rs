//! A code host: the routes for comments of GitHub and notes of GitLab, with their pages, limits and refusals.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

/// GitHub refuses a longer text with 422.
const LONGEST: usize = 65_536;
/// The token of the jobs.
pub(crate) const TOKEN: &str = "ghs_jobs";
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
    let text = serde_json::from_slice::<Value>(&body).ok();
    let text = text.and_then(|json| json["body"].as_str().map(str::to_owned));
    let mut words = first.split_whitespace();
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut state = state.lock().unwrap();
    state.requests.push((method.to_owned(), path.to_owned()));
    let (status, extra, answer) = respond(&mut state, (method, path, query), &token, text);
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

fn respond(
    state: &mut State,
    (method, path, query): (&str, &str, &str),
    token: &str,
    text: Option<String>,
) -> Reply {
    if state.limited > 0 {
        state.limited -= 1;
        return (
            403,
            "Retry-After: 0\r\n",
            Some(json!({"message": "You have exceeded a secondary rate limit."})),
        );
    }
    match (token, method) {
        (TOKEN, _) | (FORK, "GET") => {}
        (FORK, _) => {
            return (
                403,
                "",
                Some(json!({"message": "Resource not accessible by integration"})),
            );
        }
        _ => return (401, "", Some(json!({"message": "Bad credentials"}))),
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
    let each = comments
        .map(|(id, comment)| json!({"id": id, "body": comment.body, "user": {"type": comment.author}}));
    each.collect()
}
