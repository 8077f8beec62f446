//! Receivers that follow the documented routes of CI services.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Cursor, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use assay_domain::timestamp::Timestamp;
use serde_json::{Value, json};
use zip::{ZipWriter, write::SimpleFileOptions};

/// A request: path with query, and headers by lower-case names.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
}

/// Status, headers and body of an answer.
pub(super) type Answer = (u16, String, Vec<u8>);

pub(super) fn json(value: &Value) -> Answer {
    (200, String::new(), value.to_string().into_bytes())
}

pub(super) fn status(status: u16, headers: &str) -> Answer {
    (
        status,
        headers.to_owned(),
        b"{\"message\": \"made to answer so\"}".to_vec(),
    )
}

/// A header of an answer whose last byte never comes.
pub(super) const CUT: &str = "X-Cut: 1\r\n";

/// A listener with a thread for each connection.
#[derive(Clone)]
pub(super) struct Host {
    pub(super) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Host {
    pub(super) fn start(answer: impl Fn(&str, &Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let host = Self {
            url: url.clone(),
            asked: Arc::clone(&asked),
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, asked, url) = (Arc::clone(&answer), Arc::clone(&asked), url.clone());
                thread::spawn(move || {
                    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                    let path = lines.next()?.split(' ').nth(1)?.to_owned();
                    let headers = lines.take_while(|line| !line.is_empty());
                    let headers = headers.filter_map(|line| {
                        let (name, value) = line.split_once(": ")?;
                        Some((name.to_lowercase(), value.to_owned()))
                    });
                    let request = Asked {
                        headers: headers.collect(),
                        path,
                    };
                    asked.lock().unwrap().push(request.clone());
                    let (status, headers, body) = answer(&url, &request);
                    let announced = body.len() + usize::from(headers.contains(CUT));
                    let head = format!(
                        "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: {announced}\r\n{headers}\r\n"
                    );
                    (&stream).write_all(&[head.as_bytes(), &body].concat()).ok()
                });
            }
        });
        host
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How many requests had this text in their path.
    pub(super) fn count(&self, part: &str) -> usize {
        self.asked()
            .iter()
            .filter(|asked| asked.path.contains(part))
            .count()
    }
}

/// A zip of files, in zip64 if asked for.
pub(super) fn zipped(files: &[(&str, &str)], zip64: bool) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer
            .start_file(*name, SimpleFileOptions::default().large_file(zip64))
            .unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A job of a run and its artifact.
#[derive(Debug, Clone)]
pub(super) struct Leg {
    pub(super) job: &'static str,
    pub(super) artifact: &'static str,
    pub(super) attempt: u32,
    /// Its start after that of the run.
    pub(super) after_ms: i64,
    /// The answer of the storage.
    pub(super) archive: Vec<u8>,
}

/// A run of GitHub Actions.
#[derive(Debug, Clone)]
pub(super) struct GitHubRun {
    pub(super) id: u64,
    pub(super) start: Timestamp,
    pub(super) branch: &'static str,
    pub(super) sha: String,
    pub(super) is_expired: bool,
    /// Whether its files are deleted after they were listed.
    pub(super) is_gone: bool,
    /// The repository of a pull request's branch.
    pub(super) fork: Option<&'static str>,
    /// The head of the base branch of its pull request. Their common commit is `0` and this.
    pub(super) base: Option<&'static str>,
    pub(super) legs: Vec<Leg>,
}

impl GitHubRun {
    /// The ids and starts of its jobs, which are those of their artifacts.
    pub(super) fn legs(&self) -> impl Iterator<Item = (u64, Timestamp, &Leg)> {
        let id = |index: u64| self.id + 10_000 * index;
        (0..)
            .map(id)
            .zip(&self.legs)
            .map(|(id, leg)| (id, self.start.plus_ms(leg.after_ms), leg))
    }
}

/// The page of a list, newest first, as GitHub makes them: at most 1,000 of a search, with the header `Link`.
fn page(url: &str, path: &str, all: Vec<Value>, name: &str) -> Answer {
    let of = |name: &str| {
        path.split(['?', '&'])
            .find_map(|pair| pair.strip_prefix(&format!("{name}=")))
    };
    let number: usize = of("page").map_or(1, |page| page.parse().unwrap());
    let shown: Vec<_> = all
        .iter()
        .take(1_000)
        .skip((number - 1) * 100)
        .take(100)
        .collect();
    let more = all.len().min(1_000) > number * 100;
    let next = path.split("&page=").next().unwrap();
    let link = format!(
        "Link: <{url}{next}&page={}>; rel=\"next\", <{url}{next}&page=9>; rel=\"last\"\r\n",
        number + 1
    );
    let body = json!({"total_count": all.len(), name: shown})
        .to_string()
        .into_bytes();
    (200, if more { link } else { String::new() }, body)
}

