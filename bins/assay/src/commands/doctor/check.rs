//! One thing that was looked at.

use anstyle::Style;
use serde::Serialize;

use crate::table::Tone;

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Status {
    /// As it should be.
    Ok,
    /// It works, and somebody should look at it.
    Warn,
    /// It does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Check {
    /// What was looked at: a word of a fixed set.
    check: &'static str,
    pub(super) status: Status,
    /// What was found, a sentence each.
    found: Vec<String>,
    /// What to do next, a command or a sentence each.
    advice: Vec<String>,
}

impl Check {
    /// A thing that is as it should be.
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            status: Status::Ok,
            found: vec![found.into()],
            advice: Vec::new(),
        }
    }

    /// A thing that somebody should look at.
    pub(super) fn warn(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::ok(check, found).worse(Status::Warn, None, advice)
    }

    /// A thing that does not work.
    pub(super) fn fail(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::ok(check, found).worse(Status::Fail, None, advice)
    }

    /// The same with another finding, which is at least so bad.
    #[must_use]
    pub(super) fn worse(
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

    /// What could not be asked, and why.
    pub(super) fn unanswered(check: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut reasons: Vec<_> = chain(error).map(|error| one_line(&error.to_string())).collect();
        // Some errors say what their cause says.
        reasons.dedup();
        Self::fail(check, reasons.join(": "), "")
    }

    /// The check in lines: status, what was looked at, what was found, then what to do.
    pub(super) fn lines(&self) -> String {
        let (word, tone) = match self.status {
            Status::Ok => ("ok  ", Tone::Good),
            Status::Warn => ("warn", Tone::Doubtful),
            Status::Fail => ("FAIL", Tone::Bad),
        };
        let bold = Style::new().bold();
        let mut text = String::new();
        for (place, found) in self.found.iter().enumerate() {
            if place == 0 {
                text += &format!("{}  {bold}{:10}{bold:#}  {found}\n", tone.paint(word), self.check);
            } else {
                text += &format!("{:18}{found}\n", "");
            }
        }
        for advice in &self.advice {
            text += &format!("{:18}-> {advice}\n", "");
        }
        text
    }
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
