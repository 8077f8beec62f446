//! Test results that a CI service itself keeps, as JUnit XML.

use std::fmt::Write as _;

use serde_json::Value;

use super::{HostError, Requests, list, text};

/// Where a service keeps results of tests.
#[derive(Debug, Clone)]
pub struct Cases {
    pub(super) path: String,
    pub(super) form: Form,
}

/// The form of a service's answer.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// Several pages of `items`.
    CircleCi,
    /// `test_suites`, of which this one is the job's.
    GitLab {
        /// The job's name, which is the suite's.
        job: String,
    },
    /// `suites` of all files.
    Jenkins,
}

/// A result of a test.
struct Case<'a> {
    value: &'a Value,
    /// The names of the fields: class, file, seconds, status.
    fields: [&'static str; 4],
    /// The fields with texts of a failure.
    errors: &'static [&'static str],
}

/// The report of the service, as JUnit XML. None if it has no results.
pub fn report(requests: &Requests, cases: &Cases) -> Result<Option<Vec<u8>>, HostError> {
    let mut xml = "<testsuites>".to_owned();
    let mut count = 0_usize;
    let mut suite =
        |name: Option<String>, start: Option<String>, results: &mut dyn Iterator<Item = Case<'_>>| {
            let start = start.map(|start| format!(" timestamp=\"{}\"", escaped(&start)));
            let name = escaped(&name.unwrap_or_default());
            // Writing to a string cannot fail.
            let _ = write!(xml, "<testsuite name=\"{name}\"{}>", start.unwrap_or_default());
            for case in results {
                case.write(&mut xml);
                count += 1;
            }
            xml.push_str("</testsuite>");
        };
    match &cases.form {
        Form::CircleCi => {
            let mut page = Some(cases.path.clone());
            while let Some(path) = page {
                let Some(answer) = requests.find(&path)? else {
                    break;
                };
                suite(
                    None,
                    None,
                    &mut list(&answer, "/items").map(|value| Case {
                        value,
                        fields: ["/classname", "/file", "/run_time", "/result"],
                        errors: &["/message"],
                    }),
                );
                page = text(&answer, "/next_page_token")
                    .map(|token| format!("{}?page-token={token}", cases.path));
            }
        }
        Form::GitLab { job } => {
            let answer = requests.find(&cases.path)?.unwrap_or_default();
            let own =
                list(&answer, "/test_suites").filter(|suite| text(suite, "/name").as_ref() == Some(job));
            for of_job in own {
                suite(
                    None,
                    None,
                    &mut list(of_job, "/test_cases").map(|value| Case {
                        value,
                        fields: ["/classname", "/file", "/execution_time", "/status"],
                        errors: &["/system_output", "/system_output/message", "/stack_trace"],
                    }),
                );
            }
        }
        Form::Jenkins => {
            let answer = requests.find(&cases.path)?.unwrap_or_default();
            for of_file in list(&answer, "/suites") {
                let (name, start) = (text(of_file, "/name"), text(of_file, "/timestamp"));
                suite(
                    name,
                    start,
                    &mut list(of_file, "/cases").map(|value| Case {
                        value,
                        fields: ["/className", "/file", "/duration", "/status"],
                        errors: &["/errorDetails", "/errorStackTrace"],
                    }),
                );
            }
        }
    }
    xml.push_str("</testsuites>");
    Ok((count > 0).then(|| xml.into_bytes()))
}

impl Case<'_> {
    fn write(&self, xml: &mut String) {
        let [class, file, seconds, status] = self.fields;
        let value = |pointer| text(self.value, pointer);
        let attribute = |name: &str, value: Option<String>| {
            let value = value.filter(|value| !value.is_empty());
            value.map_or(String::new(), |value| format!(" {name}=\"{}\"", escaped(&value)))
        };
        let body = match value(status).unwrap_or_default().to_ascii_lowercase().as_str() {
            "success" | "passed" | "fixed" => String::new(),
            "skipped" => "<skipped/>".to_owned(),
            "failure" | "failed" | "regression" | "error" => {
                let errors: Vec<_> = self.errors.iter().filter_map(|name| value(name)).collect();
                format!("<failure>{}</failure>", escaped(&errors.join("\n")))
            }
            // An unknown word is no pass.
            other => format!(
                "<error message=\"{}\"/>",
                escaped(&format!("the unknown result {other:?}"))
            ),
        };
        let _ = write!(
            xml,
            "<testcase name=\"{}\"{}{}{}>{body}</testcase>",
            escaped(&value("/name").unwrap_or_default()),
            attribute("classname", value(class)),
            attribute("file", value(file)),
            attribute("time", value(seconds)),
        );
    }
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