/// The routes of `shop/web` on GitHub. Archives come from another host.
pub(super) fn github(runs: Vec<GitHubRun>, storage: &Host) -> Host {
    let storage = storage.url.clone();
    Host::start(move |url, asked| {
        if asked.headers.get("authorization").map(String::as_str) != Some("Bearer the-token") {
            return (401, String::new(), b"{\"message\": \"Bad credentials\"}".to_vec());
        }
        let path = asked.path.as_str();
        let Some(rest) = path.strip_prefix("/repos/shop/web") else {
            return status(404, "");
        };
        if rest.is_empty() {
            return json(&json!({"default_branch": "trunk"}));
        }
        if let Some((_, window)) = rest.split_once("/runs?per_page=100&created=") {
            let (from, to) = window.split('&').next().unwrap().split_once("..").unwrap();
            let (from, to): (Timestamp, Timestamp) = (from.parse().unwrap(), to.parse().unwrap());
            let mut listed: Vec<_> = runs
                .iter()
                .filter(|run| (from..=to).contains(&run.start))
                .collect();
            listed.sort_by_key(|run| std::cmp::Reverse(run.start));
            return page(url, path, listed.into_iter().map(run).collect(), "workflow_runs");
        }
        if let Some((base, _)) = rest
            .strip_prefix("/compare/")
            .and_then(|rest| rest.split_once("..."))
        {
            return json(&json!({"merge_base_commit": {"sha": format!("0{base}")}}));
        }
        if let Some(sha) = rest
            .strip_prefix("/commits/")
            .and_then(|rest| rest.split_once("/pulls"))
        {
            let run = runs.iter().find(|run| run.sha == sha.0).unwrap();
            let mut stacked = pull_request(run, "dead");
            (stacked["number"], stacked["head"]["ref"]) = (9.into(), "stacked".into());
            return json(&json!([stacked, pull_request(run, "ba5e")]));
        }
        let id = rest.split('/').find_map(|part| part.parse::<u64>().ok());
        let Some((id, run)) = id.and_then(|id| Some((id, runs.iter().find(|run| run.id == id % 10_000)?)))
        else {
            return status(404, "");
        };
        if rest.contains("/artifacts?") {
            let artifact = |(id, start, leg): (u64, Timestamp, &Leg)| {
                json!({
                    "id": id, "name": leg.artifact, "size_in_bytes": leg.archive.len(), "expired": run.is_expired,
                    "archive_download_url": format!("{url}/repos/shop/web/actions/artifacts/{id}/zip"),
                    "created_at": start.plus_ms(60_000), "expires_at": run.start.plus_days(90),
                })
            };
            let artifacts: Vec<_> = run.legs().map(artifact).collect();
            return json(&json!({"total_count": artifacts.len(), "artifacts": artifacts}));
        }
        if rest.contains("/jobs?") {
            let job = |(id, start, leg): (u64, Timestamp, &Leg)| {
                json!({
                    "id": id, "name": leg.job, "run_attempt": leg.attempt, "runner_name": "runner-1",
                    "started_at": start, "completed_at": start.plus_ms(120_000),
                })
            };
            let jobs: Vec<_> = run.legs().map(job).collect();
            return json(&json!({"total_count": jobs.len(), "jobs": jobs}));
        }
        if run.is_expired || run.is_gone {
            return status(410, "");
        }
        status(302, &format!("Location: {storage}/blob/{id}?sig=secret\r\n"))
    })
}

/// A repository: that of a fork, or the project's.
fn repository(fork: Option<&str>) -> Value {
    let name = fork.unwrap_or("shop/web");
    json!({"full_name": name, "url": format!("https://api.github.com/repos/{name}")})
}

/// The pull request of a run's branch, with this head of its base.
fn pull_request(run: &GitHubRun, base: &str) -> Value {
    json!({
        "number": 7, "base": {"sha": base, "ref": "trunk", "repo": repository(None)},
        "head": {"ref": run.branch, "sha": run.sha, "repo": repository(run.fork)},
    })
}

fn run(run: &GitHubRun) -> Value {
    let attempt = run.legs.iter().map(|leg| leg.attempt).max();
    // Every open pull request of the head's branch, also into other repositories.
    let mut elsewhere = pull_request(run, "dead");
    elsewhere["number"] = 3.into();
    elsewhere["base"]["repo"] = repository(Some("ada/web"));
    let requests: Vec<_> = run
        .base
        .map(|base| pull_request(run, base))
        .into_iter()
        .chain([elsewhere])
        .collect();
    json!({
        "id": run.id, "status": "completed", "run_attempt": attempt,
        "event": if run.fork.is_some() { "pull_request" } else { "push" }, "head_branch": run.branch,
        "head_sha": run.sha, "created_at": run.start, "run_started_at": run.start, "display_title": "Add carts",
        "html_url": format!("https://github.com/shop/web/actions/runs/{}", run.id), "pull_requests": requests,
        "head_repository": repository(run.fork), "repository": repository(None),
        "actor": {"login": "ada"}, "head_commit": {"message": "Add carts", "author": {"name": "Ada"}},
    })
}
