//! Test results that a CI service itself keeps, as JUnit XML.

use assay_reports::SourceFile;
use serde_json::Value;

use super::{
    HostError, PastReport, Project,
    service::{list, text},
};

/// The attributes of a result, each with its names at the services.
const ATTRIBUTES: [(&str, &[&str]); 4] = [
    ("name", &["/name"]),
    ("classname", &["/classname", "/className"]),
    ("file", &["/file"]),
    ("time", &["/run_time", "/execution_time", "/duration"]),
];
const STATUSES: [&str; 2] = ["/result", "/status"];
const ERRORS: [&str; 6] = [
    "/message",
    "/system_output",
    "/system_output/message",
    "/stack_trace",
    "/errorDetails",
    "/errorStackTrace",
];

impl Project {
    /// The report of the results that the service keeps of a job. None if it has no results.
    pub fn results(&self, past: &PastReport) -> Result<Option<SourceFile>, HostError> {
        let Some(path) = &past.results else {
            return Ok(None);
        };
        let (place, cases) = self.service.results;
        // GitLab keeps the results of a pipeline, in suites by the names of its jobs. No other service has both.
        let job = past.ci.job.as_deref().filter(|_| !cases.is_empty());
        let mut suites = String::new();
        let listed = self.each(path, place, |suite| {
            let name = text(suite, "/name");
            if cases.is_empty() {
                suites += &format!("<testsuite>{}</testsuite>", case(suite));
            } else if job.is_none() || job == name.as_deref() {
                // The job's name is no part of the names of its tests.
                let name = attribute("name", name.filter(|_| job.is_none()));
                let start = attribute("timestamp", text(suite, "/timestamp"));
                let cases: String = list(suite, cases).map(case).collect();
                suites += &format!("<testsuite{name}{start}>{cases}</testsuite>");
            }
            true
        });
        match listed {
            Err(error) if !error.is_gone() => return Err(error),
            Err(_) | Ok(()) => {}
        }
        Ok(suites.contains("<testcase").then(|| SourceFile {
            name: "results-of-ci.xml".to_owned(),
            bytes: format!("<testsuites>{suites}</testsuites>").into_bytes(),
            modified: None,
        }))
    }
}

/// A result of a test.
fn case(case: &Value) -> String {
    let find = |places: &[&str]| places.iter().find_map(|place| text(case, place));
    let attributes = ATTRIBUTES.map(|(name, places)| {
        let value = find(places).filter(|value| !value.is_empty() || name == "name");
        attribute(name, value)
    });
    let outcome = match find(&STATUSES).unwrap_or_default().to_ascii_lowercase().as_str() {
        "success" | "passed" | "fixed" => String::new(),
        "skipped" => "<skipped/>".to_owned(),
        "failure" | "failed" | "regression" | "error" => {
            let errors: Vec<_> = ERRORS.iter().filter_map(|place| text(case, place)).collect();
            format!("<failure>{}</failure>", escaped(&errors.join("\n")))
        }
        // An unknown word is no pass.
        other => {
            let message = format!("the unknown result {other:?}");
            format!("<error{}/>", attribute("message", Some(message)))
        }
    };
    format!("<testcase{}>{outcome}</testcase>", attributes.concat())
}

fn attribute(name: &str, value: Option<String>) -> String {
    value.map_or(String::new(), |value| format!(" {name}=\"{}\"", escaped(&value)))
}

/// A text in XML, without the characters that XML cannot hold.
fn escaped(text: &str) -> String {
    let is_allowed = |c: &char| matches!(c, '\n' | '\t' | ' '..='\u{fffd}' | '\u{10000}'..);
    let text: String = text.chars().filter(is_allowed).collect();
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\n', "&#10;")
}
