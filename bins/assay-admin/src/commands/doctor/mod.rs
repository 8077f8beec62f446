//! `assay-admin doctor`: checks the installation and gives advice.

mod address;
mod check;
mod messages;
mod server;
mod stored;
mod surroundings;

use anyhow::bail;
use assay_console::output;
use assay_domain::store::StoreError;
use assay_repository::{Database, Inspection};
use clap::Args;
use serde_json::json;

use self::check::{Check, Status};
use crate::{advice, clock, database, global::Global};

const EXAMPLES: &str = "\
Examples:
  assay-admin doctor
  In cron, which mails the output of a failed check:
    assay-admin doctor --json > /tmp/doctor.json || cat /tmp/doctor.json
  In a script, the advice:
    assay-admin doctor --json | jq -r '.checks[] | select(.status != \"ok\") | .advice[]'

Exit status: 0 if everything works or there are only warnings, else 1.";

/// Check the installation and print what to do
///
/// Checks the database and its version, the schema, roles and rights, clocks, sizes, and read keys that are about to
/// expire. Checks results past their retention, stale verdicts, and messages that were not delivered. Checks the private database's state and disk,
/// and Redis where it is used. Asks the address of the installation for pages, API and ingest listener, and whether a proxy
/// refuses a report of the largest size. Changes nothing. Checks that the connected role has no rights for are named and do not
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
    /// The largest report in MiB that the server takes, which a proxy must not refuse
    #[arg(long, value_name = "MIB", env = "ASSAY_INGEST_BODY_MIB", hide_env_values = true, default_value_t = address::BODY_MIB, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    ingest_body_mib: u64,
}

/// Runs `assay-admin doctor`.
pub(crate) fn run(global: &Global, args: &DoctorArgs) -> anyhow::Result<()> {
    let mut checks = check_all(global);
    let redis = args
        .redis_url
        .as_deref()
        .map(str::trim)
        .filter(|url| !url.is_empty());
    checks.extend(redis.map(surroundings::redis));
    checks.push(address::installation(
        args.public_url.as_deref(),
        args.ingest_body_mib,
    ));
    let worst = checks
        .iter()
        .map(|check| check.status)
        .max()
        .unwrap_or(Status::Ok);
    output::print(global.json, &json!({ "status": worst, "checks": checks }), || {
        checks.iter().map(Check::lines).collect()
    })?;
    let failed = checks.iter().filter(|check| check.status == Status::Fail).count();
    if failed > 0 {
        bail!("{} failed", output::count(u64::try_from(failed)?, "check"));
    }
    Ok(())
}

/// All checks of the database, as far as it can be reached.
fn check_all(global: &Global) -> Vec<Check> {
    let Some(url) = global.database_url() else {
        let (check, cluster) = surroundings::private(&global.data_dir(), &database::private_settings());
        let mut checks = vec![check];
        if let Some(cluster) = cluster {
            checks.push(surroundings::disk(cluster.base()));
            checks.extend(connected(&cluster.url("assay"), true));
        }
        return checks;
    };
    connected(url, false)
}

/// All checks behind a connection string.
fn connected(url: &str, is_private: bool) -> Vec<Check> {
    let mut inspection = match Inspection::connect(url) {
        Ok(inspection) => inspection,
        Err(error) => {
            let advice = std::error::Error::source(&error).map_or("", advice::of_unreachable);
            return vec![Check::unanswered("postgres", &error).with_finding(Status::Fail, None, advice)];
        }
    };
    let mut checks = Vec::new();
    let facts = inspection.server();
    checks.push(check_or_failure("postgres", facts.as_ref().map(server::version)));
    let comparison = inspection.schema();
    checks.push(check_or_failure(
        "schema",
        comparison
            .as_ref()
            .map(|comparison| server::schema(comparison, is_private)),
    ));
    let before = clock::now();
    let database_clock = inspection.clock();
    let after = clock::now();
    checks.push(check_or_failure(
        "clock",
        database_clock
            .as_ref()
            .map(|at| server::clock(before, *at, after)),
    ));
    if let Ok(facts) = &facts {
        let sizes = server::sizes(facts, &mut inspection);
        checks.push(check_or_failure("size", sizes.as_ref().map(Check::clone)));
    }
    // Stored data can only be read with the schema of this program.
    if comparison.is_ok_and(|comparison| comparison.pending.is_empty()) {
        checks.extend(check_stored_data(&mut inspection, url, is_private));
    }
    checks
}

