//! The issues of a code host, by the documentation of both hosts: "REST API endpoints for issues", "… for issue comments" and
//! "Rate limits for the REST API" of GitHub (version 2022-11-28), "Issues API" and "Notes API" of GitLab.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Barrier, Mutex, MutexGuard},
    thread,
};

use serde_json::{Value, json};

/// The longest page of this GitLab, whatever is asked for.
const MOST_OF_GITLAB: usize = 3;

/// Each token with the id and the kind of its user, and whether it may write and set labels.
const TOKENS: [(&str, u64, &str, bool, bool); 5] = [
    ("ghs_jobs", 41, "Bot", true, true),
    ("ghs_fork", 41, "Bot", false, false),
    ("ghp_person", 7, "User", true, true),
    ("ghp_reader", 8, "User", true, false),
    ("glpat-jobs", 41, "User", true, true),
];
/// GitHub refuses a longer text.
const LONGEST: usize = 65_536;
const GITHUB: &str = "/repos/shop/web/issues";
const GITLAB: &str = "/api/v4/projects/12/issues";

/// An issue, or a pull request of GitHub.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stored {
    pub(super) title: String,
    pub(super) body: String,
    pub(super) labels: Vec<String>,
    pub(super) open: bool,
    pub(super) author: (u64, &'static str),
    pub(super) is_pull_request: bool,
    /// Author and text. A text of GitLab that begins with `closed` is a system note.
    pub(super) comments: Vec<(u64, String)>,
}

/// An answer that is given in place of the next one to this method.
pub(super) type Refusal = (&'static str, u16, &'static str, &'static str);

#[derive(Default)]
pub(super) struct State {
    pub(super) issues: BTreeMap<u64, Stored>,
    /// Method and path of each request.
    pub(super) requests: Vec<(String, String)>,
    pub(super) refusals: VecDeque<Refusal>,
    /// After this many more requests that change something, no answer leaves the host.
    pub(super) cut: Option<usize>,
    /// The first lists wait for each other.
    pub(super) meeting: Option<Arc<Barrier>>,
}

/// A running host.
#[derive(Clone)]
pub(super) struct Host {
    pub(super) api: String,
    state: Arc<Mutex<State>>,
}

impl Host {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let api = format!("http://{}", listener.local_addr().unwrap());
        let state: Arc<Mutex<State>> = Arc::default();
        let served = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&served);
                thread::spawn(move || serve(stream.unwrap(), &state));
            }
        });
        Self { api, state }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn issues(&self) -> BTreeMap<u64, Stored> {
        self.state().issues.clone()
    }

    /// The requests that change something, since the last call.
    pub(super) fn writes(&self) -> Vec<(String, String)> {
        let requests = std::mem::take(&mut self.state().requests);
        requests
            .into_iter()
            .filter(|(method, _)| method != "GET")
            .collect()
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
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
            "authorization" => token = value.trim().trim_start_matches("Bearer ").to_owned(),
            "private-token" => token = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = first.split_whitespace();
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut locked = state.lock().unwrap();
    if locked.cut == Some(0) {
        return;
    }
    locked.requests.push((method.to_owned(), path.to_owned()));
    let is_next = locked
        .refusals
        .front()
        .is_some_and(|(refused, ..)| *refused == method);
    let refusal = if is_next {
        locked.refusals.pop_front()
    } else {
        None
    };
    let (status, header, answer) = match refusal {
        Some((_, status, header, text)) => (status, header, text.to_owned()),
        None => {
            let json = serde_json::from_slice(&body).unwrap_or_default();
            let (status, answer) = respond(&mut locked, (method, path, query), &token, &json);
            // The host names the next page, if a page is shorter than asked for.
            let is_cut = answer.as_array().is_some_and(|page| page.len() == MOST_OF_GITLAB);
            let link = "Link: <https://code.test/?page=2>; rel=\"next\"\r\n";
            (status, if is_cut { link } else { "" }, answer.to_string())
        }
    };
    locked.cut = locked.cut.map(|left| left - usize::from(method != "GET"));
    let is_cut = locked.cut == Some(0);
    let meeting = locked.meeting.clone().filter(|_| query.contains("labels="));
    drop(locked);
    if is_cut {
        return;
    }
    if let Some(meeting) = meeting
        && meeting.wait().is_leader()
    {
        state.lock().unwrap().meeting = None;
    }
    write!(
        stream,
        "HTTP/1.1 {status} Status\r\nConnection: close\r\n{header}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
        answer.len()
    )
    // A program that was killed reads no answer.
    .unwrap_or_default();
}

