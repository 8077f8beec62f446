//! `GET /projects/{projectId}/runs`.

use serde_json::{Value, json};

use super::ProjectChecks;
use crate::{
    comparison::Comparison,
    http::{escape, form},
    oracle::{self, Outcome},
    world::Run,
};

/// The filters of a request.
#[derive(Clone, Default)]
struct Filter {
    days: Option<i64>,
    branch: Option<String>,
    sha: Option<String>,
    status: Option<&'static str>,
}

impl Filter {
    fn query(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.days.map(|days| format!("days={days}")));
        parts.extend(
            self.branch
                .as_ref()
                .map(|branch| format!("branch={}", escape(branch))),
        );
        parts.extend(self.sha.as_ref().map(|sha| format!("sha={sha}")));
        parts.extend(self.status.map(|status| format!("status={status}")));
        parts.join("&")
    }

    fn admits(&self, run: &Run) -> bool {
        let branch = self
            .branch
            .as_ref()
            .is_none_or(|branch| run.branch.as_ref() == Some(branch));
        let sha = self.sha.as_ref().is_none_or(|sha| {
            run.revisions()
                .iter()
                .any(|revision| revision.to_lowercase().starts_with(&sha.to_lowercase()))
        });
        let status = match self.status {
            None => true,
            Some("passed") => oracle::outcome(run) == Outcome::Passed,
            Some(_) => oracle::outcome(run) == Outcome::Failed,
        };
        branch && sha && status
    }
}

/// Checks filters alone and together. Each list is walked from end to end and back.
pub fn runs(comparison: &mut Comparison, checks: &ProjectChecks<'_>) {
    let all = oracle::visible(checks.project, checks.organization.plan, checks.now);
    let mut filters = vec![Filter::default()];
    filters.extend(checks.periods().into_iter().map(|days| Filter {
        days: Some(days),
        ..Filter::default()
    }));
    let longest = checks.periods().last().copied();
    for status in ["passed", "failed"] {
        filters.push(Filter {
            status: Some(status),
            days: longest,
            ..Filter::default()
        });
    }
    let mut branches: Vec<Option<String>> = all.iter().map(|run| run.branch.clone()).collect();
    branches.sort();
    branches.dedup();
    branches.push(Some("no such branch".to_owned()));
    branches.push(Some(checks.project.stable.to_uppercase()));
    for branch in branches.into_iter().flatten() {
        filters.push(Filter {
            branch: Some(branch.clone()),
            days: longest,
            ..Filter::default()
        });
        filters.push(Filter {
            branch: Some(branch),
            status: Some("failed"),
            ..Filter::default()
        });
    }
    for run in all.iter().step_by(5) {
        for revision in run.revisions() {
            for sha in [
                revision.to_owned(),
                revision[..4].to_owned(),
                revision[..9].to_uppercase(),
            ] {
                filters.push(Filter {
                    sha: Some(sha),
                    days: longest,
                    ..Filter::default()
                });
            }
        }
    }
    filters.push(Filter {
        sha: Some("0000".to_owned()),
        ..Filter::default()
    });
    for filter in &filters {
        walk(comparison, checks, filter, 10);
    }
    walk(comparison, checks, &filters[0], 25);
    walk(
        comparison,
        checks,
        &Filter {
            days: longest,
            ..Filter::default()
        },
        50,
    );
    elsewhere(comparison, checks, &all);
}

