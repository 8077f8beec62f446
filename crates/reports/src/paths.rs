//! Paths as they are stored: with `/`, relative to the checkout if it is known.

use std::borrow::Cow;

use crate::text;

/// The path with `/`, without `.` and `..`: relative to the checkout if it lies inside, else as the report writes it.
pub(crate) fn stored(path: &str, root: Option<&str>) -> String {
    let path = normalized(path);
    let relative = relative(&path, root).unwrap_or(&path);
    text::shortened_name(relative).into_owned()
}

/// A path of this machine for messages.
pub fn shown_path(path: &std::path::Path) -> String {
    escaped_name(&path.display().to_string())
}

/// Escapes a name for messages, because reports may be malicious. Escapes control characters, characters that change
/// the text direction, and commands of CI services (`::error::`, `##vso[`). `::` within a word is not a command: it
/// separates the modules of a test.
pub fn escaped_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut characters = name.chars().peekable();
    let mut is_in_word = false;
    let mut has_command = false;
    while let Some(next) = characters.next() {
        let is_command = characters.peek() == Some(&next)
            && (next == '#' || (next == ':' && (has_command || !is_in_word)));
        has_command |= is_command;
        let is_control = next.is_control()
            || matches!(
                next,
                '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            );
        if is_command || is_control {
            out.extend(next.escape_unicode());
        } else {
            out.push(next);
        }
        is_in_word = !is_control && !next.is_whitespace();
    }
    out
}

/// The path relative to the checkout, if it lies inside.
pub(crate) fn within(path: &str, root: Option<&str>) -> Option<String> {
    relative(&normalized(path), root).map(str::to_owned)
}

/// The folder of a file; empty if its name has none.
pub(crate) fn folder(name: &str) -> &str {
    name.rsplit_once(['/', '\\']).map_or("", |(folder, _)| folder)
}

/// A path below a folder. An absolute path stays unchanged.
pub(crate) fn join(folder: &str, path: &str) -> String {
    if is_absolute(path) {
        path.to_owned()
    } else {
        format!("{}/{path}", folder.trim_end_matches(['/', '\\']))
    }
}

/// Whether a text is the address of a page or of a library, not of a file.
pub(crate) fn is_address(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        rest.starts_with("//") && scheme != "file" && scheme.bytes().all(|byte| byte.is_ascii_alphabetic())
    })
}

/// Suffixes of JavaScript's source files, which show a path without a folder, too.
const JAVASCRIPT: &[&str] = &[
    "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte",
];
/// Suffixes of other source files, which also end names of classes.
const OTHER_SOURCES: &[&str] = &[
    "py", "rb", "php", "go", "rs", "dart", "feature", "robot", "swift", "kt", "java", "cs", "t", "bats",
];

/// The path if it has the suffix of a source file.
pub(crate) fn source_file(path: &str) -> Option<&str> {
    let (_, suffix) = path.rsplit_once('.')?;
    JAVASCRIPT.contains(&suffix).then_some(path)
}

/// Whether a name is the path of a source file.
pub(crate) fn is_path(name: &str) -> bool {
    let Some((_, suffix)) = name.rsplit_once('.') else {
        return false;
    };
    let has_suffix =
        JAVASCRIPT.contains(&suffix) || (OTHER_SOURCES.contains(&suffix) && name.contains(['/', '\\']));
    // The address of a library is not a file of the project.
    has_suffix && !name.contains([' ', '\n']) && !is_address(name)
}

/// Whether the name of a result is that of its source file, as Node's test runner names a file that failed as a whole.
pub(crate) fn is_of_file(name: &str, file: Option<&str>) -> bool {
    let is_end_of = |file: &str| {
        let folder = file.strip_suffix(name);
        folder.is_some_and(|folder| folder.is_empty() || folder.ends_with(['/', '\\']))
    };
    source_file(name).is_some() && file.map_or(is_absolute(name), is_end_of)
}

/// Whether the path begins at a root, including Windows drives.
pub(crate) fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '\\']) || has_drive(path)
}

