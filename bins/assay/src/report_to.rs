//! Reports the state of a commit to the code host of the job.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use assay_cli_remote::{
    codehost::{Comment, Job, Line},
    server::http,
};
use assay_cli_terminal::{
    message,
    retry::{self, Backoff},
    terminal,
};
use assay_domain::id::RunId;

use crate::{environment, errors, sender::Sender};

/// The longest time that a job waits for its code host. The report of the tests is stored by then.
const LONGEST: Duration = Duration::from_secs(60);

/// Reports the commit of a stored run, if `--report-to` asks for it. A failure is a warning on standard error.
pub(crate) fn report(sender: &Sender<'_>, run: anyhow::Result<RunId>, deadline: Instant) {
    if sender.flags.report_to.is_none() {
        return;
    }
    let deadline = deadline.min(Instant::now() + LONGEST);
    if let Err(error) = run.and_then(|run| report_run(sender, run, deadline)) {
        errors::warn(
            sender.ci.provider,
            &format!("the result is not reported: {error:#}"),
        );
    }
}

fn report_run(sender: &Sender<'_>, run: RunId, deadline: Instant) -> anyhow::Result<()> {
    let Sender {
        global,
        flags,
        server,
        ci,
    } = *sender;
    let progress = global.progress();
    let mut compose = || {
        let mut backoff = Backoff::until(deadline);
        let answer = retry::until_expired(progress, &mut backoff, "the comment is not composed yet", || {
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
        progress,
        files: &|| assay_cli_local::sources::owners::tracked(Path::new(".")).unwrap_or_default(),
    };
    for line in job.report(flags.report_to, &run.to_string(), &comment, &mut compose) {
        match line {
            // The service reads commands from standard error, too. Standard output is the command's.
            Line::Command(command) => terminal::print_line(format_args!("{command}")),
            Line::Message(text) => message!("{text}"),
            Line::Warning(text) => errors::warn(ci.provider, &text),
        }
    }
    Ok(())
}