/// Makes one check of the stored data.
type Question<'a> = &'a dyn Fn() -> Result<Check, StoreError>;

/// The stored data.
fn check_stored_data(inspection: &mut Inspection, url: &str, is_private: bool) -> Vec<Check> {
    let rights = inspection.rights(server::known_roles());
    let mut checks = vec![check_or_failure(
        "roles",
        rights.as_ref().map(|rights| server::roles(rights, is_private)),
    )];
    if !rights.is_ok_and(|rights| rights.iter().any(|role| role.is_connected && role.reads)) {
        return checks;
    }
    let now = clock::now();
    match Database::connect(url, database::options()) {
        Ok(database) => {
            let checked: [(_, &[&str], Question<'_>); 2] = [
                ("keys", &["organization", "api_key"], &|| {
                    stored::keys(&database, now)
                }),
                (
                    "retention",
                    &["organization", "project", "run", "partition"],
                    &|| stored::retention(&database, now),
                ),
            ];
            for (name, tables, check) in checked {
                checks.push(if_unreadable(inspection, name, tables).unwrap_or_else(|| {
                    let check = check();
                    check_or_failure(name, check.as_ref().map(Check::clone))
                }));
            }
        }
        Err(error) => checks.push(Check::unanswered("keys", &error)),
    }
    if !is_private {
        let backup_logins = inspection.backup_logins();
        checks.push(check_or_failure(
            "backup",
            backup_logins.as_ref().map(|logins| server::backup(logins)),
        ));
    }
    checks.push(
        if_unreadable(inspection, "messages", &["project", "message"]).unwrap_or_else(|| {
            let check = messages::check(inspection, now);
            check_or_failure("messages", check.as_ref().map(Check::clone))
        }),
    );
    checks.push(
        if_unreadable(
            inspection,
            "results",
            &["project", "result_block", "attempt", "attempt_texts"],
        )
        .unwrap_or_else(|| {
            let check = stored::results(inspection);
            check_or_failure("results", check.as_ref().map(Check::clone))
        }),
    );
    let tables = ["project", "run", "run_pack", "verdict_block", "verdict_evidence"];
    if let Some(unreadable) = if_unreadable(inspection, "verdicts", &tables) {
        checks.push(unreadable);
        return checks;
    }
    match stored::projects(inspection, now) {
        Ok(of_projects) => checks.extend(of_projects),
        Err(error) => checks.push(Check::unanswered("verdicts", &error)),
    }
    checks
}

/// The result of a check whose tables the connected role may not read; `None` if it may. This is not a fault, because
/// each program has a role with only the rights that it needs.
fn if_unreadable(inspection: &mut Inspection, name: &'static str, tables: &[&str]) -> Option<Check> {
    match inspection.unreadable(tables) {
        Ok(unreadable) if unreadable.is_empty() => None,
        Ok(unreadable) => Some(Check::ok(
            name,
            format!(
                "not checked: this role may not read {}; the owner of the tables may",
                unreadable.join(", ")
            ),
        )),
        Err(error) => Some(Check::unanswered(name, &error)),
    }
}

/// The check, or one that reports why the query failed.
fn check_or_failure(check: &'static str, answer: Result<Check, &StoreError>) -> Check {
    answer.unwrap_or_else(|error| Check::unanswered(check, error))
}
