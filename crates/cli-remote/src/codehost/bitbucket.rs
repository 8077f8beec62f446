//! A report with annotations on a commit of Bitbucket Cloud, by the proxy of Bitbucket Pipelines that signs requests.
//!
//! The proxy takes requests for `http://`, which the HTTP client of this program does not send through a proxy. `curl`,
//! which the documentation of the proxy uses, does.

use std::{process::Command, time::Instant};

use anyhow::Context as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    codehost::{
        buildkite::output_of,
        comment::{Annotation, Comment},
        post::Outcome,
    },
    server::http::until,
};

/// The proxy beside each step.
const PROXY: &str = "http://localhost:29418";
const API: &str = "http://api.bitbucket.org/2.0";
/// Most characters of a report's details and of an annotation's details.
const LONGEST_DETAILS: usize = 2_000;
/// Most characters of an annotation's summary.
const LONGEST_SUMMARY: usize = 450;
/// A report of this project on the commit of the job.
pub(crate) struct Report {
    proxy: String,
    url: String,
    /// When every request ends.
    deadline: Instant,
}

impl Report {
    /// None if the variables name no commit.
    pub(crate) fn of_job(
        variable: &dyn Fn(&str) -> Option<String>,
        comment: &Comment,
        deadline: Instant,
    ) -> Option<Self> {
        let is_name = |name: &String| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.{}".contains(&byte);
            !name.is_empty() && name != ".." && name.bytes().all(is_allowed)
        };
        let part = |name: &str| variable(name).filter(is_name);
        let workspace = part("BITBUCKET_WORKSPACE")?;
        let repository = part("BITBUCKET_REPO_SLUG")?;
        let commit = part("BITBUCKET_COMMIT")?;
        let project = comment.project();
        Some(Self {
            deadline,
            proxy: variable("ASSAY_BITBUCKET_PROXY").unwrap_or_else(|| PROXY.to_owned()),
            url: format!(
                "{API}/repositories/{workspace}/{repository}/commit/{commit}/reports/assay-{project}"
            ),
        })
    }

    /// Replaces the report. An earlier one is deleted first, because its annotations would stay.
    pub(crate) fn write(&self, comment: &Comment, with_annotations: bool) -> anyhow::Result<Outcome> {
        let deleted = self.send("DELETE", &self.url, None)?;
        if deleted != 404 {
            accepted(deleted)?;
        }
        accepted(self.send("PUT", &self.url, Some(&content(comment)))?)?;
        let annotations: Vec<Value> = comment.annotations.iter().map(annotation).collect();
        if with_annotations && !annotations.is_empty() {
            let url = format!("{}/annotations", self.url);
            accepted(self.send("POST", &url, Some(&Value::from(annotations)))?)?;
        }
        Ok(if deleted == 404 {
            Outcome::Created
        } else {
            Outcome::Edited
        })
    }

    /// The status of the answer.
    fn send(&self, method: &str, url: &str, body: Option<&Value>) -> anyhow::Result<u16> {
        // Without a limit, curl would wait for ever.
        let within = until(self.deadline).as_secs().max(1).to_string();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--globoff", "--max-time", &within])
            .args(["--noproxy", "", "--proxy", &self.proxy, "--request", method])
            .args(["--header", "Content-Type: application/json"])
            .args(["--output", "/dev/null", "--write-out", "%{http_code}"])
            .args(["--data-binary", "@-", url]);
        let body = body.map_or_else(String::new, Value::to_string);
        let status = output_of(&mut curl, &body).context("curl, by the proxy of Bitbucket Pipelines")?;
        status.trim().parse().context("the status of Bitbucket's answer")
    }
}

fn accepted(status: u16) -> anyhow::Result<()> {
    anyhow::ensure!((200..300).contains(&status), "Bitbucket answered {status}");
    Ok(())
}

fn content(comment: &Comment) -> Value {
    let result = match (comment.clean, comment.action.as_str()) {
        (true, _) | (false, "pass") => "PASSED",
        (false, "block") => "FAILED",
        (false, _) => "PENDING",
    };
    let number = |title: &str, value: u32| json!({"title": title, "type": "NUMBER", "value": value});
    let counts = comment.counts;
    let mut content = json!({
        "title": "Assay",
        "details": cut(&comment.headline, LONGEST_DETAILS),
        "report_type": "TEST",
        "reporter": "Assay",
        "result": result,
        "data": [
            number("Tests", counts.total),
            number("Failed", counts.failed),
            number("Passed on retry", counts.recovered),
            number("Skipped", counts.skipped),
        ],
    });
    if let (Some(url), Some(fields)) = (&comment.url, content.as_object_mut()) {
        fields.insert("link".to_owned(), json!(url));
    }
    content
}

fn annotation(of: &Annotation) -> Value {
    let mut hash = Sha256::new();
    for part in [&of.run_id, of.file.as_ref().unwrap_or(&String::new()), &of.title] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let id: String = hash
        .finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut annotation = json!({
        "external_id": format!("assay-{id}"),
        "annotation_type": "BUG",
        "summary": cut(&of.title, LONGEST_SUMMARY),
        "details": cut(&of.message, LONGEST_DETAILS),
        "severity": if of.is_mine { "HIGH" } else { "LOW" },
        "result": if of.is_mine { "FAILED" } else { "IGNORED" },
    });
    if let (Some(file), Some(fields)) = (&of.file, annotation.as_object_mut()) {
        fields.insert("path".to_owned(), json!(file));
        if let Some(line) = of.line {
            fields.insert("line".to_owned(), json!(line));
        }
    }
    annotation
}

/// The beginning of a text. Bitbucket refuses an empty one.
fn cut(text: &str, most: usize) -> String {
    let text: String = text.chars().take(most).collect();
    if text.trim().is_empty() {
        "-".to_owned()
    } else {
        text
    }
}
