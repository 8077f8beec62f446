//! `assay proof`: a verdict as a file, and the computation of one or of a gate's decision without a server.

use std::path::PathBuf;

use anyhow::Context as _;
use assay_answers::proof::{NotProved, VerdictProof};
use assay_cli_job::gate::{proof::DecisionProof, show};
use assay_cli_local::sources::text;
use assay_cli_remote::server::read_api::path_of_test;
use assay_cli_terminal::{misuse::Misuse, output, terminal};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::{global::Global, server_flags::ProjectFlags};

const EXAMPLES: &str = "\
Examples:
  The verdict on a test, with ASSAY_URL and ASSAY_READ_KEY as variables:
    assay proof --project storefront --test 'cart > pays' > proof.json
  Compute it again, without a server, or a decision that assay gate --proof wrote:
    assay proof check proof.json

Exit status of check: 0 the same verdict or decision, 1 a number differs or was changed, and its place is on standard error, 2 the file
cannot be read.";

/// Write a verdict with its inputs to a file, or check such a file
///
/// The file has the runs of the window, the main constants of the engine, and the answer. It has no key, no text of an error and
/// no name of another test.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct ProofArgs {
    #[command(subcommand)]
    check: Option<ProofCommand>,
    /// The test's stored name
    #[arg(long, value_name = "NAME")]
    test: Option<String>,
    /// The test's stored file, if several tests have the name
    #[arg(long, value_name = "PATH", requires = "test")]
    file: Option<String>,
    #[command(flatten)]
    server: ProjectFlags,
}

#[derive(Debug, Subcommand)]
enum ProofCommand {
    /// Compute the verdict or decision of a file again, without a server and a network
    #[command(after_help = "\
Example:
  assay proof check proof.json")]
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// The largest file.
const MOST_MIB: u64 = 512;

/// Runs `assay proof`.
pub(crate) fn run(global: &Global, args: &ProofArgs) -> anyhow::Result<()> {
    if let Some(ProofCommand::Check { file }) = &args.check {
        let unread = |error: anyhow::Error| Misuse(format!("{} is not checked: {error:#}", file.display()));
        let text = text::read(file, MOST_MIB).map_err(unread)?;
        let proof = match VerdictProof::read(&text) {
            Err(NotProved::Form(_)) => return check_decision(global, &text, unread),
            read => read.map_err(|error| unread(error.into()))?,
        };
        proof.check()?;
        let (question, answer) = (&proof.question.value, &proof.answer.value);
        let json =
            json!({ "holds": true, "test": question.test, "status": answer.status, "runs": question.runs });
        return output::print(global.json, &json, || {
            format!(
                "the same verdict: {} is {} ({}), by {}\n",
                question.test.name,
                answer.status,
                answer.explanation,
                output::count(question.runs, "run")
            )
        });
    }
    let test = args.test.as_deref();
    let test = test.ok_or_else(|| Misuse("name the test with --test, or check a file".to_owned()))?;
    let (mut api, project) = args.server.open(global)?;
    let answer = api.get(&path_of_test(project, test, args.file.as_deref(), "/proof"))?;
    let proof = answer.get("proof").filter(|proof| !proof.is_null());
    let proof = proof.context("the test has no result in the last 14 days, so it has no verdict")?;
    output::print(true, proof, String::new)
}

/// Decides again by the file of a decision.
fn check_decision(
    global: &Global,
    text: &str,
    unread: impl Fn(anyhow::Error) -> Misuse,
) -> anyhow::Result<()> {
    let decision = DecisionProof::read(text)
        .map_err(|error| unread(error.into()))?
        .check()?;
    let json = json!({ "holds": true, "outcome": decision.outcome, "failed": decision.failed.len() });
    output::print(global.json, &json, || {
        format!("the same decision\n{}", show::text(&decision, terminal::width()))
    })
}
