//! The title of a signature: one line that identifies the error for a person.

use std::sync::LazyLock;

use regex::Regex;

use crate::{normal::NormalForm, pattern::pattern};

/// Longest title in characters.
const TITLE_CHARS: usize = 120;

static PLACEHOLDERS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"<(?:duration|email|host|line|n|path|query|size|time|token|uuid|value)>"));
static RUNS: LazyLock<Regex> = LazyLock::new(|| pattern(r"…(?:[.,:_-]?…)+"));
/// The expected value of a bare matcher.
static EXPECTED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\bExpected(?: [a-z]{1,20}){0,2}: (.{1,300}?)(?: (?:Received|Actual|Timeout|Locator)\b|$)")
});
/// A first line with only a matcher.
static BARE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:\w*Error: )?(expect\S*\([^ ]*\)\S*)(?: //.*| failed)?$"));

/// `matcher · locator` if there is a locator, a bare matcher with its expected value, else the first line.
pub(crate) fn of(form: &NormalForm) -> String {
    let title = match (&form.locator, BARE.captures(&form.first_line)) {
        (Some(locator), _) if !form.origin.is_empty() && (form.by_matcher || !locator.is_empty()) => {
            format!("{} · {locator}", form.origin)
        }
        (_, Some(bare)) => {
            let matcher = bare
                .get(1)
                .map_or(form.first_line.as_str(), |group| group.as_str());
            match EXPECTED.captures(&form.text).and_then(|group| group.get(1)) {
                Some(expected) => format!("{matcher} · {}", expected.as_str()),
                None => match form
                    .text
                    .get(form.first_line.len()..)
                    .map(str::trim)
                    .unwrap_or_default()
                {
                    "" => form.first_line.clone(),
                    // A diff: without the actual lines, the rest is the expected value.
                    expected => format!("{matcher} · {expected}"),
                },
            }
        }
        (_, None) => form.first_line.clone(),
    };
    let title = match &form.frame {
        Some(frame) => format!("{title} · {frame}"),
        None => title,
    };
    let title = PLACEHOLDERS.replace_all(&title, "…");
    let title = RUNS.replace_all(title.trim(), "…");
    if title.chars().count() <= TITLE_CHARS {
        return title.into_owned();
    }
    let head: String = title.chars().take(TITLE_CHARS - 1).collect();
    format!("{}…", head.trim_end().trim_end_matches('…'))
}
