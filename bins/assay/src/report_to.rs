//! Reports the state of a commit to the code host of the job.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use assay_cli_remote::{
    codehost::{Comment, Job, Line},
    server::{annotation, http, ingest::Server},
};
use assay_cli_terminal::{
    message,
    retry::{self, Backoff},
};
use assay_domain::id::RunId;
use assay_reports::ci::CiContext;

use crate::{environment, upload_flags::UploadFlags};

/// The longest time that a job waits for its code host. The report of the tests is stored by then.
const LONGEST: Duration = Duration::from_secs(60);

/// Reports the commit of a stored run, if `--report-to` asks for it. A failure is a warning on standard error.
pub(crate) fn report(
    json: bool,
    flags: &UploadFlags,
    server: &Server,
    ci: &CiContext,
    run: anyhow::Result<RunId>,
    deadline: Instant,
) {
    if flags.report_to.is_none() {
        return;
    }
    let deadline = deadline.min(Instant::now() + LONGEST);
    if let Err(error) = run.and_then(|run| report_run(json, flags, server, ci, run, deadline)) {
        annotation::warn(ci.provider, &format!("the result is not reported: {error:#}"));
    }
}

fn report_run(
    json: bool,
    flags: &UploadFlags,
    server: &Server,
    ci: &CiContext,
    run: RunId,
    deadline: Instant,
) -> anyhow::Result<()> {
    let mut compose = || {
        let mut backoff = Backoff::until(deadline);
        let answer = retry::until_expired(json, &mut backoff, "the comment is not composed yet", || {
            server.comment(run, http::until(deadline))
        })?;
        anyhow::Ok(Comment::of_answer(&answer)?)
    };
    let comment = compose()?;
    let job = Job {
        provider: ci.provider,
        pull_request: flags.report.run.pr.or(ci.context.pull_request_number),
        variable: &environment::variable,
        deadline,
        json,
        files: &|| assay_cli_local::sources::owners::tracked(Path::new(".")).unwrap_or_default(),
    };
    for line in job.report(flags.report_to, &run.to_string(), &comment, &mut compose) {
        match line {
            // The service reads commands from standard error, too. Standard output is the command's.
            Line::Command(command) => eprintln!("{command}"),
            Line::Message(text) => message!("{text}"),
            Line::Warning(text) => annotation::warn(ci.provider, &text),
        }
    }
    Ok(())
}