/// A cursor is only a position. It works with other filters, too.
fn elsewhere(comparison: &mut Comparison, checks: &ProjectChecks<'_>, all: &[&Run]) {
    let base = checks.path(&["runs"]);
    let recent = oracle::within(checks.project, 30, checks.now);
    let first = checks.get(comparison, &base);
    if let Some(cursor) = first["nextCursor"].as_str() {
        let filter = Filter {
            status: Some("failed"),
            ..Filter::default()
        };
        let older: Vec<&str> = recent
            .iter()
            .skip(10)
            .filter(|run| filter.admits(run))
            .map(|run| run.id.as_str())
            .take(25)
            .collect();
        let path = format!("{base}?status=failed&perPage=25&cursor={cursor}");
        let answer = checks.get(comparison, &path);
        comparison.same(&format!("GET {path}: ids"), &ids(&answer), &older);
        let count = recent.iter().filter(|run| filter.admits(run)).count();
        comparison.same(
            &format!("GET {path}: total"),
            &answer["total"].as_u64(),
            &Some(count as u64),
        );
    }
    // Forms write a space as a plus sign.
    for branch in all
        .iter()
        .filter_map(|run| run.branch.as_ref())
        .filter(|branch| branch.contains(' '))
        .take(1)
    {
        let path = format!("{base}?perPage=50&branch={}", form(branch));
        let answer = checks.get(comparison, &path);
        let wanted: Vec<&str> = recent
            .iter()
            .filter(|run| run.branch.as_ref() == Some(branch))
            .map(|run| run.id.as_str())
            .collect();
        comparison.same(&format!("GET {path}: ids"), &ids(&answer), &wanted);
    }
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["runs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| row["id"].as_str())
        .collect()
}

fn walk(comparison: &mut Comparison, checks: &ProjectChecks<'_>, filter: &Filter, per_page: usize) {
    let expected: Vec<&Run> = oracle::within(checks.project, filter.days.unwrap_or(30), checks.now)
        .into_iter()
        .filter(|run| filter.admits(run))
        .collect();
    let pages: Vec<&[&Run]> = if expected.is_empty() {
        vec![&[]]
    } else {
        expected.chunks(per_page).collect()
    };
    let base = checks.path(&["runs"]);
    let first = format!("{base}?{}&perPage={per_page}", filter.query());
    let mut path = first.clone();
    let mut backwards = None;
    for (number, page) in pages.iter().enumerate() {
        let answer = checks.get_window(comparison, &path, filter.days.unwrap_or(30));
        let rows: Vec<Value> = page.iter().map(|run| oracle::run_row(run)).collect();
        comparison.matches(
            &format!("GET {path}"),
            &answer,
            &json!({
                "project": {"id": checks.project.id, "name": checks.project.name},
                "stableBranch": checks.project.stable,
                "runs": rows,
                "total": expected.len(),
            }),
        );
        let last = number + 1 == pages.len();
        comparison.holds(answer["nextCursor"].is_null() == last, || {
            format!("GET {path}: nextCursor {}", answer["nextCursor"])
        });
        comparison.holds(answer["prevCursor"].is_null() == (number == 0), || {
            format!("GET {path}: prevCursor {}", answer["prevCursor"])
        });
        for cursor in [&answer["nextCursor"], &answer["prevCursor"]] {
            if let Some(text) = cursor.as_str() {
                let shaped = (1..=64).contains(&text.len())
                    && text
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                comparison.holds(shaped, || {
                    format!("GET {path}: the cursor {text:?} has another shape")
                });
            }
        }
        backwards = answer["prevCursor"].as_str().map(str::to_owned);
        let Some(next) = answer["nextCursor"].as_str() else {
            break;
        };
        path = format!("{first}&cursor={next}");
    }
    // The way back is also newest first.
    for page in pages.iter().rev().skip(1) {
        let Some(cursor) = backwards else { break };
        let path = format!("{first}&cursor={cursor}&direction=prev");
        let answer = checks.get(comparison, &path);
        let expected: Vec<&str> = page.iter().map(|run| run.id.as_str()).collect();
        comparison.same(&format!("GET {path}: ids"), &ids(&answer), &expected);
        comparison.holds(answer["nextCursor"].is_string(), || {
            format!("GET {path}: older runs are known, and no cursor leads there")
        });
        backwards = answer["prevCursor"].as_str().map(str::to_owned);
    }
}
