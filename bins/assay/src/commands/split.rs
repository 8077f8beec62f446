//! `assay split`: the tests of one of several shards, by the usual durations of all.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use assay_cli_job::split::{Listing, Runner, Share, Timings};
use assay_cli_local::sources::{git, text};
use assay_cli_terminal::{message, misuse::Misuse, output, terminal};
use assay_domain::timestamp::Timestamp;
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{global::Global, runner_flag, server_flags::ProjectFlags, values};

const EXAMPLES: &str = "\
Every machine gives the same list and the same --total, and gets its own shard. All shards together are the list. The \
durations are medians of the newest ten passed runs of the stable branch. A new test counts as the median of its folder.

Examples:
  The second of eight shards, with ASSAY_URL and ASSAY_READ_KEY as variables of the job:
    npx playwright test --list | assay split --index 2 --total 8 --runner playwright --project storefront > tests.txt
    npx playwright test --test-list tests.txt
  pytest, with durations that an earlier job wrote:
    pytest --collect-only -q | assay split --index 2 --total 8 --runner pytest --timings timings.json > tests.txt
    pytest @tests.txt
  The durations for machines without a key:
    assay split --write timings.json --project storefront";

/// Print the tests of one shard of several that take equally long
///
/// Reads the runner's own list of tests, asks the server for their usual durations, and prints those of one shard in the
/// runner's format.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SplitArgs {
    /// The runner's list of tests; - or nothing for standard input
    #[arg(value_name = "LIST", default_value = "-")]
    list: PathBuf,
    /// The number of this shard, from 1
    #[arg(long, value_name = "N", required_unless_present = "write")]
    index: Option<usize>,
    /// The number of shards
    #[arg(long, value_name = "N", required_unless_present = "write", value_parser = values::shards)]
    total: Option<usize>,
    /// The runner whose list it is
    #[arg(long, required_unless_present = "write", value_parser = runner_flag::divided())]
    runner: Option<Runner>,
    /// Only runs that had arrived before this time; by default that of the checked-out commit
    #[arg(long, value_name = "TIME")]
    before: Option<Timestamp>,
    /// Read the durations from a file that --write wrote; no server is asked
    #[arg(long, value_name = "FILE", conflicts_with_all = ["write", "evenly"])]
    timings: Option<PathBuf>,
    /// Write the durations to a file, and print no list
    #[arg(long, value_name = "FILE", conflicts_with = "evenly")]
    write: Option<PathBuf>,
    /// Divide by number, and ask no server; all machines of a build must do so
    #[arg(long)]
    evenly: bool,
    #[command(flatten)]
    server: ProjectFlags,
}

/// The largest list and the largest file of durations.
const MOST_MIB: u64 = 256;

/// Runs `assay split`.
pub(crate) fn run(global: &Global, args: &SplitArgs) -> anyhow::Result<()> {
    if let Some(file) = &args.write {
        return write(global, args, file);
    }
    let (Some(index), Some(total), Some(runner)) = (args.index, args.total, args.runner) else {
        bail!(Misuse("--index, --total and --runner are required".to_owned()));
    };
    if !(1..=total).contains(&index) {
        bail!(Misuse(format!(
            "--index must be from 1 to --total, which is {total}"
        )));
    }
    let timings = match &args.timings {
        Some(file) => serde_json::from_str(&text::read(file, MOST_MIB)?)
            .with_context(|| format!("{} is no file of `assay split --write`", file.display()))?,
        None if args.evenly => Timings::default(),
        None => timings_of(&of_server(global, args)?)?,
    };
    let listing = Listing::parse(runner, &text::read(&args.list, MOST_MIB)?)?;
    let share = Share::new(&listing, &timings, index, total).context("the plan lacks this shard")?;
    for line in share.in_words() {
        message!("{line}");
    }
    if global.json {
        return output::print(true, &share.to_json(), String::new);
    }
    let mut out = terminal::plain_out();
    out.write_all(share.list().as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes the server's durations to a file.
fn write(global: &Global, args: &SplitArgs, file: &Path) -> anyhow::Result<()> {
    let answer = of_server(global, args)?;
    fs::write(file, format!("{answer}\n"))
        .with_context(|| format!("{} cannot be written", file.display()))?;
    let written = timings_of(&answer)?;
    let value = json!({ "written": file, "tests": written.tests.len(), "runs": written.runs.len() });
    output::print(global.json, &value, || {
        format!(
            "wrote the durations of {} tests to {}",
            written.tests.len(),
            file.display()
        )
    })
}

fn timings_of(answer: &Value) -> anyhow::Result<Timings> {
    Timings::deserialize(answer).context("the server's answer has no timings")
}

/// The server's answer.
fn of_server(global: &Global, args: &SplitArgs) -> anyhow::Result<Value> {
    let before = args.before.or_else(|| git::commit_time(Path::new(".")));
    let before = before.ok_or_else(|| {
        Misuse(
            "this folder has no commit whose time all machines share; give them the same --before TIME"
                .to_owned(),
        )
    })?;
    let answer = args
        .server
        .open(global)
        .and_then(|(mut api, project)| api.get(&format!("projects/{project}/timings?before={before}")));
    answer.context("the durations cannot be read; `--timings FILE` or `--evenly` on all machines divides without a server")
}
