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

use std::borrow::Borrow;

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
    checks.push(answer("postgres", facts.as_ref().map(server::version)));
    if let Some(rights) = reader(&mut inspection).transpose() {
        checks.push(answer("rights", rights));
        return checks;
    }
    let comparison = inspection.schema();
    let of_schema = comparison
        .as_ref()
        .map(|comparison| server::schema(comparison, checked.is_private));
    checks.push(answer("schema", of_schema));
    let before = (checked.clock)();
    let at = inspection.clock();
    let after = (checked.clock)();
    checks.push(answer("clock", at.map(|at| server::clock(before, at, after))));
    if let Ok(facts) = &facts {
        checks.push(answer("size", server::sizes(facts, &mut inspection)));
    }
    let is_writable = facts.is_ok_and(|facts| !facts.is_standby);
    let is_behind = comparison
        .as_ref()
        .is_ok_and(|comparison| !comparison.pending.is_empty());
    if is_writable && !checked.is_private && !is_behind {
        checks.push(answer("rights", rehearsal::check(&mut inspection, checked)));
    }
    // Stored data can only be read with the schema of this program.
    if comparison.is_ok() && !is_behind {
        check_stored_data(&mut inspection, checked, &mut checks);
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

/// Adds the checks of the stored data.
fn check_stored_data(inspection: &mut Inspection, checked: &Checked<'_>, checks: &mut Vec<Check>) {
    let rights = inspection.rights(server::known_roles());
    let roles = rights
        .as_ref()
        .map(|rights| server::roles(rights, checked.is_private));
    checks.push(answer("roles", roles));
    if !rights.is_ok_and(|rights| rights.iter().any(|role| role.is_connected && role.reads)) {
        return;
    }
    let now = (checked.clock)();
    match Database::connect(checked.url, checked.options) {
        Ok(database) => {
            let tables = ["organization", "api_key"];
            checks.push(if_readable(inspection, "keys", &tables, |_| {
                stored::keys(&database, now)
            }));
            let tables = ["organization", "project", "run", "partition"];
            checks.push(if_readable(inspection, "retention", &tables, |_| {
                stored::retention(&database, now)
            }));
        }
        Err(error) => checks.push(Check::unanswered("keys", &error)),
    }
    if !checked.is_private {
        let logins = inspection.backup_logins();
        checks.push(answer("backup", logins.map(|logins| server::backup(&logins))));
    }
    checks.push(if_readable(
        inspection,
        "messages",
        &["project", "message"],
        |inspection| messages::check(inspection, now),
    ));
    let tables = ["project", "result_block", "attempt", "attempt_texts"];
    checks.push(if_readable(inspection, "results", &tables, stored::results));
    let tables = ["project", "run", "run_pack", "verdict_block", "verdict_evidence"];
    let mut packs = None;
    checks.push(if_readable(inspection, "verdicts", &tables, |inspection| {
        let (verdicts, of_packs) = stored::projects(inspection, now)?;
        packs = Some(of_packs);
        Ok(verdicts)
    }));
    checks.extend(packs);
}

/// The check, unless the connected role may not read its tables. That is not a fault, because each program has a role
/// with only the rights that it needs.
fn if_readable(
    inspection: &mut Inspection,
    name: &'static str,
    tables: &[&str],
    check: impl FnOnce(&mut Inspection) -> Result<Check, StoreError>,
) -> Check {
    let checked = inspection
        .unreadable(tables)
        .and_then(|unreadable| match unreadable.as_slice() {
            [] => check(inspection),
            unreadable => Ok(Check::ok(
                name,
                format!(
                    "not checked: this role may not read {}; the owner of the tables may",
                    unreadable.join(", ")
                ),
            )),
        });
    answer(name, checked)
}

/// The check, or one that reports why the query failed.
fn answer(name: &'static str, answer: Result<Check, impl Borrow<StoreError>>) -> Check {
    answer.unwrap_or_else(|error| Check::unanswered(name, error.borrow()))
}
