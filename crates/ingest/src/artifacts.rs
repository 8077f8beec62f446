//! Links to the files that a report names.

use std::{fmt, str::FromStr};

use assay_domain::{attempt::Attachment, recording::Recording};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{text, values::LONGEST_FIELD};

/// What is replaced by the path of a file.
const PATH: &str = "{path}";
/// Characters that are escaped in a path. A path that a report names cannot leave its place in the address.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~');

/// The address of a file that a report names, with `{path}` in the place of its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactsUrl(String);

impl FromStr for ArtifactsUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "expected an address of http or https with {PATH} behind its host, such as https://ci.example.org/artifacts/{PATH}"
            )
        };
        let (before, after) = text.split_once(PATH).ok_or_else(wrong)?;
        let has_host = before
            .split_once("://")
            .is_some_and(|(_, rest)| rest.contains('/'));
        let is_address = has_host && text::web_address(&format!("{before}path{after}")).is_some();
        let is_single = !after.contains(['{', '}']) && !before.contains(['{', '}']);
        (is_address && is_single && text.chars().count() <= LONGEST_FIELD)
            .then(|| Self(text.to_owned()))
            .ok_or_else(wrong)
    }
}

impl fmt::Display for ArtifactsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Sets the address of an attachment: its own, or the one where CI keeps it.
pub(crate) fn link(attachment: &mut Attachment, artifacts: Option<&ArtifactsUrl>) {
    let Some(path) = &attachment.path else { return };
    attachment.url = text::web_address(path).or_else(|| {
        let ArtifactsUrl(template) = artifacts?;
        let leaves = path.starts_with('/') || path.contains(':') || path.split('/').any(|part| part == "..");
        let escaped = || utf8_percent_encode(path, ESCAPED).to_string();
        (!leaves).then(|| template.replacen(PATH, &escaped(), 1))
    });
}

/// Removes the addresses of all attachments. Their paths stay.
pub fn drop_file_addresses(recording: &mut Recording) {
    let attempts = recording
        .tests
        .iter_mut()
        .flat_map(|test| test.attempts.iter_mut());
    let outputs = attempts.filter_map(|recorded| recorded.attempt.output.as_mut());
    for attachment in outputs.flat_map(|output| &mut output.attachments) {
        attachment.url = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str, template: Option<&str>) -> Option<String> {
        let mut attachment = Attachment {
            name: "a".to_owned(),
            kind: None,
            path: Some(path.to_owned()),
            url: None,
        };
        link(
            &mut attachment,
            template.map(|text| text.parse().unwrap()).as_ref(),
        );
        attachment.url
    }

    #[test]
    fn a_path_of_a_report_cannot_leave_its_place_in_the_address() {
        let template = Some("https://ci.test/a/{path}?raw=1");
        for (path, expected) in [
            ("out/trace.zip", Some("https://ci.test/a/out/trace.zip?raw=1")),
            (
                "out/a b#\"<'>?&.png",
                Some("https://ci.test/a/out/a%20b%23%22%3C%27%3E%3F%26.png?raw=1"),
            ),
            ("../secret", None),
            ("a/../../secret", None),
            ("/etc/passwd", None),
            ("C:/out/a.png", None),
            ("javascript:alert(1)", None),
            ("https://files.test/a.png", Some("https://files.test/a.png")),
        ] {
            assert_eq!(url(path, template).as_deref(), expected, "{path}");
        }
        assert_eq!(url("out/trace.zip", None), None);
        assert_eq!(
            url("http://files.test/a.png", None).as_deref(),
            Some("http://files.test/a.png")
        );
    }

    #[test]
    fn an_address_needs_a_host_of_its_own_and_one_place_for_the_path() {
        for wrong in [
            "https://ci.test/a",
            "https://{path}/a",
            "https://{path}",
            "javascript:{path}",
            "https://u:p@ci.test/{path}",
            "https://ci.test/{path}/{path}",
            "https://ci.test/{run}/{path}",
            "{path}",
        ] {
            assert!(wrong.parse::<ArtifactsUrl>().is_err(), "{wrong}");
        }
        assert!("https://ci.test/{path}".parse::<ArtifactsUrl>().is_ok());
    }
}
