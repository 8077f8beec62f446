//! Short names of tests in a list, distinct for distinct tests.

use std::collections::HashMap;

use maud::{Markup, html};

/// Separates the parts of a test's name.
const SEPARATOR: &str = " > ";
/// Replaces the parts that names have in common.
const ELLIPSIS: &str = "…";
/// The longest last part of a name, in characters. The middle of a longer one is cut.
const LONGEST: usize = 120;

/// The name of a test in a list, with a context that distinguishes it from tests of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortName {
    /// The last part of the name.
    pub leaf: String,
    /// The parts before it that distinguish names with this last part; may be empty.
    pub context: String,
}

/// The short names of a list, each from a full name and a file. Different tests of a list have different short names.
pub fn short_names(names: &[(&str, Option<&str>)]) -> Vec<ShortName> {
    let parts: Vec<Vec<&str>> = names
        .iter()
        .map(|(name, _)| name.split(SEPARATOR).collect())
        .collect();
    let leaf = |parts: &[&str]| parts.last().copied().unwrap_or_default().to_owned();
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, parts) in parts.iter().enumerate() {
        groups.entry(leaf(parts)).or_default().push(place);
    }
    // A long last part is cut in the middle if the rest is still unique.
    let mut leaves_by_brief: HashMap<String, usize> = HashMap::new();
    for leaf in groups.keys() {
        *leaves_by_brief.entry(without_middle(leaf)).or_default() += 1;
    }
    let mut short: Vec<ShortName> = vec![
        ShortName {
            leaf: String::new(),
            context: String::new()
        };
        names.len()
    ];
    for (leaf, places) in &groups {
        let members: Vec<&[&str]> = places
            .iter()
            .filter_map(|place| parts.get(*place).map(Vec::as_slice))
            .collect();
        let (before, after) = count_shared_parts(&members);
        let with_file = shares_a_name(&members);
        for place in places {
            let (Some(parts), Some((_, file)), Some(short)) =
                (parts.get(*place), names.get(*place), short.get_mut(*place))
            else {
                continue;
            };
            let middle = parts.get(before..parts.len() - after).unwrap_or_default();
            let middle: Vec<&str> = middle.iter().map(|part| part_or_placeholder(part)).collect();
            let mut context = middle.join(" › ");
            if places.len() == 1 {
                // The last part is unique. The part before it gives the context.
                context = parts
                    .len()
                    .checked_sub(2)
                    .and_then(|place| parts.get(place))
                    .map(|part| without_middle(part))
                    .unwrap_or_default();
                if parts.len() > 2 && !context.is_empty() {
                    context = format!("{ELLIPSIS} › {context}");
                }
            } else {
                if before > 0 && !context.is_empty() {
                    context = format!("{ELLIPSIS} › {context}");
                }
                if after > 1 && !context.is_empty() {
                    context = format!("{context} › {ELLIPSIS}");
                }
            }
            if with_file && let Some(file) = file {
                context = if context.is_empty() {
                    (*file).to_owned()
                } else {
                    format!("{context} · {file}")
                };
            }
            let brief = without_middle(leaf);
            let is_unique = leaves_by_brief.get(&brief) == Some(&1);
            short.leaf = part_or_placeholder(if is_unique { &brief } else { leaf }).to_owned();
            short.context = context;
        }
    }
    short
}

/// The number of parts that all of these names share at the beginning and at the end. The last part is always shared.
fn count_shared_parts(names: &[&[&str]]) -> (usize, usize) {
    let Some((first, others)) = names.split_first() else {
        return (0, 1);
    };
    let shortest = names.iter().map(|name| name.len()).min().unwrap_or(1);
    let same_at = |place: usize| others.iter().all(|name| name.get(place) == first.get(place));
    let same_back = |place: usize| {
        others
            .iter()
            .all(|name| name.iter().rev().nth(place) == first.iter().rev().nth(place))
    };
    let after = (0..shortest).take_while(|place| same_back(*place)).count().max(1);
    let before = (0..shortest - after).take_while(|place| same_at(*place)).count();
    (before, after)
}

/// Whether two of the names are equal, so that only their files differ.
fn shares_a_name(names: &[&[&str]]) -> bool {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair.first() == pair.last())
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
    fn names_are_shortened_by_their_common_parts() {
        assert_eq!(
            short_texts(&[
                "chromium > cart > pays",
                "webkit > cart > pays",
                "chromium > cart > adds"
            ]),
            ["pays [chromium › …]", "pays [webkit › …]", "adds [… › cart]"]
        );
        assert_eq!(
            short_texts(&["a > shop > one > pays", "a > shop > two > pays"]),
            ["pays [… › one]", "pays [… › two]"]
        );
        assert_eq!(short_texts(&["pays", "cart > pays"]), ["pays []", "pays [cart]"]);
        assert_eq!(short_texts(&[" > "]), ["(no name) []"]);
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
