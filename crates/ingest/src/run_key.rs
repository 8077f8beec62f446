//! The run key, which all parts of one run share.

use crate::{
    bounds::TooLarge,
    choice::{Chooser, Origin},
    text::storable_text,
};

/// Longest run key that can be stored, in characters.
pub(crate) const LONGEST_KEY: usize = 1_000;

/// The run key: the flag's, else CI's, else the report's, else a hash of the content, which identifies the same bytes.
/// The suite is part of it, because several suites of one build are separate runs. Shards of several jobs may share a
/// run key from the user. `suite` is therefore none under such a key, unless the user also named the suite.
pub(crate) fn resolve(
    flag: Option<&str>,
    variables: Option<&str>,
    report: Option<&str>,
    content: &str,
    suite: Option<&str>,
    chooser: &mut Chooser,
) -> Result<String, TooLarge> {
    let storable_key = |key: Option<&str>| key.and_then(|key| storable_text(key, usize::MAX));
    let key = chooser
        .first(
            "run key",
            [
                (Origin::Flag, storable_key(flag)),
                (Origin::Variables, storable_key(variables)),
                (Origin::Report, storable_key(report)),
                (Origin::Content, Some(content.to_owned())),
            ],
        )
        .unwrap_or_default();
    let key = of_suite(&plain(&key), suite);
    match key.chars().count() {
        length if length > LONGEST_KEY => Err(TooLarge::RunKey {
            length,
            limit: LONGEST_KEY,
        }),
        _ => Ok(key),
    }
}

/// The key of a suite of a build. No part contains a tab, so different pairs give different keys.
pub(crate) fn of_suite(build: &str, suite: Option<&str>) -> String {
    match suite {
        Some(suite) => format!("{build}\t{}", plain(suite)),
        None => build.to_owned(),
    }
}

fn plain(text: &str) -> String {
    text.replace(['\t', '\n'], " ")
}

/// The key of content: with the branch and the commit, because two commits may have equal reports.
pub(crate) fn of_content(content: &str, code: [Option<&str>; 2]) -> String {
    let code = code.into_iter().flatten().map(str::to_owned);
    let parts: Vec<String> = [content.to_owned()].into_iter().chain(code).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suite_of_a_build_is_a_separate_run() {
        let key = |suite| {
            resolve(
                None,
                Some("github-actions/1"),
                None,
                "content:0",
                suite,
                &mut Chooser::default(),
            )
        };
        assert_eq!(key(None).unwrap(), "github-actions/1");
        assert_eq!(key(Some("e2e")).unwrap(), "github-actions/1\te2e");
        assert_ne!(key(Some("e2e")).unwrap(), key(Some("unit")).unwrap());
    }

    #[test]
    fn without_other_sources_the_run_key_is_the_content() {
        let mut chooser = Chooser::default();
        assert_eq!(
            resolve(None, None, None, "content:0", None, &mut chooser).unwrap(),
            "content:0"
        );
        assert_eq!(chooser.choices[0].from, Origin::Content);
    }

    #[test]
    fn an_over_long_run_key_is_refused() {
        let key = "k".repeat(1_001);
        let refused = resolve(Some(&key), None, None, "", None, &mut Chooser::default());
        assert_eq!(
            refused,
            Err(TooLarge::RunKey {
                length: 1_001,
                limit: 1_000
            })
        );
    }
}
