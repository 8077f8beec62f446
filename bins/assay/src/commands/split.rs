//! `assay split`: the tests of one of several shards, by the usual durations of all.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use assay_console::{message, misuse::Misuse, output, terminal};
use assay_domain::timestamp::Timestamp;
use assay_split::{Listing, Plan, Runner, Timings};
use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    git::git,
    global::Global,
    server_flags::{ConnectionFlags, ReadApiFlags},
};

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

/// Print the tests of one shard, so that all shards take equally long
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
    #[arg(long, value_name = "N", required_unless_present = "write", value_parser = shards)]
    total: Option<usize>,
    /// The runner whose list it is
    #[arg(long, required_unless_present = "write", value_parser = runners())]
    runner: Option<Runner>,
    /// The project: its id or name; without it the only project of the key
    #[arg(long)]
    project: Option<String>,
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
    api: ReadApiFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// The largest number of shards.
const MOST_SHARDS: usize = 10_000;
/// The largest list and the largest file of durations, in bytes.
const MOST_BYTES: u64 = 256 << 20;

fn runners() -> impl TypedValueParser<Value = Runner> {
    let words = Runner::ALL.map(|runner| {
        let help = format!("Divides the {} of {}", runner.units(), runner.list_command());
        PossibleValue::new(runner.word()).help(help)
    });
    PossibleValuesParser::new(words).try_map(|word| {
        let named = Runner::ALL.into_iter().find(|runner| runner.word() == word);
        named.ok_or_else(|| format!("{word} is no runner"))
    })
}

fn shards(text: &str) -> Result<usize, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=MOST_SHARDS).contains(number));
    number.ok_or_else(|| format!("must be a number from 1 to {MOST_SHARDS}"))
}

/// Runs `assay split`.
pub(crate) fn run(global: &Global, args: &SplitArgs) -> anyhow::Result<()> {
    if let Some(file) = &args.write {
        let timings = of_server(global, args)?;
        fs::write(file, format!("{timings}\n"))
            .with_context(|| format!("{} cannot be written", file.display()))?;
        let written = Timings::deserialize(&timings).context("the server's answer has no timings")?;
        let value = json!({ "written": file, "tests": written.tests.len(), "runs": written.runs.len() });
        return output::print(global.json, &value, || {
            format!(
                "wrote the durations of {} tests to {}",
                written.tests.len(),
                file.display()
            )
        });
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
        Some(file) => serde_json::from_str(&read(file)?)
            .with_context(|| format!("{} is no file of `assay split --write`", file.display()))?,
        None if args.evenly => Timings::default(),
        None => {
            Timings::deserialize(&of_server(global, args)?).context("the server's answer has no timings")?
        }
    };
    let listing = Listing::parse(runner, &read(&args.list)?)?;
    let plan = Plan::new(&listing, &timings, total);
    let shard = plan.shards.get(index - 1).context("the plan lacks this shard")?;
    let selection = listing.selection(&shard.units);
    explain(&plan, &listing, &timings, index);
    if global.json {
        let value = json!({
            "list": selection,
            "usage": runner.run_command(),
            "units": shard.units.len(),
            "unitsInAll": listing.units().len(),
            "unknown": plan.unknown,
            "runs": timings.runs.len(),
            "milliseconds": plan.shards.iter().map(|shard| shard.milliseconds).collect::<Vec<_>>(),
        });
        return output::print(true, &value, String::new);
    }
    let mut out = terminal::plain_out();
    out.write_all(selection.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints the plan on standard error.
fn explain(plan: &Plan, listing: &Listing, timings: &Timings, index: usize) {
    let shard = plan.shards.get(index.saturating_sub(1));
    let (units, milliseconds) = shard.map_or((0, 0), |shard| (shard.units.len(), shard.milliseconds));
    let (total, all) = (plan.shards.len(), listing.units().len());
    let known = all - plan.unknown;
    if units == 0 {
        message!(
            "shard {index} of {total} has no tests: the list has {all}. Do not call the runner with an empty list"
        );
    } else if known == 0 {
        message!(
            "shard {index} of {total}: {units} of {all}. No duration is known, so the list is divided by number"
        );
    } else {
        let seconds = |milliseconds: u64| milliseconds.div_ceil(1_000);
        message!(
            "shard {index} of {total}: {units} of {all}, about {} s (all shards: {} to {} s; durations of {} runs of {:?})",
            seconds(milliseconds),
            seconds(plan.shortest_ms()),
            seconds(plan.longest_ms()),
            timings.runs.len(),
            timings.stable_branch,
        );
        if plan.unknown > 0 {
            message!(
                "{} of {all} have no duration and count as the median of their folder",
                plan.unknown
            );
        }
    }
}

/// The server's answer.
fn of_server(global: &Global, args: &SplitArgs) -> anyhow::Result<Value> {
    let before = match args.before {
        Some(before) => before,
        None => commit_time()?,
    };
    let mut api = args.api.client(global.json, &args.connection)?;
    let answer = api
        .project(args.project.as_deref())
        .and_then(|project| api.get(&format!("projects/{project}/timings?before={before}")));
    answer.context("the durations cannot be read; `--timings FILE` or `--evenly` on all machines divides without a server")
}

/// The time of the checked-out commit, which all machines of a build have in common.
fn commit_time() -> anyhow::Result<Timestamp> {
    let shown = git(Path::new("."), &["show", "--no-patch", "--format=%ct", "HEAD"]);
    let seconds = shown.ok().and_then(|text| text.trim().parse::<i64>().ok());
    let seconds = seconds.ok_or_else(|| {
        Misuse(
            "this folder has no commit whose time all machines share; give them the same --before TIME"
                .to_owned(),
        )
    })?;
    Ok(Timestamp::from_unix_ms(seconds.saturating_mul(1_000)))
}

/// The text of a file, or of standard input.
fn read(file: &Path) -> anyhow::Result<String> {
    let (name, mut text) = (file.display().to_string(), String::new());
    let read = if name == "-" {
        std::io::stdin().lock().take(MOST_BYTES).read_to_string(&mut text)
    } else {
        fs::File::open(file).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text))
    };
    let bytes = read.with_context(|| format!("{name} cannot be read as text"))?;
    if u64::try_from(bytes).unwrap_or(u64::MAX) >= MOST_BYTES {
        bail!("{name} has more than {} MiB", MOST_BYTES >> 20);
    }
    Ok(text)
}