fn respond(
    state: &mut State,
    (method, path, query): (&str, &str, &str),
    token: &str,
    json: &Value,
) -> (u16, Value) {
    let message = |status, text: &str| (status, json!({ "message": text }));
    let Some(&(_, user, kind, may_write, may_label)) = TOKENS.iter().find(|(known, ..)| *known == token)
    else {
        return message(401, "Bad credentials");
    };
    if path == "/user" || path == "/api/v4/user" {
        return match kind {
            "Bot" => message(403, "Resource not accessible by integration"),
            _ => (200, json!({ "id": user })),
        };
    }
    if method != "GET" && !may_write {
        return message(403, "Resource not accessible by integration");
    }
    let is_github = path.starts_with(GITHUB);
    let rest = path.strip_prefix(GITHUB).or_else(|| path.strip_prefix(GITLAB));
    let Some(rest) = rest else {
        return message(404, "Not Found");
    };
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
    };
    let number = |name: &str, usual: usize| parameter(name).map_or(usual, |value| value.parse().unwrap());
    let most = if is_github { 100 } else { MOST_OF_GITLAB };
    let per_page = number("per_page", if is_github { 30 } else { 20 }).min(most);
    let skipped = (number("page", 1) - 1) * per_page;
    let shown = |number: u64, issue: &Stored| match is_github {
        true => of_github(number, issue),
        false => of_gitlab(number, issue),
    };
    let mut parts = rest.split('/').skip(1);
    let Some(of) = parts.next() else {
        if method == "POST" {
            let labels = match (&json["labels"], may_label) {
                (Value::Array(labels), true) if is_github => labels
                    .iter()
                    .map(|label| label.as_str().unwrap().to_owned())
                    .collect(),
                (Value::String(labels), true) if !is_github => labels.split(',').map(str::to_owned).collect(),
                (_, false) => Vec::new(),
                (other, true) => panic!("no labels: {other}"),
            };
            let issue = Stored {
                title: json["title"].as_str().unwrap().to_owned(),
                body: String::new(),
                labels,
                open: true,
                author: (user, kind),
                is_pull_request: false,
                comments: Vec::new(),
            };
            let number = u64::try_from(state.issues.len()).unwrap() + 1;
            let mut edited = issue;
            return match edit(&mut edited, is_github, json) {
                Ok(()) => {
                    let answer = shown(number, &edited);
                    state.issues.insert(number, edited);
                    (201, answer)
                }
                Err(refusal) => refusal,
            };
        }
        // Both hosts list the newest first if they are not asked for another order.
        let is_oldest_first = parameter("direction").or(parameter("sort")) == Some("asc");
        let wanted = parameter("state").unwrap_or(if is_github { "open" } else { "all" });
        let labels: Vec<&str> = parameter("labels").unwrap_or_default().split(',').collect();
        let listed = state.issues.iter().filter(|(_, issue)| {
            let has = |label: &&str| label.is_empty() || issue.labels.iter().any(|own| own == label);
            (wanted == "all" || wanted.starts_with("open") == issue.open) && labels.iter().all(has)
        });
        let mut listed: Vec<Value> = listed.map(|(number, issue)| shown(*number, issue)).collect();
        if !is_oldest_first {
            listed.reverse();
        }
        return (200, listed.into_iter().skip(skipped).take(per_page).collect());
    };
    let number: u64 = of.parse().unwrap();
    let Some(issue) = state.issues.get_mut(&number) else {
        return message(404, "Not Found");
    };
    match (method, parts.next()) {
        ("GET", None) => (200, shown(number, issue)),
        ("PATCH", None) if is_github => match edit(issue, true, json) {
            Ok(()) => (200, shown(number, issue)),
            Err(refusal) => refusal,
        },
        ("PUT", None) if !is_github => match edit(issue, false, json) {
            Ok(()) => (200, shown(number, issue)),
            Err(refusal) => refusal,
        },
        ("GET", Some("comments" | "notes")) => {
            let comment = |(author, text): &(u64, String)| {
                let user = json!({"id": author, "type": kind_of(*author)});
                json!({"body": text, "user": user, "author": user, "system": text.starts_with("closed")})
            };
            let mut all: Vec<Value> = issue.comments.iter().map(comment).collect();
            if !is_github {
                all.reverse();
            }
            (200, all.into_iter().skip(skipped).take(per_page).collect())
        }
        ("POST", Some("comments" | "notes")) => {
            issue
                .comments
                .push((user, json["body"].as_str().unwrap().to_owned()));
            (201, json!({"id": issue.comments.len()}))
        }
        _ => message(404, "Not Found"),
    }
}

/// Changes an issue by the fields of its host.
fn edit(issue: &mut Stored, is_github: bool, json: &Value) -> Result<(), (u16, Value)> {
    let field = if is_github { "body" } else { "description" };
    if let Some(text) = json[field].as_str() {
        if is_github && text.chars().count() > LONGEST {
            let problem =
                json!({"field": "body", "message": "body is too long (maximum is 65536 characters)"});
            return Err((422, json!({"message": "Validation Failed", "errors": [problem]})));
        }
        text.clone_into(&mut issue.body);
    }
    match (is_github, json["state"].as_str(), json["state_event"].as_str()) {
        (true, Some("closed"), _) => issue.open = false,
        (false, _, Some("close")) => {
            issue.open = false;
            issue.comments.push((41, "closed".to_owned()));
        }
        _ => {}
    }
    Ok(())
}

fn kind_of(user: u64) -> &'static str {
    if user == 41 { "Bot" } else { "User" }
}

fn of_github(number: u64, issue: &Stored) -> Value {
    let labels: Value = issue
        .labels
        .iter()
        .map(|name| json!({"id": 1, "name": name}))
        .collect();
    let (id, kind) = issue.author;
    let mut shown = json!({
        "number": number, "title": issue.title, "body": issue.body, "labels": labels,
        "state": if issue.open { "open" } else { "closed" }, "user": {"id": id, "type": kind},
    });
    if issue.is_pull_request {
        shown["pull_request"] = json!({"url": "https://api.github.com/repos/shop/web/pulls/1"});
    }
    shown
}

fn of_gitlab(number: u64, issue: &Stored) -> Value {
    json!({
        "id": number + 1000, "iid": number, "title": issue.title, "description": issue.body, "labels": issue.labels,
        "state": if issue.open { "opened" } else { "closed" }, "author": {"id": issue.author.0},
    })
}
