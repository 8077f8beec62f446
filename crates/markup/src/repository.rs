//! Links to the repository of a CI run. The address of the run's page determines the repository.

use assay_domain::revision::is_commit;
use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that are escaped in a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// A repository on a host with a known address scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The address of its start page.
    base: String,
    host: Host,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    GitHub,
    GitLab,
    /// A host with GitHub's addresses for runs and commits only, such as Gitea.
    LikeGitHub,
}

impl Repository {
    /// The repository of the CI run at this address; none if the address has no known form.
    pub fn of_run(run_url: &str) -> Option<Self> {
        if let Some((base, _)) = run_url.split_once("/-/") {
            return Some(Self {
                base: base.to_owned(),
                host: Host::GitLab,
            });
        }
        let (base, _) = run_url.split_once("/actions/runs/")?;
        let host = if host(base).contains("github") {
            Host::GitHub
        } else {
            Host::LikeGitHub
        };
        Some(Self {
            base: base.to_owned(),
            host,
        })
    }

    /// The page of a commit.
    pub fn commit(&self, sha: &str) -> Option<String> {
        let base = is_commit(sha).then_some(&self.base)?;
        Some(match self.host {
            Host::GitHub | Host::LikeGitHub => format!("{base}/commit/{sha}"),
            Host::GitLab => format!("{base}/-/commit/{sha}"),
        })
    }

    /// The page of a pull request.
    pub fn pull_request(&self, number: i64) -> Option<String> {
        let base = &self.base;
        match self.host {
            Host::GitHub => Some(format!("{base}/pull/{number}")),
            Host::GitLab => Some(format!("{base}/-/merge_requests/{number}")),
            Host::LikeGitHub => None,
        }
    }

    /// The page of a file at a commit. `file` is relative to the repository's root.
    pub fn file(&self, sha: &str, file: &str) -> Option<String> {
        let is_inside = !file.starts_with(['/', '\\']) && !file.split('/').any(|part| part == "..");
        let base = (is_commit(sha) && is_inside).then_some(&self.base)?;
        let file = utf8_percent_encode(file, ESCAPED);
        match self.host {
            Host::GitHub => Some(format!("{base}/blob/{sha}/{file}")),
            Host::GitLab => Some(format!("{base}/-/blob/{sha}/{file}")),
            Host::LikeGitHub => None,
        }
    }
}

/// The host of an address, with its port.
pub fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// `content` as a link to another site, if there is one.
pub fn link(address: Option<&str>, content: &Markup) -> Markup {
    html! {
        @match address {
            Some(address) => a href=(address) rel="noopener noreferrer" { (content) },
            None => (content),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn addresses_have_the_form_of_their_host() {
        let of = |url: &str| {
            let repository = Repository::of_run(url)?;
            Some([
                repository.commit(SHA),
                repository.pull_request(7),
                repository.file(SHA, "tests/a b.ts"),
            ])
        };
        let some = |text: &str| Some(text.replace("SHA", SHA));
        assert_eq!(
            of("https://github.com/o/r/actions/runs/12/attempts/2"),
            Some([
                some("https://github.com/o/r/commit/SHA"),
                some("https://github.com/o/r/pull/7"),
                some("https://github.com/o/r/blob/SHA/tests/a%20b.ts"),
            ])
        );
        assert_eq!(
            of("https://gitlab.local/group/sub/r/-/pipelines/12"),
            Some([
                some("https://gitlab.local/group/sub/r/-/commit/SHA"),
                some("https://gitlab.local/group/sub/r/-/merge_requests/7"),
                some("https://gitlab.local/group/sub/r/-/blob/SHA/tests/a%20b.ts"),
            ])
        );
        assert_eq!(
            of("https://codeberg.org/o/r/actions/runs/12"),
            Some([some("https://codeberg.org/o/r/commit/SHA"), None, None])
        );
        assert_eq!(of("https://ci.local/job/web/12/"), None);
    }

    #[test]
    fn commits_and_files_outside_the_checkout_have_no_page() {
        let repository = Repository::of_run("https://github.com/o/r/actions/runs/1").unwrap();
        for sha in ["HEAD", "abc", "abc1234/../..", ""] {
            assert_eq!(repository.commit(sha), None, "{sha}");
        }
        for file in ["/abs/a.ts", "../a.ts", "a/../../b.ts", "\\\\host\\a.ts"] {
            assert_eq!(repository.file(SHA, file), None, "{file}");
        }
    }

    #[test]
    fn a_link_to_another_site_sends_no_referrer() {
        let drawn = link(Some("https://ci.test/?a=1&b=\"2"), &html! { "CI run" }).into_string();
        assert_eq!(
            drawn,
            "<a href=\"https://ci.test/?a=1&amp;b=&quot;2\" rel=\"noopener noreferrer\">CI run</a>"
        );
        assert_eq!(link(None, &html! { "CI run" }).into_string(), "CI run");
        assert_eq!(host("https://ci.test:8080/job?x"), "ci.test:8080");
    }
}
