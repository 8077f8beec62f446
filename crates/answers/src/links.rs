//! Addresses of pages. Pages take names as query parameters, so that no path contains an escaped slash.
//!
//! Functions return a path within the site. [`PublicPages`] makes whole addresses for readers outside of it.

use assay_domain::{
    id::{ProjectId, RunId},
    verdict::VerdictStatus,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters to escape: all but letters, digits and unreserved marks.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Longest address of a test's attempts outside of the site, in bytes. A longer one is replaced by that of the run.
const LONGEST: usize = 700;

/// The pages under their public address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicPages {
    /// The address without a slash at its end.
    base: String,
}

impl PublicPages {
    /// The pages at this address, with or without a slash at its end.
    pub fn at(address: &str) -> Self {
        Self {
            base: address.trim_end_matches('/').to_owned(),
        }
    }

    /// The whole address of a path within the site.
    pub fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Whether other machines reach the pages: the address is not one of this machine.
    pub fn is_reached_elsewhere(&self) -> bool {
        let host = self.base.split_once("://").map_or("", |(_, host)| host);
        !["127.", "localhost", "[::1]"]
            .iter()
            .any(|own| host.starts_with(own))
    }

    /// The whole address of a test's attempts in a run, or that of the run if the name is very long.
    pub fn attempts(&self, project: ProjectId, run: &RunId, name: &str, file: Option<&str>) -> String {
        test_of_run(&self.address(&self::run(project, run)), name, file)
    }
}

/// The address of a test's attempts below the whole address of its run. For a very long name, the address of the run.
pub fn test_of_run(run: &str, name: &str, file: Option<&str>) -> String {
    let whole = attempts_below(run, name, file);
    match whole.len() {
        ..=LONGEST => whole,
        _ => run.to_owned(),
    }
}

fn attempts_below(run: &str, name: &str, file: Option<&str>) -> String {
    with_query(
        &format!("{run}/test"),
        &[("name", Some(name)), ("file", Some(file.unwrap_or_default()))],
    )
}

/// A text as part of an address.
pub fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// An address with a query. Parameters without a value are omitted.
pub fn with_query(path: &str, parameters: &[(&str, Option<&str>)]) -> String {
    let mut address = path.to_owned();
    let present = parameters
        .iter()
        .filter_map(|(name, value)| Some((name, (*value)?)));
    for (place, (name, value)) in present.enumerate() {
        address += if place == 0 { "?" } else { "&" };
        address += &format!("{name}={}", escaped(value));
    }
    address
}

/// The page that says whether a release may be cut from a branch.
pub fn release(project: ProjectId, branch: &str) -> String {
    with_query(&self::project(project, "/release"), &[("branch", Some(branch))])
}

/// A page of a project. `part` follows the project's path.
pub fn project(project: ProjectId, part: &str) -> String {
    format!("/p/{project}{part}")
}

/// The page of a run.
pub fn run(project: ProjectId, run: &RunId) -> String {
    format!("/p/{project}/runs/{run}")
}

/// The page of a commit: all its runs.
pub fn commit(project: ProjectId, sha: &str) -> String {
    format!("/p/{project}/commit/{}", escaped(sha))
}

/// The page of a pull request: all runs of its newest commit.
pub fn pull_request(project: ProjectId, number: i64) -> String {
    format!("/p/{project}/pull/{number}")
}

/// The page of a test's attempts in a run. A test without a file has an empty one here.
pub fn attempts(project: ProjectId, run: &RunId, name: &str, file: Option<&str>) -> String {
    attempts_below(&self::run(project, run), name, file)
}

/// The page of a test. A test without a file has an empty one here.
pub fn test(project: ProjectId, name: &str, file: Option<&str>) -> String {
    with_query(
        &format!("/p/{project}/test"),
        &[("name", Some(name)), ("file", Some(file.unwrap_or_default()))],
    )
}

/// The list of a project's tests with this verdict.
pub fn tests_with(project: ProjectId, status: VerdictStatus) -> String {
    let path = format!("/p/{project}/tests");
    with_query(&path, &[("status", Some(status.as_str()))])
}

/// The page of an error signature.
pub fn signature(project: ProjectId, fingerprint: &str) -> String {
    format!("/p/{project}/errors/{}", escaped(fingerprint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_whole() {
        assert_eq!(
            with_query(
                "/x",
                &[("a", None), ("name", Some("a > b/c&d=ü")), ("file", Some(""))]
            ),
            "/x?name=a%20%3E%20b%2Fc%26d%3D%C3%BC&file="
        );
    }

    #[test]
    fn a_public_address_has_one_slash_and_is_never_cut() {
        let project = ProjectId("019aa3f4-5b1c-7def-8a3b-000000000001".parse().unwrap());
        let run = RunId("019aa3f4-5b1c-7def-8a3b-000000000812".parse().unwrap());
        let pages = PublicPages::at("https://assay.example.org/");
        let of_run = format!("https://assay.example.org/p/{project}/runs/{run}");
        assert_eq!(
            pages.attempts(project, &run, "a)b", Some("c.ts")),
            format!("{of_run}/test?name=a%29b&file=c.ts")
        );
        assert_eq!(pages.attempts(project, &run, &"é".repeat(200), None), of_run);
        assert!(pages.is_reached_elsewhere());
        for own in ["http://127.0.0.1:8082", "http://localhost", "https://[::1]:8082"] {
            assert!(!PublicPages::at(own).is_reached_elsewhere(), "{own}");
        }
    }
}
