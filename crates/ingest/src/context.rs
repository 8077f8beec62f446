//! The context of a run. Flags override CI's variables, and those override the report.

use assay_domain::{
    merge_queue::MergeQueue, recording::RunContext, revision::is_same_revision, run::CiProvider,
};

use crate::{
    choice::{Chooser, Origin},
    text::{self, storable_text},
    values::{LONGEST_LINE, LONGEST_MESSAGE},
};

/// The context of the run. Each value is from the first source that has it.
///
/// Facts of a commit are taken only from a source with the chosen commit. A title is taken only from a source with the
/// chosen pull request. Otherwise a report imported with `--commit` inside another build would get that build's tested
/// revision, and the engine would compare different code.
pub(crate) fn resolve(
    flags: &RunContext,
    variables: &RunContext,
    report: &RunContext,
    chooser: &mut Chooser,
) -> RunContext {
    let sources = [
        (Origin::Flag, flags),
        (Origin::Variables, variables),
        (Origin::Report, report),
    ];
    let mut line =
        |what, sources: &[(Origin, &RunContext)], field: fn(&RunContext) -> Option<&String>, limit| {
            chooser.first(
                what,
                sources
                    .iter()
                    .map(|(from, source)| (*from, field(source).and_then(|text| storable_text(text, limit)))),
            )
        };

    let branch = line("branch", &sources, |s| s.branch.as_ref(), usize::MAX).map(|name| text::branch(&name));
    let base_branch =
        line("base branch", &sources, |s| s.base_branch.as_ref(), usize::MAX).map(|name| text::branch(&name));
    let commit_sha = line("commit", &sources, |s| s.commit_sha.as_ref(), LONGEST_LINE);
    let of_commit: Vec<_> = sources
        .iter()
        .copied()
        .filter(|(from, source)| *from == Origin::Flag || is_of_commit(source, commit_sha.as_deref()))
        .collect();
    let tested_revision = line(
        "tested revision",
        &of_commit,
        |s| s.tested_revision.as_ref(),
        LONGEST_LINE,
    );
    let commit_message = line(
        "commit message",
        &of_commit,
        |s| s.commit_message.as_ref(),
        LONGEST_MESSAGE,
    );
    let author_name = line("author", &of_commit, |s| s.author_name.as_ref(), LONGEST_LINE);
    let suite = line("suite", &sources, |s| s.suite.as_ref(), LONGEST_LINE);
    let address = |source: &RunContext| source.run_url.as_deref().and_then(text::web_address);
    let run_url = chooser.first(
        "page of the CI run",
        sources.map(|(from, source)| (from, address(source))),
    );
    let pull_request_number = chooser.first(
        "pull request",
        sources.map(|(from, source)| (from, source.pull_request_number)),
    );
    // The branch of a merge queue names what it merges.
    let queue = branch.as_deref().and_then(|branch| MergeQueue::of(branch, None));
    let queue = queue.unwrap_or_default();
    let pull_request_number = pull_request_number.or(queue.pull_requests.last().copied());
    let base_branch = base_branch.or(queue.base);
    let of_pull_request = sources.into_iter().filter(|(_, source)| {
        source.pull_request_number.is_none() || source.pull_request_number == pull_request_number
    });
    let title = |source: &RunContext| {
        let title = source.pull_request_title.as_deref();
        title.and_then(|title| storable_text(title, LONGEST_LINE))
    };
    let pull_request_title = chooser.first(
        "pull request title",
        of_pull_request.map(|(from, source)| (from, title(source))),
    );
    let ci_provider: Option<CiProvider> = chooser.first(
        "CI provider",
        sources.map(|(from, source)| (from, source.ci_provider)),
    );

    RunContext {
        branch,
        commit_sha,
        commit_message,
        author_name,
        tested_revision,
        pull_request_number,
        pull_request_title,
        ci_provider,
        suite,
        run_url,
        base_branch,
        // Only a client with the checkout knows it.
        merge_base: flags.merge_base.clone(),
    }
}

