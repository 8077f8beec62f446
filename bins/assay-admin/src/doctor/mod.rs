//! The checks of an installation. Each has a status, findings and advice.

pub(crate) mod address;
pub(crate) mod advice;
mod check;
pub(crate) mod clocks;
mod identity;
mod messages;
mod rehearsal;
mod server;
mod stored;
mod surroundings;

use assay_domain::{store::StoreError, timestamp::Timestamp, verdict::Judge};
use assay_repository::{Database, Inspection, PoolOptions};

pub(crate) use check::{Check, Status};
pub(crate) use identity::providers;
pub(crate) use surroundings::{disk, private, redis};

/// A database that is checked.
pub(crate) struct Checked<'a> {
    /// Its connection string.
    pub(crate) url: &'a str,
    /// Whether it is a private one, which its programs migrate by themselves.
    pub(crate) is_private: bool,
    /// How the checks of keys and retention connect.
    pub(crate) options: PoolOptions,
    /// Reads this machine's clock.
    pub(crate) clock: fn() -> Timestamp,
    /// The engine.
    pub(crate) judge: &'a dyn Judge,
}

/// All checks of a database, as far as it can be reached and its role may read it. Changes nothing: what the role must do
/// is done in a transaction that is rolled back.
pub(crate) fn database(checked: &Checked<'_>) -> Vec<Check> {
    let mut inspection = match Inspection::connect(checked.url) {
        Ok(inspection) => inspection,
        Err(error) => {
            let advice = std::error::Error::source(&error).map_or("", advice::of_unreachable);
            return vec![Check::unanswered("postgres", &error).with_finding(Status::Fail, None, advice)];
        }
    };
    let mut checks = Vec::new();
    let facts = inspection.server();
    checks.push(check_or_failure("postgres", facts.as_ref().map(server::version)));
    let reader = reader(&mut inspection);
    if !matches!(reader, Ok(None)) {
        checks.extend(reader.unwrap_or_else(|error| Some(Check::unanswered("rights", &error))));
        return checks;
    }
    let comparison = inspection.schema();
    checks.push(check_or_failure(
        "schema",
        comparison
            .as_ref()
            .map(|comparison| server::schema(comparison, checked.is_private)),
    ));
    let before = (checked.clock)();
    let database_clock = inspection.clock();
    let after = (checked.clock)();
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
    let is_behind = comparison
        .as_ref()
        .is_ok_and(|comparison| !comparison.pending.is_empty());
    let is_writable = facts.is_ok_and(|facts| !facts.is_standby);
    if is_writable && !checked.is_private && !is_behind {
        let rights = rehearsal::check(&mut inspection, checked);
        checks.push(check_or_failure("rights", rights.as_ref().map(Check::clone)));
    }
    // Stored data can only be read with the schema of this program.
    if comparison.is_ok_and(|comparison| comparison.pending.is_empty()) {
        checks.extend(check_stored_data(&mut inspection, checked));
    }
    checks
}

/// The views of people with SQL, and their group.
const READER: (&str, [&str; 3]) = ("assay_reader", ["reader_run", "reader_result", "reader_test"]);

/// The check of a login that only reads the views for people; `None` for any other login.
fn reader(inspection: &mut Inspection) -> Result<Option<Check>, StoreError> {
    let (group, views) = READER;
    if inspection.groups(&[group])?.is_empty() || !inspection.groups(server::known_roles())?.is_empty() {
        return Ok(None);
    }
    let unreadable = inspection.unreadable(&views)?;
    Ok(Some(match unreadable.is_empty() {
        true => Check::ok(
            "rights",
            format!(
                "this login reads {}; check the rest by another one",
                views.join(", ")
            ),
        ),
        false => Check::fail(
            "rights",
            format!("this login may not read {}", unreadable.join(", ")),
            server::GRANT,
        ),
    }))
}

/// Makes one check of the stored data.
type Question<'a> = &'a dyn Fn() -> Result<Check, StoreError>;

/// The stored data.
fn check_stored_data(inspection: &mut Inspection, checked: &Checked<'_>) -> Vec<Check> {
    let rights = inspection.rights(server::known_roles());
    let mut checks = vec![check_or_failure(
        "roles",
        rights
            .as_ref()
            .map(|rights| server::roles(rights, checked.is_private)),
    )];
    if !rights.is_ok_and(|rights| rights.iter().any(|role| role.is_connected && role.reads)) {
        return checks;
    }
    let now = (checked.clock)();
    match Database::connect(checked.url, checked.options) {
        Ok(database) => {
            let questions: [(_, &[&str], Question<'_>); 2] = [
                ("keys", &["organization", "api_key"], &|| {
                    stored::keys(&database, now)
                }),
                (
                    "retention",
                    &["organization", "project", "run", "partition"],
                    &|| stored::retention(&database, now),
                ),
            ];
            for (name, tables, check) in questions {
                checks.push(if_unreadable(inspection, name, tables).unwrap_or_else(|| {
                    let check = check();
                    check_or_failure(name, check.as_ref().map(Check::clone))
                }));
            }
        }
        Err(error) => checks.push(Check::unanswered("keys", &error)),
    }
    if !checked.is_private {
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