/// The part of a normalized path below the checkout: below the root, or below a folder that only CI services use.
/// Without the second rule, a test would have a different path on each machine.
fn relative<'a>(path: &'a str, root: Option<&str>) -> Option<&'a str> {
    if !is_absolute(path) {
        return None;
    }
    root.and_then(|root| inside(path, root)).or_else(|| {
        // The path above `_work` depends on where a self-hosted runner is installed.
        let path = path.find("/_work/").and_then(|at| path.get(at..)).unwrap_or(path);
        CI_CHECKOUTS.iter().find_map(|layout| below(path, layout))
    })
}

/// Checkout folders of CI services. `*` is any one folder, `=` the enclosing folder's name again, `#` a number, `?:` a
/// drive. Services with folders of any depth (GitLab, Jenkins) are not listed.
const CI_CHECKOUTS: &[&str] = &[
    // GitHub Actions
    "/home/runner/work/*/=",
    "/Users/runner/work/*/=",
    "?:/a/*/=",
    "/__w/*/=",
    "/_work/*/=",
    // Azure Pipelines
    "/home/vsts/work/#/s",
    "/Users/runner/work/#/s",
    "?:/a/#/s",
    "/__w/#/s",
    "/_work/#/s",
    // CircleCI
    "/home/circleci/project",
    "/Users/distiller/project",
    // Bitbucket Pipelines
    "/opt/atlassian/pipelines/agent/build",
    // Buildkite
    "/var/lib/buildkite-agent/builds/*/*/*",
    // TeamCity
    "/opt/buildagent/work/*",
    // Travis CI
    "/home/travis/build/*/*",
    "/Users/travis/build/*/*",
];

/// The part of a path below a folder of this layout.
fn below<'a>(path: &'a str, layout: &str) -> Option<&'a str> {
    let (mut rest, mut enclosing) = (path, "");
    for layout_part in layout.split('/') {
        let (folder, inside) = rest.split_once('/')?;
        let fits = match layout_part {
            "*" => true,
            "=" => folder == enclosing,
            "#" => folder.bytes().all(|byte| byte.is_ascii_digit()),
            "?:" => folder.ends_with(':'),
            name => folder == name,
        };
        if !fits {
            return None;
        }
        (rest, enclosing) = (inside, folder);
    }
    (!rest.is_empty()).then_some(rest)
}

fn inside<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let root = normalized(root);
    let root = root.trim_end_matches('/');
    let head = path.get(..root.len())?;
    let same = head == root || (has_drive(root) && head.eq_ignore_ascii_case(root));
    let rest = path.get(root.len()..)?.strip_prefix('/')?;
    (same && !rest.is_empty()).then_some(rest)
}

/// The path with `/` only, without control characters, `.` and `..`. A `file:` address becomes a path.
fn normalized(path: &str) -> Cow<'_, str> {
    if is_normalized(path) {
        return Cow::Borrowed(path);
    }
    let path = text::plain(path.trim());
    let path = path.strip_prefix("file://").unwrap_or(&path);
    let path: Cow<'_, str> = if path.contains('\\') && (has_drive(path) || !path.contains('/')) {
        Cow::Owned(path.replace('\\', "/"))
    } else {
        Cow::Borrowed(path)
    };
    // A file address of a drive is `file:///C:/…`.
    let path = match path.strip_prefix('/') {
        Some(rest) if has_drive(rest) => rest,
        _ => &path,
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    Cow::Owned(if path.starts_with('/') {
        format!("/{joined}")
    } else {
        joined
    })
}

/// Whether a path is one that [`normalized`] surely returns as it is. Most paths are: names of folders and a file, with a
/// `/` between two.
fn is_normalized(path: &str) -> bool {
    let mut previous = b'/';
    let path = path.strip_prefix('/').unwrap_or(path);
    let is_plain = path.bytes().all(|byte| {
        // A `.` after a `/` may be a folder.
        let fits = match byte {
            b'.' | b'/' => previous != b'/',
            _ => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
        };
        previous = byte;
        fits
    });
    is_plain && previous != b'/'
}

fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_checkout_where_they_lie_inside() {
        let root = Some("/home/runner/work/shop/shop");
        for (path, expected) in [
            ("/home/runner/work/shop/shop/tests/a.spec.ts", "tests/a.spec.ts"),
            (
                "/home/runner/work/shop/shop/tests/../e2e/./a.spec.ts",
                "e2e/a.spec.ts",
            ),
            (
                "/home/runner/work/shop/shop-two/a.spec.ts",
                "/home/runner/work/shop/shop-two/a.spec.ts",
            ),
            ("file:///home/runner/work/shop/shop/src/a.mjs", "src/a.mjs"),
            ("./spec/order_spec.rb", "spec/order_spec.rb"),
            ("../outside/a.ts", "../outside/a.ts"),
            ("tests/a.spec.ts", "tests/a.spec.ts"),
        ] {
            assert_eq!(stored(path, root), expected);
        }
        assert_eq!(
            stored(
                "/home/runner/work/shop/shop/a.ts",
                Some("/home/runner/work/shop/shop/")
            ),
            "a.ts"
        );
        assert_eq!(stored("/a/b.ts", None), "/a/b.ts");
    }

    #[test]
    fn checkouts_of_ci_services_are_known_without_a_root() {
        for path in [
            "/home/runner/work/shop/shop/tests/a.py",
            "/Users/runner/work/shop/shop/tests/a.py",
            r"D:\a\shop\shop\tests\a.py",
            "/__w/shop/shop/tests/a.py",
            "/home/ubuntu/actions-runner/_work/shop/shop/tests/a.py",
            "/home/vsts/work/1/s/tests/a.py",
            r"D:\a\1\s\tests\a.py",
            "/srv/agent/_work/12/s/tests/a.py",
            "/home/circleci/project/tests/a.py",
            "/opt/atlassian/pipelines/agent/build/tests/a.py",
            "/var/lib/buildkite-agent/builds/ip-10-0-0-1-1/acme/shop/tests/a.py",
            "/opt/buildagent/work/8d1f2b1c9a/tests/a.py",
            "file:///home/travis/build/acme/shop/tests/a.py",
        ] {
            assert_eq!(stored(path, None), "tests/a.py", "{path}");
            assert_eq!(stored(path, Some("/elsewhere")), "tests/a.py", "{path}");
        }
        for path in [
            "/home/runner/work/shop/other/tests/a.py",
            "/home/runner/work/shop/shop",
            "/home/vsts/work/one/s/a.py",
            "/builds/acme/shop/tests/a.py",
            "/home/me/shop/tests/a.py",
        ] {
            assert_eq!(stored(path, None), path);
        }
    }

    #[test]
    fn an_escaped_name_has_no_commands_for_terminals_or_ci() {
        for (name, expected) in [
            ("out/r é✓ [1].xml", "out/r é✓ [1].xml"),
            (r"C:\a#b:c.xml", r"C:\a#b:c.xml"),
            ("::error::gone", r"\u{3a}:error\u{3a}:gone"),
            ("a ::error::gone", r"a \u{3a}:error\u{3a}:gone"),
            ("shop::cart > tests::adds(1)::a", "shop::cart > tests::adds(1)::a"),
            ("a\n##vso[task.complete]", r"a\u{a}\u{23}#vso[task.complete]"),
            ("###[x", r"\u{23}\u{23}#[x"),
            ("\u{1b}[2J\r\u{9b}1m", r"\u{1b}[2J\u{d}\u{9b}1m"),
            ("\u{202e}lmx.a", r"\u{202e}lmx.a"),
        ] {
            assert_eq!(escaped_name(name), expected);
        }
    }

    #[test]
    fn windows_paths_are_understood() {
        assert_eq!(
            stored(r"D:\a\shop\tests\a.spec.ts", Some(r"d:\a\shop")),
            "tests/a.spec.ts"
        );
        assert_eq!(stored("file:///D:/a/shop/a.ts", Some(r"D:\a\shop")), "a.ts");
        assert_eq!(stored(r"tests\a.spec.ts", None), "tests/a.spec.ts");
        assert_eq!(stored(r"/odd\name.ts", None), r"/odd\name.ts");
        assert_eq!(join("/r/tests/", "a.ts"), "/r/tests/a.ts");
        assert_eq!(join("/r", r"C:\a.ts"), r"C:\a.ts");
    }
}
