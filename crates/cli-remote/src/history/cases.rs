//! Test results that a CI service itself keeps, as JUnit XML.

use assay_reports::SourceFile;
use serde_json::Value;

use super::{
    HostError, Project,
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

/// Where a service keeps results of tests.
#[derive(Debug, Clone)]
pub struct Cases {
    pub(super) path: String,
    /// The place of the list of suites, or of results without suites.
    pub(super) suites: &'static str,
    /// The place of the results in a suite.
    pub(super) cases: &'static str,
    /// The only suite that is the job's.
    pub(super) of_job: Option<String>,
}

impl Cases {
    /// The report of the service. None if it has no results.
    pub fn report(&self, project: &Project) -> Result<Option<SourceFile>, HostError> {
        let mut suites = String::new();
        let listed = project.each(&self.path, self.suites, |suite| {
            if self.cases.is_empty() {
                suites += &format!("<testsuite>{}</testsuite>", case(suite));
            } else if self.of_job.is_none() || self.of_job == text(suite, "/name") {
                // The job's name is no part of the names of its tests.
                let name = text(suite, "/name").filter(|_| self.of_job.is_none());
                let [name, start] = [("name", name), ("timestamp", text(suite, "/timestamp"))].map(attribute);
                let cases: String = list(suite, self.cases).map(case).collect();
                suites += &format!("<testsuite{name}{start}>{cases}</testsuite>");
            }
            true
        });
        match listed {
            Err(error) if !error.is_gone() => return Err(error),
            Err(_) | Ok(()) => {}
        }
        let report = suites.contains("<testcase").then(|| SourceFile {
            name: "results-of-ci.xml".to_owned(),
            bytes: format!("<testsuites>{suites}</testsuites>").into_bytes(),
            modified: None,
        });
        Ok(report)
    }
}

/// A result of a test.
fn case(case: &Value) -> String {
    let find = |places: &[&str]| places.iter().find_map(|place| text(case, place));
    let attributes = ATTRIBUTES.map(|(name, places)| {
        attribute((
            name,
            find(places).filter(|value| !value.is_empty() || name == "name"),
        ))
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
            format!("<error{}/>", attribute(("message", Some(message))))
        }
    };
    format!("<testcase{}>{outcome}</testcase>", attributes.concat())
}

fn attribute((name, value): (&str, Option<String>)) -> String {
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
