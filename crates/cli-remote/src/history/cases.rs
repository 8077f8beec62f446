//! Test results that a CI service itself keeps, as JUnit XML.

use std::fmt::Write as _;

use serde_json::Value;

use super::{HostError, Requests, list, text};

/// The fields of a result, by the services' names: class, file and seconds, each with its attribute, then the status and
/// the texts of a failure.
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
    pub(super) fn report(&self, requests: &Requests) -> Result<Option<Vec<u8>>, HostError> {
        let (mut xml, mut has_case) = ("<testsuites>".to_owned(), false);
        let listed = requests.each(&self.path, self.suites, |suite| {
            let name = text(suite, "/name").filter(|_| !self.cases.is_empty());
            if self.of_job.is_some() && self.of_job != name {
                return true;
            }
            // The job's name is no part of the names of its tests.
            let name = name.filter(|_| self.of_job.is_none());
            let start = text(suite, "/timestamp").filter(|_| !self.cases.is_empty());
            let start = start.map_or(String::new(), |start| attribute("timestamp", &start));
            xml.push_str(&format!(
                "<testsuite{}{start}>",
                attribute("name", &name.unwrap_or_default())
            ));
            match self.cases {
                "" => write(suite, &mut xml, &mut has_case),
                cases => list(suite, cases).for_each(|case| write(case, &mut xml, &mut has_case)),
            }
            xml.push_str("</testsuite>");
            true
        });
        match listed {
            Err(error) if !error.is_gone() => return Err(error),
            Err(_) | Ok(()) => {}
        }
        xml.push_str("</testsuites>");
        Ok(has_case.then(|| xml.into_bytes()))
    }
}

/// Writes a result of a test.
fn write(case: &Value, xml: &mut String, has_case: &mut bool) {
    *has_case = true;
    xml.push_str("<testcase");
    for (name, places) in ATTRIBUTES {
        let value = places.iter().find_map(|place| text(case, place));
        let value = value.filter(|value| !value.is_empty() || name == "name");
        xml.extend(value.map(|value| attribute(name, &value)));
    }
    let status = STATUSES.iter().find_map(|place| text(case, place));
    let status = status.unwrap_or_default().to_ascii_lowercase();
    // Writing to a string cannot fail.
    let _ = match status.as_str() {
        "success" | "passed" | "fixed" => write!(xml, "/>"),
        "skipped" => write!(xml, "><skipped/></testcase>"),
        "failure" | "failed" | "regression" | "error" => {
            let errors: Vec<_> = ERRORS.iter().filter_map(|place| text(case, place)).collect();
            let errors = escaped(&errors.join("\n"));
            write!(xml, "><failure>{errors}</failure></testcase>")
        }
        // An unknown word is no pass.
        other => {
            let message = attribute("message", &format!("the unknown result {other:?}"));
            write!(xml, "><error{message}/></testcase>")
        }
    };
}

fn attribute(name: &str, value: &str) -> String {
    format!(" {name}=\"{}\"", escaped(value))
}

/// A text in XML, without the characters that XML cannot hold.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' | ' '..='\u{fffd}' | '\u{10000}'.. => out.push(c),
            _ => {}
        }
    }
    out
}
