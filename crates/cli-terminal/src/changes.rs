//! The verdicts that a report changed, in words.

use assay_domain::{
    recording::{VerdictChange, VerdictChanges},
    verdict::VerdictStatus,
};

use crate::output;

/// Most changed verdicts that are shown to people.
const MOST_SHOWN: usize = 20;

/// The verdicts that changed: a sentence and a table. Tests that now have enough runs, and are healthy, are only
/// counted.
pub fn in_words(changes: &VerdictChanges) -> String {
    let news: Vec<_> = changes.listed.iter().filter(|change| is_news(change)).collect();
    if changes.total == 0 {
        return String::new();
    }
    let all: Vec<_> = changes.listed.iter().collect();
    let rows = news.iter().take(MOST_SHOWN).map(|change| {
        vec![
            change.to.to_string(),
            change.from.to_string(),
            change.test_name.clone(),
            change.file_path.clone().unwrap_or_default(),
        ]
    });
    let row_count = rows.len();
    let head = format!(
        "\n{} changed{}",
        output::count(changes.total, "verdict"),
        if row_count == 0 {
            String::new()
        } else {
            format!(": {}\n", sentence(&all))
        }
    );
    let table = match row_count {
        0 => String::new(),
        _ => output::table(&["VERDICT", "BEFORE", "TEST", "FILE"], rows),
    };
    let rest = changes
        .total
        .saturating_sub(u64::try_from(row_count).unwrap_or(u64::MAX));
    let rest = match (row_count, rest) {
        (0, _) => " (tests that now have enough runs, and are healthy)".to_owned(),
        (_, 0) => String::new(),
        (_, rest) => format!("and {rest} more; --json lists them"),
    };
    format!("{head}{table}{rest}")
}

/// Whether it is more than that a test now has enough runs, and is healthy.
fn is_news(change: &VerdictChange) -> bool {
    (change.from, change.to) != (VerdictStatus::InsufficientData, VerdictStatus::Healthy)
}

/// `2 tests became flaky, 1 is broken`.
fn sentence(changes: &[&VerdictChange]) -> String {
    let groups = [
        (VerdictStatus::Broken, true, "is broken", "are broken"),
        (VerdictStatus::Flaky, true, "became flaky", "became flaky"),
        (VerdictStatus::Failing, true, "is failing", "are failing"),
        (
            VerdictStatus::Healthy,
            true,
            "is healthy again",
            "are healthy again",
        ),
        (
            VerdictStatus::InsufficientData,
            true,
            "has too few runs",
            "have too few runs",
        ),
        (
            VerdictStatus::Healthy,
            false,
            "now has enough runs and is healthy",
            "now have enough runs and are healthy",
        ),
    ];
    let mut parts: Vec<String> = Vec::new();
    for (status, is_news, one, several) in groups {
        let is_of = |change: &&&VerdictChange| change.to == status && self::is_news(change) == is_news;
        let count = changes.iter().filter(is_of).count();
        let noun = match (parts.is_empty(), count) {
            (_, 0) => continue,
            (true, 1) => " test",
            (true, _) => " tests",
            (false, _) => "",
        };
        parts.push(format!(
            "{count}{noun} {}",
            if count == 1 { one } else { several }
        ));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_by_their_verdict() {
        use VerdictStatus::{Broken, Flaky, Healthy, InsufficientData};
        let change = |from, to| VerdictChange {
            test_name: "adds".into(),
            file_path: None,
            from,
            to,
        };
        let statuses = [
            change(Healthy, Flaky),
            change(Healthy, Broken),
            change(Healthy, Flaky),
            change(Flaky, Healthy),
            change(Healthy, InsufficientData),
            change(InsufficientData, Healthy),
        ];
        let sentence_of =
            |places: &[usize]| sentence(&places.iter().map(|place| &statuses[*place]).collect::<Vec<_>>());
        assert_eq!(sentence_of(&[0, 1, 2]), "1 test is broken, 2 became flaky");
        assert_eq!(
            sentence_of(&[0, 2, 3]),
            "2 tests became flaky, 1 is healthy again"
        );
        assert_eq!(sentence_of(&[3]), "1 test is healthy again");
        assert_eq!(
            sentence_of(&[4, 5]),
            "1 test has too few runs, 1 now has enough runs and is healthy"
        );
        assert_eq!(sentence_of(&[]), "");
    }
}
