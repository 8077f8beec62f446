//! Addresses of pages, and of the read API's routes with the same data. Pages take names as query parameters, so that
//! no path contains an escaped slash.

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

/// A text as part of an address.
pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// An address with a query. Parameters without a value are omitted.
pub(crate) fn with_query(path: &str, parameters: &[(&str, Option<&str>)]) -> String {
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

/// A page of a project. `part` follows the project's path.
pub(crate) fn project(project: ProjectId, part: &str) -> String {
    format!("/p/{project}{part}")
}

/// The page of a run.
pub(crate) fn run(project: ProjectId, run: &RunId) -> String {
    format!("/p/{project}/runs/{run}")
}

/// The page of a test's attempts in a run. A test without a file has an empty one here.
pub(crate) fn attempts(project: ProjectId, run: &RunId, name: &str, file: Option<&str>) -> String {
    with_query(
        &format!("/p/{project}/runs/{run}/test"),
        &[("name", Some(name)), ("file", Some(file.unwrap_or_default()))],
    )
}

/// The page of a test. A test without a file has an empty one here.
pub(crate) fn test(project: ProjectId, name: &str, file: Option<&str>) -> String {
    with_query(
        &format!("/p/{project}/test"),
        &[("name", Some(name)), ("file", Some(file.unwrap_or_default()))],
    )
}

/// The list of a project's tests with this verdict.
pub(crate) fn tests_with(project: ProjectId, status: VerdictStatus) -> String {
    let path = format!("/p/{project}/tests");
    with_query(&path, &[("status", Some(status.as_str()))])
}

/// The page of an error signature.
pub(crate) fn signature(project: ProjectId, fingerprint: &str) -> String {
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
}
