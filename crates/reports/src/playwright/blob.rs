//! Playwright's blob report: a zip with the events of a run, one JSON value per line.

use std::collections::HashMap;

use memchr::{memchr, memmem};
use serde::Deserialize;

use super::model::{Config, Error, File, Shard, SourceLocation, Spec, Stats, Suite, Test, TestResult};
use crate::{input::Input, json, limits, memory, report::ReadError};

/// Whether a text begins with the events of a blob report.
pub(crate) fn is_blob(text: &str) -> bool {
    let text = text.as_bytes();
    let start = match text {
        [b'{', ..] => Some(0),
        _ => memmem::find(text, b"\n{").map(|at| at + 1),
    };
    let first = start.and_then(|start| text.get(start..)).unwrap_or_default();
    let end = memchr(b'\n', first).unwrap_or(first.len());
    let first = first.get(..end).unwrap_or_default();
    let has = |text: &[u8]| memmem::find(first, text).is_some();
    has(b"\"onBlobReportMetadata\"") && has(b"\"method\"")
}

/// What an event takes until the end of the file, beside its lists and texts: of a test that began, the test.
const EVENT: usize = 512;

/// Converts the events to the JSON reporter's model. The second value is the line where the file is cut off.
pub(super) fn read(input: &Input<'_>) -> Result<(File, Option<usize>), ReadError> {
    let mut file = File::default();
    let mut results: HashMap<String, Test> = HashMap::new();
    let mut projects: Vec<Project> = Vec::new();
    let (mut shard, mut ended) = (None, false);
    let mut lines = input.text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        memory::hold(EVENT);
        memory::check(input.name)?;
        let event = match json::first_value::<Event>(line) {
            Ok(event) => event,
            // The last line may be cut off. Later versions may have other events.
            Err(_) if lines.peek().is_none() || !is_known_event(line) => continue,
            Err(error) => return Err(input.broken(number + 1, "Playwright blob", error.to_string())),
        };
        let params = event.params;
        match event.method.as_deref() {
            Some("onBlobReportMetadata") => shard = params.shard,
            Some("onConfigure") => file.config = params.config,
            Some("onProject") => projects.extend(params.project),
            Some("onTestBegin") => {
                let test = results.entry(params.test_id.0.unwrap_or_default()).or_default();
                if test.results.len() < limits::ATTEMPTS {
                    test.results.extend(params.result);
                }
            }
            Some("onTestEnd") => {
                let end = params.test.unwrap_or_default();
                let test = results.entry(end.test_id.0.unwrap_or_default()).or_default();
                test.expected_status = end.expected_status;
                test.timeout = end.timeout;
                let Some(mut result) = params.result else { continue };
                if let Some(started) = test.results.iter_mut().find(|started| started.id == result.id) {
                    result.start_time.0 = started.start_time.take().or(result.start_time.0);
                    // The JSON reporter writes the first error twice, once in parts. A blob has only the parts.
                    result.error = result.errors.first().cloned();
                    *started = result;
                }
            }
            Some("onError") => file.errors.extend(params.error),
            Some("onEnd") => {
                ended = true;
                file.stats = params.result.map(|result| Stats {
                    unexpected: json::Lenient(None),
                    status: result.status,
                    start_time: result.start_time,
                    duration: result.duration,
                });
            }
            _ => {}
        }
    }
    for project in projects {
        let name = project.name.0.unwrap_or_default();
        let suites = project.suites.0.into_iter();
        file.suites
            .extend(suites.map(|suite| suite.into_suite(&name, &mut results, 0)));
    }
    if shard.is_some() {
        let config = file.config.get_or_insert_default();
        config.shard = config.shard.take().or(shard);
    }
    let cut_at = (!ended).then(|| input.text.lines().count());
    Ok((file, cut_at))
}

/// Whether a line is an event that this reader uses.
fn is_known_event(line: &str) -> bool {
    let method = json::first_value::<Method>(line)
        .ok()
        .and_then(|event| event.method.0);
    matches!(
        method.as_deref(),
        Some("onConfigure" | "onProject" | "onTestBegin" | "onTestEnd" | "onError" | "onEnd")
    )
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Method {
    method: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    method: json::Text,
    params: Params,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Params {
    /// The shard. Later versions also write it into the configuration.
    shard: Option<Shard>,
    config: Option<Config>,
    project: Option<Project>,
    test_id: json::Text,
    test: Option<EndedTest>,
    result: Option<TestResult>,
    error: Option<Error>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EndedTest {
    test_id: json::Text,
    expected_status: json::Text,
    timeout: json::Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Project {
    name: json::Text,
    suites: json::List<Entry>,
}

/// A file, a group or a test. Only a test has an id.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    test_id: json::Text,
    title: json::Text,
    location: Option<SourceLocation>,
    entries: json::List<Entry>,
}

impl Entry {
    /// Converts a file or a group to a suite of the JSON reporter. The JSON parser and [`limits::DEPTH`] bound the
    /// depth.
    fn into_suite(self, project: &str, results: &mut HashMap<String, Test>, depth: usize) -> Suite {
        let mut suite = Suite {
            title: self.title,
            file: self.location.map(|location| location.file).unwrap_or_default(),
            ..Suite::default()
        };
        for entry in self.entries.0 {
            if !memory::charge(project.len()) {
                break;
            }
            match &*entry.test_id {
                Some(id) => {
                    let mut test = results.remove(id).unwrap_or_default();
                    test.project_name.0 = Some(project.to_owned());
                    suite.specs.push(Spec {
                        title: entry.title,
                        file: entry.location.map(|location| location.file).unwrap_or_default(),
                        tests: json::Lenient(vec![test]),
                    });
                }
                None if depth < limits::DEPTH => {
                    suite.suites.push(entry.into_suite(project, results, depth + 1))
                }
                None => {}
            }
        }
        suite
    }
}
