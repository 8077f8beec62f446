//! Masks URLs, paths and locations in files.

use super::{mask, word};

/// Directories at the root of a file system, which distinguish a path from a route.
const ROOTS: [&str; 29] = [
    "home",
    "Users",
    "root",
    "tmp",
    "var",
    "opt",
    "usr",
    "builds",
    "build",
    "workspace",
    "workspaces",
    "mnt",
    "srv",
    "private",
    "github",
    "__w",
    "runner",
    "codebuild",
    "buildkite",
    "go",
    "rustc",
    "nix",
    "etc",
    "dev",
    "proc",
    "run",
    "lib",
    "snap",
    "Applications",
];

/// Writes `scheme://<host>/path?<query>`; a `file:` URL is a path.
pub(super) fn url(part: &str, out: &mut String) -> usize {
    let part = part.trim_end_matches(['.', ':', '!', '?']);
    let Some((scheme, rest)) = part.split_once("://") else {
        return word::first(part, out);
    };
    if scheme == "file" {
        let skipped = scheme.len() + "://".len();
        return if rest.starts_with('/') {
            skipped + path(rest, out)
        } else {
            skipped
        };
    }
    let (path_part, query) = rest
        .split_once('?')
        .map_or((rest, false), |(path_part, _)| (path_part, true));
    let path_part = path_part
        .split_once('#')
        .map_or(path_part, |(path_part, _)| path_part);
    out.push_str(scheme);
    out.push_str("://<host>");
    for segment in path_part.split('/').skip(1) {
        out.push('/');
        out.push_str(&mask(segment));
    }
    if query {
        out.push_str("?<query>");
    }
    part.len()
}

/// Writes only the file name of a file system's path, and every segment of a route or a relative path.
pub(super) fn path(part: &str, out: &mut String) -> usize {
    let whole = part.trim_end_matches(['.', '!', '?']);
    // The colon of a drive does not begin a line number.
    let colon = whole
        .char_indices()
        .find(|(at, c)| *c == ':' && *at > 1)
        .map_or(whole.len(), |(at, _)| at);
    let (path, line) = whole.split_at(colon);
    let windows = !path.starts_with('/');
    let relative = !windows
        && out.chars().next_back().is_some_and(|c| {
            c.is_alphanumeric()
                || matches!(
                    c,
                    '.' | '_' | '-' | '>' | '/' | '<' | '~' | '*' | '@' | '$' | '}' | ')' | ']' | '%' | '+'
                )
        });
    if relative || !(windows || is_in_file_system(path)) {
        for segment in part.split('/').skip(1) {
            out.push('/');
            out.push_str(&mask(segment));
        }
        return part.len();
    }
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    out.push_str("<path>");
    if !name.is_empty() && (is_stable_name(name) || !is_temporary(path)) {
        out.push('/');
        out.push_str(&mask(name));
    }
    if !line.is_empty() {
        out.push_str(":<line>");
    }
    whole.len()
}

/// Writes `file.ext:<line>`.
pub(super) fn line(part: &str, out: &mut String) -> usize {
    let name = part.split(':').next().unwrap_or_default();
    out.push_str(&mask(name));
    out.push_str(":<line>");
    part.len()
}

fn is_in_file_system(path: &str) -> bool {
    let mut segments = path.split('/').skip(1);
    let count = segments.clone().count();
    let rooted = segments.next().is_some_and(|root| ROOTS.contains(&root)) && count >= 2;
    rooted || (count >= 3 && path.rsplit('/').next().is_some_and(has_extension))
}

fn is_temporary(path: &str) -> bool {
    [
        "/tmp/",
        "/var/tmp/",
        "/var/folders/",
        "/private/tmp/",
        "/private/var/folders/",
        "/dev/shm/",
    ]
    .iter()
    .any(|root| path.starts_with(root))
        || path.contains("\\Temp\\")
        || path.contains("/Temp/")
}

/// Whether a file name is not a temporary one: it has an extension and no digit.
fn is_stable_name(name: &str) -> bool {
    has_extension(name)
        && !name.starts_with("tmp")
        && !name.bytes().any(|b| b.is_ascii_digit())
        && !name.contains('<')
}

fn has_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.starts_with(|c: char| c.is_ascii_alphabetic())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}
