//! Short names of tests in a list, distinct for distinct tests.

use std::collections::HashMap;

use maud::{Markup, html};

/// Separates the parts of a test's name.
const SEPARATOR: &str = " > ";
/// Replaces the middle of a long text.
const ELLIPSIS: &str = "…";
/// The longest last part of a name, and the longest path before it, in characters. The middle of a longer one is cut.
const LONGEST: usize = 120;

/// The name of a test in a list, the last part first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortName {
    /// The last part of the name.
    pub leaf: String,
    /// The parts before it, and the file if tests of the list share the name; may be empty.
    pub context: String,
}

/// The short names of a list, each from a full name and a file. Different tests of a list have different short names.
pub fn short_names(names: &[(&str, Option<&str>)]) -> Vec<ShortName> {
    let whole = |name: &str| {
        let (path, leaf) = name.rsplit_once(SEPARATOR).unwrap_or(("", name));
        let path = path.split(SEPARATOR).map(part_or_placeholder);
        let has_path = leaf.len() < name.len();
        let context = if has_path {
            path.collect::<Vec<_>>().join(" › ")
        } else {
            String::new()
        };
        (part_or_placeholder(leaf).to_owned(), context)
    };
    let brief = |name: &str| {
        let (leaf, context) = whole(name);
        (without_middle(&leaf), without_middle(&context))
    };
    // Tests of one name differ by their files.
    let (mut files_of, mut names_of) = (HashMap::new(), HashMap::new());
    for (name, _) in names {
        *files_of.entry(*name).or_insert(0) += 1;
    }
    for name in files_of.keys() {
        *names_of.entry(brief(name)).or_insert(0) += 1;
    }
    let short = |(name, file): &(&str, Option<&str>)| {
        // A cut text would not distinguish two names.
        let is_unique = names_of.get(&brief(name)) == Some(&1);
        let (leaf, mut context) = if is_unique { brief(name) } else { whole(name) };
        if let (Some(file), Some(2..)) = (file, files_of.get(name)) {
            context = if context.is_empty() {
                (*file).to_owned()
            } else {
                format!("{context} · {file}")
            };
        }
        ShortName { leaf, context }
    };
    names.iter().map(short).collect()
}

/// A part of a name, or a placeholder for a blank one.
fn part_or_placeholder(part: &str) -> &str {
    if part.trim().is_empty() { "(no name)" } else { part }
}

/// The text without its middle, if it is long.
fn without_middle(text: &str) -> String {
    let length = text.chars().count();
    if length <= LONGEST {
        return text.to_owned();
    }
    let side = LONGEST / 2;
    let head: String = text.chars().take(side).collect();
    let tail: String = text.chars().skip(length - side).collect();
    format!("{head}{ELLIPSIS}{tail}")
}

/// The last part of a test's name, or another text of a report, for the title of a page. It is bounded and isolated.
pub fn in_title(name: &str) -> String {
    let (_, leaf) = name.rsplit_once(SEPARATOR).unwrap_or(("", name));
    // Without isolation, marks for right-to-left text would turn the rest of the title around.
    format!("\u{2068}{}\u{2069}", without_middle(part_or_placeholder(leaf)))
}

/// A name in a list. The tooltip is the full name.
pub fn in_list(short: &ShortName, full: &str) -> Markup {
    html! {
        span.name title=(full) {
            bdi.leaf { (short.leaf) }
            @if !short.context.is_empty() { " " bdi.context { (short.context) } }
        }
    }
}

/// A full name as a heading, the last part first, with the file unless the name contains it.
pub fn heading(name: &str, file: Option<&str>) -> Markup {
    let (path, leaf) = name.rsplit_once(SEPARATOR).unwrap_or(("", name));
    html! {
        bdi.leaf { (part_or_placeholder(leaf)) }
        (path_and_file(name, path, file))
    }
}

/// All parts of a name except the last.
pub fn path(name: &str, file: Option<&str>) -> Markup {
    let (path, _) = name.rsplit_once(SEPARATOR).unwrap_or(("", name));
    path_and_file(name, path, file)
}

/// The file of a test, unless its name contains it.
pub fn file_beside<'f>(name: &str, file: Option<&'f str>) -> Option<&'f str> {
    file.filter(|file| !name.split(SEPARATOR).any(|part| part == *file))
}

fn path_and_file(name: &str, path: &str, file: Option<&str>) -> Markup {
    let file = file_beside(name, file);
    html! {
        @if !path.is_empty() || file.is_some() {
            span.path {
                @if !path.is_empty() { bdi { (path.replace(SEPARATOR, " › ")) } }
                @if let Some(file) = file { bdi.file { (file) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn short_texts(names: &[&str]) -> Vec<String> {
        let pairs: Vec<_> = names.iter().map(|name| (*name, None)).collect();
        let short = short_names(&pairs).into_iter();
        short
            .map(|short| format!("{} [{}]", short.leaf, short.context))
            .collect()
    }

    #[test]
    fn a_name_keeps_all_of_its_parts() {
        assert_eq!(
            short_texts(&["suite > f1 > case 2", "cart > pays", "pays", " > "]),
            [
                "case 2 [suite › f1]",
                "pays [cart]",
                "pays []",
                "(no name) [(no name)]"
            ]
        );
    }

    #[test]
    fn a_title_has_the_bounded_last_part() {
        assert_eq!(in_title("a.ts > cart > pays"), "\u{2068}pays\u{2069}");
        assert_eq!(in_title(&"w".repeat(2_000)).chars().count(), LONGEST + 3);
    }

    #[test]
    fn equal_names_show_their_files() {
        let short = short_names(&[("pays", Some("a.ts")), ("pays", Some("b.ts")), ("pays", None)]);
        let contexts: Vec<_> = short.iter().map(|short| short.context.as_str()).collect();
        assert_eq!(contexts, ["a.ts", "b.ts", ""]);
    }

    #[test]
    fn a_long_name_is_cut_only_if_the_result_is_unique() {
        let long = |middle: &str| format!("{}{middle}{}", "a".repeat(100), "z".repeat(100));
        let alone = short_texts(&[&long("x")]);
        assert!(
            alone[0].contains('…') && alone[0].chars().count() < 130,
            "{alone:?}"
        );
        let both = short_texts(&[&long("x"), &long("y")]);
        assert_eq!(both.iter().collect::<HashSet<_>>().len(), 2);
    }

    #[test]
    fn short_names_are_distinct() {
        let parts = ["a", "b", "", "c d"];
        let mut names = Vec::new();
        for first in parts {
            names.push(first.to_owned());
            for second in parts {
                names.push(format!("{first} > {second}"));
                for third in parts {
                    names.push(format!("{first} > {second} > {third}"));
                }
            }
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let distinct: HashSet<&&str> = names.iter().collect();
        let short: HashSet<String> = short_texts(&names).into_iter().collect();
        assert_eq!(short.len(), distinct.len());
    }
}
