//! The rules of an owners file.
//!
//! The grammar is that of GitHub: a pattern of gitignore and its owners on each line, where the last rule that matches a file
//! counts, and a rule without owners takes them away. As there, `!` does not negate, brackets are not ranges, and `docs/*`
//! matches no file of a folder below `docs`.

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

/// Most rules. A larger file owns nothing.
const MOST_RULES: usize = 4_000;
/// Most owners of a rule.
const MOST_OWNERS: usize = 50;
/// Longest pattern and longest owner, in bytes.
const LONGEST_WORD: usize = 500;

/// The rules of an owners file.
#[derive(Debug, Default)]
pub struct Rules {
    set: GlobSet,
    /// The rule of each pattern of the set.
    rule_of: Vec<usize>,
    /// The owners of each rule.
    owners: Vec<Vec<String>>,
    problems: Vec<Problem>,
}

/// A line that is no rule, and is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Problem {
    /// Its number, from 1.
    pub line: usize,
    /// Why it is no rule.
    pub reason: String,
}

impl Rules {
    /// Reads an owners file. Lines that are no rules are problems.
    pub fn parse(text: &str) -> Self {
        let mut rules = Self::default();
        let mut builder = GlobSetBuilder::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let parsed = Line::parse(line).and_then(|line| {
                let globs = line.as_ref().map(|line| globs(&line.pattern)).transpose()?;
                Ok(line.zip(globs))
            });
            match parsed {
                Ok(Some(_)) if rules.owners.len() == MOST_RULES => {
                    let reason = format!("expected at most {MOST_RULES} rules; the whole file is left out");
                    return Self::without_rules(line_number, reason);
                }
                Ok(Some((line, globs))) => {
                    for glob in globs {
                        builder.add(glob);
                        rules.rule_of.push(rules.owners.len());
                    }
                    rules.owners.push(line.owners);
                }
                Ok(None) => {}
                Err(reason) => rules.problems.push(Problem {
                    line: line_number,
                    reason,
                }),
            }
        }
        match builder.build() {
            Ok(set) => rules.set = set,
            Err(error) => return Self::without_rules(1, format!("the whole file is left out: {error}")),
        }
        rules
    }

    fn without_rules(line: usize, reason: String) -> Self {
        Self {
            problems: vec![Problem { line, reason }],
            ..Self::default()
        }
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The number of rules.
    pub fn count(&self) -> usize {
        self.owners.len()
    }

    /// The lines that are left out.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The owners of a path relative to the root.
    pub(crate) fn owners(&self, path: &str) -> &[String] {
        let matching = self.set.matches_candidate(&Candidate::new(path));
        let rules = matching.into_iter().filter_map(|glob| self.rule_of.get(glob));
        let last = rules.max().and_then(|rule| self.owners.get(*rule));
        last.map(Vec::as_slice).unwrap_or_default()
    }

    /// The approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        /// A compiled pattern.
        const GLOB: usize = 500;
        self.rule_of.len() * GLOB
    }
}

/// A pattern with its owners.
struct Line {
    pattern: String,
    owners: Vec<String>,
}

impl Line {
    /// The rule of a line; none for a comment and an empty line.
    fn parse(line: &str) -> Result<Option<Self>, String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        if line.starts_with('[') || line.starts_with("^[") {
            return Err("sections are not supported; write the owners on each line".to_owned());
        }
        if line.starts_with('!') {
            return Err("`!` does not negate a pattern; a pattern without owners takes them away".to_owned());
        }
        let mut words = words(line).into_iter();
        let pattern = words.next().unwrap_or_default();
        let mut owners: Vec<String> = Vec::new();
        for owner in words.take_while(|word| !word.starts_with('#')) {
            if !is_owner(&owner) {
                return Err(format!(
                    "{:?} is no owner; expected @user, @org/team or an e-mail address",
                    owner.chars().take(100).collect::<String>()
                ));
            }
            if !owners.contains(&owner) {
                owners.push(owner);
            }
        }
        if owners.len() > MOST_OWNERS {
            return Err(format!("expected at most {MOST_OWNERS} owners"));
        }
        if pattern.len() > LONGEST_WORD || owners.iter().any(|owner| owner.len() > LONGEST_WORD) {
            return Err(format!(
                "expected at most {LONGEST_WORD} bytes in a pattern or an owner"
            ));
        }
        Ok(Some(Self { pattern, owners }))
    }
}