/// Whether a source's facts are about the chosen commit. All sources are of one report. A flag may abbreviate the commit
/// or name the head of the pull request, while CI's variables name the merge commit.
///
/// The store compares the revisions of two reports: see [`RunContext::may_have_revision_of`].
fn is_of_commit(source: &RunContext, commit: Option<&str>) -> bool {
    let (Some(own), Some(commit)) = (source.commit_sha.as_deref(), commit) else {
        return true;
    };
    is_same_revision(own, commit)
        || source
            .tested_revision
            .as_deref()
            .is_some_and(|head| is_same_revision(head, commit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ci() -> RunContext {
        RunContext {
            branch: Some("topic".into()),
            commit_sha: Some("aaaa1111".into()),
            commit_message: Some("Merge".into()),
            tested_revision: Some("bbbb2222".into()),
            pull_request_number: Some(7),
            pull_request_title: Some("Seven".into()),
            ci_provider: Some(CiProvider::GithubActions),
            ..RunContext::default()
        }
    }

    #[test]
    fn the_page_of_the_ci_run_is_an_address_from_the_first_source_that_has_one() {
        let with = |url: &str| RunContext {
            run_url: Some(url.to_owned()),
            ..RunContext::default()
        };
        let resolved = |variables: &str| {
            let report = with("https://ci.test/report");
            let commit = resolve(
                &RunContext::default(),
                &with(variables),
                &report,
                &mut Chooser::default(),
            );
            commit.run_url.unwrap()
        };
        assert_eq!(resolved("https://ci.test/7"), "https://ci.test/7");
        assert_eq!(resolved("javascript:alert(1)"), "https://ci.test/report");
    }

    #[test]
    fn flags_override_variables_and_variables_override_the_report() {
        let flags = RunContext {
            branch: Some("main".into()),
            ..RunContext::default()
        };
        let report = RunContext {
            branch: Some("other".into()),
            author_name: Some("Ada".into()),
            ..RunContext::default()
        };
        let mut chooser = Chooser::default();
        let context = resolve(&flags, &ci(), &report, &mut chooser);
        assert_eq!(context.branch.as_deref(), Some("main"));
        assert_eq!(context.commit_sha.as_deref(), Some("aaaa1111"));
        assert_eq!(context.author_name.as_deref(), Some("Ada"));
        let from: Vec<_> = chooser
            .choices
            .iter()
            .map(|choice| (choice.what, choice.from))
            .collect();
        assert!(from.contains(&("branch", Origin::Flag)));
        assert!(from.contains(&("commit", Origin::Variables)));
        assert!(from.contains(&("author", Origin::Report)));
    }

    #[test]
    fn a_long_branch_is_cut_to_the_length_of_a_filter() {
        let context = |end: &str| {
            let flags = RunContext {
                branch: Some(format!("{}{end}", "b".repeat(600))),
                ..RunContext::default()
            };
            let none = RunContext::default();
            resolve(&flags, &none, &none, &mut Chooser::default())
                .branch
                .unwrap()
        };
        assert_eq!(context("1").len(), 200);
        assert_ne!(context("1"), context("2"));
    }

    #[test]
    fn another_commit_does_not_inherit_the_builds_tested_revision() {
        let flags = RunContext {
            commit_sha: Some("cccc".into()),
            pull_request_number: Some(8),
            ..RunContext::default()
        };
        let context = resolve(&flags, &ci(), &RunContext::default(), &mut Chooser::default());
        assert_eq!((context.tested_revision, context.commit_message), (None, None));
        assert_eq!(
            (context.pull_request_number, context.pull_request_title),
            (Some(8), None)
        );
    }

    #[test]
    fn an_abbreviated_commit_is_the_is_same_revision() {
        let flags = RunContext {
            commit_sha: Some("AAAA".into()),
            ..RunContext::default()
        };
        let context = resolve(&flags, &ci(), &RunContext::default(), &mut Chooser::default());
        assert_eq!(context.tested_revision.as_deref(), Some("bbbb2222"));
    }
}
