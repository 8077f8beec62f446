//! A tree of reports whose paths name the run, the branch and the commit.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use assay_cli_terminal::{output, progress::Progress};
use regex::Regex;

use crate::sources::files;

/// The names that a pattern may have.
const NAMES: [&str; 5] = ["run", "branch", "commit", "job", "attempt"];

/// A pattern such as `{branch}/{run}-{commit}/*`. Each part but `{*branch}` matches one folder of a path; the last one may
/// be followed by any others.
#[derive(Debug, Clone)]
pub struct PathPattern(Regex);

/// The values that a path names.
pub type PathValues = BTreeMap<&'static str, String>;

/// The values of a run, and its files.
pub type TreeRun = (PathValues, Vec<PathBuf>);

impl PathPattern {
    /// Parses a pattern. A name takes as little of a folder as the text after it allows, and `{*branch}` as few folders.
    pub fn parse(text: &str) -> Result<Self, String> {
        let pattern = regex::escape(text.trim_matches('/')).replace(r"\{\*branch\}", "(?<branch>.+?)");
        let mut pattern = pattern.replace(r"\*", "[^/]+?");
        for name in NAMES {
            pattern = pattern.replace(&format!("\\{{{name}\\}}"), &format!("(?<{name}>[^/]+?)"));
        }
        let expected = format!("expected {{{}}}, each once", NAMES.join("}, {"));
        if pattern.contains("\\{") {
            return Err(format!("an unknown name in braces; {expected}"));
        }
        let pattern = Regex::new(&format!("^{pattern}(?:/|$)")).map_err(|_| expected)?;
        match pattern.capture_names().any(|name| name == Some("run")) {
            true => Ok(Self(pattern)),
            false => Err("expected {run} in it, such as {branch}/{run}-{commit}".to_owned()),
        }
    }

    /// The values in a path. None if the path does not match.
    fn values(&self, path: &str) -> Option<PathValues> {
        let found = self.0.captures(path)?;
        let value = |name: &'static str| Some((name, found.name(name)?.as_str().to_owned()));
        Some(NAMES.into_iter().filter_map(value).collect())
    }
}

/// The files of each run below a folder, in the order of the runs' names. Notes how many files do not match.
pub fn runs(progress: &dyn Progress, folder: &Path, pattern: &PathPattern) -> anyhow::Result<Vec<TreeRun>> {
    // `run-9` is before `run-10`.
    let mut runs: BTreeMap<(usize, PathValues), Vec<PathBuf>> = BTreeMap::new();
    let mut others = 0_u64;
    for candidate in files::candidates(progress, &[folder.to_owned()], &[])? {
        let below = candidate.path.strip_prefix(folder).unwrap_or(&candidate.path);
        match pattern.values(&below.to_string_lossy().replace('\\', "/")) {
            Some(values) => {
                let length = values.get("run").map_or(0, String::len);
                runs.entry((length, values)).or_default().push(candidate.path);
            }
            None => others += 1,
        }
    }
    ensure!(
        !runs.is_empty(),
        "no report below {} has a path of the pattern; {others} other files were found",
        assay_reports::shown_path(folder)
    );
    if others > 0 {
        let others = output::count(others, "file");
        progress.note(&format!("skipped {others} that the pattern does not match"));
    }
    let runs = runs.into_iter().map(|((_, values), files)| (values, files));
    Ok(runs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_takes_the_values_from_a_path() {
        let pattern = PathPattern::parse("builds/{branch}/{run}-{commit}/*").unwrap();
        let values = |path: &str| {
            let values = pattern.values(path)?;
            let joined: Vec<_> = values
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            Some(joined.join(" "))
        };
        assert_eq!(
            values("builds/main/812-c0ffee/out/junit.xml").as_deref(),
            Some("branch=main commit=c0ffee run=812")
        );
        let deep = PathPattern::parse("{*branch}/{run}-{commit}/junit.xml").unwrap();
        let found = deep.values("feature/fix-1/812-c0ffee/junit.xml").unwrap();
        assert_eq!(
            ["branch", "run", "commit"].map(|name| found[name].as_str()),
            ["feature/fix-1", "812", "c0ffee"]
        );
        assert_eq!(values("builds/main/812"), None);
        assert_eq!(values("other/main/812-c0ffee/junit.xml"), None);
        assert!(PathPattern::parse("{branch}").unwrap_err().contains("{run}"));
        let misspelt = PathPattern::parse("{run}/{brunch}").unwrap_err();
        assert!(misspelt.contains("{branch}"), "{misspelt}");
        assert!(PathPattern::parse("{run").is_err());
    }
}