/// The words of a line. A backslash makes the next character, such as a space, part of its word.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        let word = words.last_mut();
        match (char, word) {
            ('\\', Some(word)) => word.extend(chars.next()),
            (char, Some(word)) if char.is_whitespace() => {
                if !word.is_empty() {
                    words.push(String::new());
                }
            }
            (char, Some(word)) => word.push(char),
            (_, None) => {}
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_owner(word: &str) -> bool {
    let is_plain = !word
        .chars()
        .any(|char| char.is_control() || "<>\"'`()".contains(char));
    match word.split_once('@') {
        Some(("", name)) => is_plain && !name.is_empty() && !name.contains('@'),
        Some((user, host)) => is_plain && !user.is_empty() && host.contains('.') && !host.contains('@'),
        None => false,
    }
}

/// The globs of a pattern: for the file itself, and for files in a folder of that name.
fn globs(pattern: &str) -> Result<Vec<globset::Glob>, String> {
    let (pattern, is_folder) = match pattern.strip_suffix('/') {
        Some(folder) => (folder, true),
        None => (pattern, false),
    };
    let path = pattern.strip_prefix('/').unwrap_or(pattern);
    let is_anchored = pattern.starts_with('/') || path.contains('/');
    // Brackets and braces are ordinary characters.
    let mut escaped = String::with_capacity(path.len());
    for char in path.chars() {
        if "[]{}\\".contains(char) {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    let from_root = match is_anchored {
        true => escaped,
        false => format!("**/{escaped}"),
    };
    let last = path.rsplit('/').next().unwrap_or(path);
    let mut globs = Vec::new();
    if path.is_empty() {
        globs.push("**".to_owned());
    } else {
        if !is_folder {
            globs.push(from_root.clone());
        }
        // `docs/*` matches the files of `docs` only, and `docs/**` those of all folders below it anyway.
        if is_folder || !(last == "*" || last == "**") {
            globs.push(format!("{from_root}/**"));
        }
    }
    let compile = |glob: String| {
        GlobBuilder::new(&glob)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| format!("{pattern:?} is no pattern: {}", error.kind()))
    };
    globs.into_iter().map(compile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, path: &str) -> String {
        Rules::parse(text).owners(path).join(" ")
    }

    /// The example of GitHub's documentation, with its explanations as the expectations.
    #[test]
    fn the_example_of_the_documentation_means_what_it_says() {
        let text = "\
# This is a comment.
*       @global-owner1 @global-owner2

*.js    @js-owner #This is an inline comment.

*.go docs@example.com

*.txt @octo-org/octocats

/build/logs/ @doctocat

docs/* docs@example.com

apps/ @octocat

/docs/ @doctocat

/scripts/ @doctocat @octocat

**/logs @octocat

/apps/ @octocat
/apps/github
";
        for (path, expected) in [
            ("a.rs", "@global-owner1 @global-owner2"),
            ("deep/er/a.rs", "@global-owner1 @global-owner2"),
            ("deep/a.js", "@js-owner"),
            ("a.go", "docs@example.com"),
            ("x/a.txt", "@octo-org/octocats"),
            // `**/logs` follows `/build/logs/`.
            ("build/logs/a", "@octocat"),
            ("scripts/logs/a", "@octocat"),
            ("deeply/nested/logs/a", "@octocat"),
            ("docs/a.md", "@doctocat"),
            ("x/apps/a", "@octocat"),
            ("scripts/a.sh", "@doctocat @octocat"),
            ("apps/a", "@octocat"),
            ("apps/github/a", ""),
        ] {
            assert_eq!(of(text, path), expected, "{path}");
        }
    }

    #[test]
    fn a_star_at_the_end_matches_files_of_one_folder_only() {
        let text = "docs/* @docs\n";
        assert_eq!(of(text, "docs/getting-started.md"), "@docs");
        assert_eq!(of(text, "docs/build-app/troubleshooting.md"), "");
        assert_eq!(
            of("docs/** @docs\n", "docs/build-app/troubleshooting.md"),
            "@docs"
        );
        assert_eq!(of("/ @root\n", "a/b"), "@root");
    }

    #[test]
    fn a_name_without_a_slash_matches_anywhere_and_a_path_from_the_root() {
        assert_eq!(of("web @w\n", "a/web/b.ts"), "@w");
        assert_eq!(of("web @w\n", "a/web"), "@w");
        assert_eq!(of("web/ @w\n", "a/web"), "", "a file is no folder");
        assert_eq!(of("a/web @w\n", "b/a/web/c.ts"), "");
        assert_eq!(of("/web @w\n", "a/web/b.ts"), "");
        assert_eq!(of("a/**/z.ts @w\n", "a/z.ts"), "@w");
        assert_eq!(of("a/?.ts @w\n", "a/bb.ts"), "");
    }

    #[test]
    fn brackets_braces_and_escaped_spaces_are_ordinary_characters() {
        assert_eq!(of("/app/[id]/ @w\n", "app/[id]/page.ts"), "@w");
        assert_eq!(of("/app/[id]/ @w\n", "app/i/page.ts"), "");
        assert_eq!(of("/a{b,c}.ts @w\n", "ab.ts"), "");
        assert_eq!(of("/a{b,c}.ts @w\n", "a{b,c}.ts"), "@w");
        assert_eq!(of("/my\\ tests/ @w\n", "my tests/a.ts"), "@w");
    }

    #[test]
    fn a_line_that_is_no_rule_is_left_out_and_named() {
        let rules = Rules::parse(
            "*.ts @web\n!/a @web\n[Section] @web\n*.rs web\n*.go @a@b\n*.py mail@host\n*.c <b>@x\n  # fine\n\n*.md @docs\n",
        );
        let lines: Vec<usize> = rules.problems().iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6, 7]);
        assert_eq!(rules.count(), 2);
        assert_eq!(
            rules.problems()[2].to_string(),
            "line 4: \"web\" is no owner; expected @user, @org/team or an e-mail address"
        );
        assert_eq!(rules.owners("a.md"), ["@docs"]);
    }

    #[test]
    fn a_file_with_too_many_rules_owns_nothing_and_says_so() {
        let text: String = (0..=MOST_RULES)
            .map(|number| format!("/{number}/ @a\n"))
            .collect();
        let rules = Rules::parse(&text);
        assert!(
            rules.is_empty() && rules.problems().len() == 1,
            "{:?}",
            rules.problems()
        );
        let text: String = (0..MOST_RULES)
            .map(|number| format!("x{number}/*/y/ @a{number}\n"))
            .collect();
        let rules = Rules::parse(&text);
        assert_eq!((rules.count(), rules.problems()), (MOST_RULES, &[][..]));
        assert_eq!(rules.owners("x7/z/y/a.ts"), ["@a7"]);
    }
}
