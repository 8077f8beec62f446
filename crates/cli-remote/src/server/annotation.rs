//! Warnings in the form that a CI service shows beside the build.

use assay_cli_terminal::terminal;
use assay_domain::run::CiProvider;

/// The line of the job's log that the service shows as a warning, where it can.
pub fn warning(provider: Option<CiProvider>, text: &str) -> String {
    let text = terminal::one_line(text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match provider {
        Some(CiProvider::GithubActions) => format!("::warning title=Assay::{}", text.replace('%', "%25")),
        Some(CiProvider::AzurePipelines) => format!("##vso[task.logissue type=warning]Assay: {text}"),
        Some(CiProvider::Teamcity) => {
            let mut escaped = String::with_capacity(text.len());
            for c in text.chars() {
                if matches!(c, '|' | '\'' | '[' | ']') {
                    escaped.push('|');
                }
                escaped.push(c);
            }
            format!("##teamcity[message text='Assay: {escaped}' status='WARNING']")
        }
        Some(
            CiProvider::GitlabCi
            | CiProvider::Circleci
            | CiProvider::Buildkite
            | CiProvider::BitbucketPipelines
            | CiProvider::Jenkins
            | CiProvider::Other,
        )
        | None => format!("assay: warning: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_has_the_form_of_its_service() {
        let line = |provider| warning(provider, "100% of [it]\nwas 'lost'");
        assert_eq!(
            line(Some(CiProvider::GithubActions)),
            "::warning title=Assay::100%25 of [it] was 'lost'"
        );
        assert_eq!(
            line(Some(CiProvider::AzurePipelines)),
            "##vso[task.logissue type=warning]Assay: 100% of [it] was 'lost'"
        );
        assert_eq!(
            line(Some(CiProvider::Teamcity)),
            "##teamcity[message text='Assay: 100% of |[it|] was |'lost|'' status='WARNING']"
        );
        assert_eq!(line(None), "assay: warning: 100% of [it] was 'lost'");
    }
}
