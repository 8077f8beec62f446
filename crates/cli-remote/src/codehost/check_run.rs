//! A check run on a commit of GitHub, which all jobs of the commit keep up to date.

use serde_json::{Value, json};
use ureq::http::Method;

use crate::codehost::{
    comment::{Annotation, Comment},
    host::{PostError, Requests},
    post::Outcome,
};

/// Most characters of a summary.
const LONGEST: usize = 65_535;

/// Writes the check run of a commit of a repository, unless it has a newer state or says the same.
pub(crate) fn write(
    requests: &Requests,
    repository: &str,
    revision: &str,
    comment: &Comment,
) -> Result<Outcome, PostError> {
    let all = format!("/repos/{repository}/check-runs");
    // The newest check run of each job that the commit has by the name of this program.
    let path = format!(
        "/repos/{repository}/commits/{revision}/check-runs?check_name=Assay&filter=latest&per_page=100"
    );
    let answer = requests.send(Method::GET, &path, None)?;
    let runs = answer.get("check_runs").and_then(Value::as_array);
    let mut runs = runs.ok_or(PostError::Unreadable("list of check runs"))?.iter();
    let is_own = |run: &&Value| run.get("external_id").and_then(Value::as_str) == Some(comment.project());
    let content = content(revision, comment);
    let Some(run) = runs.find(is_own) else {
        requests.send(Method::POST, &all, Some(&content))?;
        return Ok(Outcome::Created);
    };
    let summary = run.pointer("/output/summary").and_then(Value::as_str);
    if let Some(kept) = comment.reason_to_keep(summary.unwrap_or_default()) {
        return Ok(kept);
    }
    let id = run.get("id").and_then(Value::as_u64);
    let id = id.ok_or(PostError::Unreadable("id of the check run"))?;
    requests.send(Method::PATCH, &format!("{all}/{id}"), Some(&content))?;
    Ok(Outcome::Edited)
}

fn content(revision: &str, comment: &Comment) -> Value {
    let conclusion = match (comment.clean, comment.action.as_str()) {
        (true, _) => "success",
        (false, "block") => "failure",
        // A required check passes with `neutral`, and the run may not.
        (false, "rerun") => "action_required",
        (false, _) => "neutral",
    };
    let summary: String = comment.markdown.chars().take(LONGEST).collect();
    let annotations: Vec<Value> = comment.annotations.iter().filter_map(annotation).collect();
    let mut content = json!({
        "name": "Assay",
        "head_sha": revision,
        "external_id": comment.project(),
        "status": "completed",
        "conclusion": conclusion,
        "output": {"title": comment.headline, "summary": summary, "annotations": annotations},
    });
    if let (Some(url), Some(fields)) = (&comment.url, content.as_object_mut()) {
        fields.insert("details_url".to_owned(), json!(url));
    }
    content
}

/// An annotation needs a file and a line.
fn annotation(of: &Annotation) -> Option<Value> {
    let (path, line) = (of.file.as_ref()?, of.line?);
    let level = if of.is_mine { "failure" } else { "notice" };
    Some(json!({
        "path": path, "start_line": line, "end_line": line, "annotation_level": level,
        "title": of.title, "message": of.message,
    }))
}
