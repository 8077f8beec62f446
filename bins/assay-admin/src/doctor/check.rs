//! A check of `assay-admin doctor` and its result.

use anstyle::Style;
use assay_cli_terminal::{
    table::{Tone, indented},
    terminal,
};
use serde::Serialize;

/// The maximum number of entries of one kind that a check names.
pub(crate) const NAMED: usize = 10;

/// The status of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Status {
    /// Good.
    Ok,
    /// It works, but needs attention.
    Warn,
    /// It does not work.
    Fail,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Check {
    /// The subject: one of a fixed set of words.
    check: &'static str,
    /// The worst of its findings.
    pub(crate) status: Status,
    /// The findings, one sentence each.
    found: Vec<String>,
    /// The next steps, a command or a sentence each.
    advice: Vec<String>,
}

impl Check {
    /// A check without a fault.
    pub(crate) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            status: Status::Ok,
            found: vec![found.into()],
            advice: Vec::new(),
        }
    }

    /// A check that needs attention.
    pub(crate) fn warn(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::ok(check, found).with_finding(Status::Warn, None, advice)
    }

    /// A check that failed.
    pub(crate) fn fail(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::ok(check, found).with_finding(Status::Fail, None, advice)
    }

    /// Adds a finding; the status becomes the worse of the two.
    #[must_use]
    pub(crate) fn with_finding(
        mut self,
        status: Status,
        found: impl Into<Option<String>>,
        advice: impl Into<String>,
    ) -> Self {
        self.status = self.status.max(status);
        self.found.extend(found.into());
        let advice = advice.into();
        if !advice.is_empty() && !self.advice.contains(&advice) {
            self.advice.push(advice);
        }
        self
    }

    /// Adds the first findings, each with its advice, and the number of the others.
    #[must_use]
    pub(crate) fn with_first<A: Into<String>>(
        mut self,
        status: Status,
        findings: impl IntoIterator<Item = (String, A)>,
        noun: &str,
        advice: &str,
    ) -> Self {
        let mut findings = findings.into_iter();
        for (found, advice) in findings.by_ref().take(NAMED) {
            self = self.with_finding(status, found, advice);
        }
        match findings.count() {
            0 => self,
            more => self.with_finding(status, format!("and {more} more{noun}"), advice),
        }
    }

    /// A check that could not be made, and why.
    pub(crate) fn unanswered(check: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::fail(check, reasons(error), "")
    }

    /// The check as lines: status, subject, findings, then next steps. A next step may be a command to copy, so only
    /// findings are wrapped.
    pub(crate) fn lines(&self) -> String {
        let (word, tone) = match self.status {
            Status::Ok => ("ok  ", Tone::Good),
            Status::Warn => ("warn", Tone::Doubtful),
            Status::Fail => ("FAIL", Tone::Bad),
        };
        let bold = Style::new().bold();
        let mut text = String::new();
        for (place, found) in self.found.iter().enumerate() {
            let found = indented(found, 18, terminal::width());
            match found.get(18..).filter(|_| place == 0) {
                Some(found) => {
                    text += &format!("{}  {bold}{:10}{bold:#}  {found}", tone.paint(word), self.check);
                }
                None => text += &found,
            }
        }
        for advice in &self.advice {
            text += &format!("{:18}-> {advice}\n", "");
        }
        text
    }
}

/// An error and its causes on one line.
pub(crate) fn reasons(error: &(dyn std::error::Error + 'static)) -> String {
    let mut reasons: Vec<_> = chain(error).map(|error| one_line(&error.to_string())).collect();
    // Some errors repeat the message of their cause.
    reasons.dedup();
    reasons.join(": ")
}

/// An error and its causes.
fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
