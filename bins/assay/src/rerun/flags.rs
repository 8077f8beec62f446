//! The flags of reruns and burn-in.

use std::time::Duration;

use assay_cli_job::runners::Runner;
use assay_cli_terminal::values::duration;
use clap::Args;

use crate::runner_flag;

/// Heading of the help.
const GATE: &str = "The gate";

/// Which tests run again.
#[derive(Debug, Args)]
pub(crate) struct RerunFlags {
    /// Run tests again whose failure is unclear, for at most this time, and decide then: 90s, 5m
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "gate", help_heading = GATE)]
    rerun: Option<Duration>,
    /// Run new tests again, and those whose file the change touches, for at most this time: 60s. The gate does not pass if one is
    /// newly flaky
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "gate", help_heading = GATE)]
    burn_in: Option<Duration>,
    /// The runner of the command, if its words do not name it
    #[arg(long, value_name = "RUNNER", value_parser = runner_flag::runners(), requires = "gate", help_heading = GATE)]
    pub(super) runner: Option<Runner>,
}

impl RerunFlags {
    /// The time for reruns; none without reruns.
    pub(crate) fn budget(&self) -> Option<Duration> {
        self.rerun.filter(|budget| !budget.is_zero())
    }

    /// The time for new tests; none without burn-in.
    pub(crate) fn burn_in(&self) -> Option<Duration> {
        self.burn_in.filter(|budget| !budget.is_zero())
    }
}
