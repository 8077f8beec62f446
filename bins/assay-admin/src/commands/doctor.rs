//! `assay-admin doctor`: checks the installation and gives advice.

use std::path::PathBuf;

use anyhow::bail;
use assay_cli_terminal::output;
use assay_flakiness::Engine;
use clap::Args;
use serde_json::json;

use crate::{
    clock, database,
    doctor::{Check, Checked, Status, address},
    global::Global,
};

const EXAMPLES: &str = "\
Examples:
  assay-admin doctor
  In cron, which mails the output of a failed check or of a warning:
    assay-admin doctor --strict --json > /tmp/doctor.json || cat /tmp/doctor.json
  In a script, the advice:
    assay-admin doctor --json | jq -r '.checks[] | select(.status != \"ok\") | .advice[]'

Exit status: 0 if everything works or there are only warnings, else 1. With --strict, 1 for warnings too.";

/// Check the installation and print what to do
///
/// Checks the database and its version, the schema, roles and rights, clocks, sizes, and read keys that are about to
/// expire. Checks results past their retention, stale verdicts, and messages that were not delivered. Checks the private database's state and disk,
/// and Redis where it is used. Asks the address of the installation for pages, API and ingest listener, and whether a proxy
/// refuses a report of the largest size. Asks the providers at which people sign in, and compares their clocks. Imports a report, reads, sends and marks as the connected role's programs do, in a
/// transaction that is rolled back, and names the GRANT of each right that is missing. Changes nothing. Checks that the connected role has no rights for are named and do not
/// fail.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// The Redis server with the shared rate limit
    #[arg(long, value_name = "URL", env = "ASSAY_REDIS_URL", hide_env_values = true)]
    redis_url: Option<String>,
    /// The address under which people, agents and CI reach the installation
    #[arg(long, value_name = "URL", env = "ASSAY_PUBLIC_URL", hide_env_values = true)]
    public_url: Option<String>,
    /// The server's file of the providers at which people sign in
    #[arg(
        long,
        value_name = "FILE",
        env = "ASSAY_IDENTITY_FILE",
        hide_env_values = true
    )]
    identity_file: Option<PathBuf>,
    /// The largest report in MiB that the server takes, which a proxy must not refuse
    #[arg(long, value_name = "MIB", env = "ASSAY_INGEST_BODY_MIB", hide_env_values = true, default_value_t = address::BODY_MIB, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    ingest_body_mib: u64,
    /// Fail for warnings too
    #[arg(long)]
    strict: bool,
}

/// Runs `assay-admin doctor`.
pub(crate) fn run(global: &Global, args: &DoctorArgs) -> anyhow::Result<()> {
    let mut checks = check_all(global);
    let redis = args
        .redis_url
        .as_deref()
        .map(str::trim)
        .filter(|url| !url.is_empty());
    checks.extend(redis.map(crate::doctor::redis));
    checks.push(address::installation(
        args.public_url.as_deref(),
        args.ingest_body_mib,
    ));
    let file = args
        .identity_file
        .as_deref()
        .filter(|path| !path.as_os_str().is_empty());
    checks.extend(file.map(|path| crate::doctor::providers(path, args.public_url.as_deref(), clock::now)));
    let worst = checks
        .iter()
        .map(|check| check.status)
        .max()
        .unwrap_or(Status::Ok);
    output::print(global.json, &json!({ "status": worst, "checks": checks }), || {
        checks.iter().map(Check::lines).collect()
    })?;
    let fails_from = if args.strict { Status::Warn } else { Status::Fail };
    let failed = checks.iter().filter(|check| check.status >= fails_from).count();
    if failed > 0 {
        bail!("{} failed", output::count(failed, "check"));
    }
    Ok(())
}

/// All checks of the database, as far as it can be reached.
fn check_all(global: &Global) -> Vec<Check> {
    let of = |url: &str, is_private| {
        crate::doctor::database(&Checked {
            url,
            is_private,
            options: database::options(),
            clock: clock::now,
            judge: &Engine::default(),
        })
    };
    if let Some(url) = global.database_url() {
        return of(url, false);
    }
    let (check, cluster) = crate::doctor::private(&global.data_dir(), &database::private_settings());
    let mut checks = vec![check];
    if let Some(cluster) = cluster {
        checks.push(crate::doctor::disk(cluster.base()));
        checks.extend(of(&cluster.url("assay"), true));
    }
    checks
}
