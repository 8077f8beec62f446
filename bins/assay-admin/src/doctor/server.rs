//! Postgres itself: its version, the schema, roles, clocks and sizes.

use assay_cli_terminal::{output, when::length};
use assay_domain::{store::StoreError, timestamp::Timestamp};
use assay_repository::{Inspection, Rights, SchemaComparison, ServerFacts};

use crate::doctor::check::{Check, Status};
use crate::doctor::clocks::{SKEW_WRONG_MS, skew_ms};

/// The oldest supported version.
const OLDEST: i32 = 15;
/// The role that the server should connect as. The migrations create it.
pub(crate) const SERVER_ROLE: &str = "assay_server";
const ROLES: &[&str] = &[SERVER_ROLE, "assay_importer", "assay_ingester", "assay_notifier"];
/// The advice that restores the rights of these roles, for the owner of the tables.
pub(crate) const GRANT: &str = "SELECT assay_grant_roles();";
/// The difference between two clocks from which a warning is given, in milliseconds.
const SKEW_NOTED_MS: i64 = 2_000;

/// The server's version and the connected user.
pub(crate) fn version(facts: &ServerFacts) -> Check {
    let state = format!(
        "Postgres {}, database {} as role {}{}",
        facts.version,
        facts.database,
        facts.role,
        if facts.is_standby {
            ", a standby: it can be read, not written"
        } else {
            ""
        }
    );
    let mut check = Check::ok("postgres", state);
    if facts.version_number / 10_000 < OLDEST {
        let advice = format!("upgrade Postgres to {OLDEST} or newer");
        check = check.with_finding(Status::Fail, None, advice);
    }
    if facts.encoding != "UTF8" {
        let state = format!(
            "its encoding is {}, which cannot store every test name",
            facts.encoding
        );
        let advice = "create a new database: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0";
        check = check.with_finding(Status::Fail, state, advice);
    }
    check
}

/// Whether the schema is that of this program. Every other command migrates a private database.
pub(crate) fn schema(comparison: &SchemaComparison, is_private: bool) -> Check {
    let newest = comparison.newest.as_deref().unwrap_or("none");
    match (comparison.pending.as_slice(), comparison.unknown.as_slice()) {
        ([], []) => Check::ok("schema", format!("up to date: {newest}")),
        ([], unknown) => Check::warn(
            "schema",
            format!("newer than this program: it has {}", unknown.join(", ")),
            "update assay and assay-server; the changelog says whether both versions may run meanwhile",
        ),
        (pending, _) if is_private => Check::warn(
            "schema",
            format!("behind by {}", pending.join(", ")),
            "nothing: the next command or server that uses it brings it up to date",
        ),
        (pending, _) => Check::fail(
            "schema",
            format!("behind by {}", pending.join(", ")),
            "assay-admin migrate",
        ),
    }
}

/// The rights of the connected role and of the programs' roles.
pub(crate) fn roles(rights: &[Rights], is_private: bool) -> Check {
    let mut check = Check::ok(
        "roles",
        rights.iter().map(describe).collect::<Vec<_>>().join("; "),
    );
    for role in rights {
        if !role.reads {
            check = check.with_finding(
                Status::Fail,
                format!("{} may not read the results", role.role),
                if ROLES.contains(&role.role.as_str()) {
                    GRANT.to_owned()
                } else {
                    format!("GRANT {SERVER_ROLE} TO {}", quoted(&role.role))
                },
            );
        }
        if role.is_connected && role.superuser && !is_private {
            check = check.with_finding(
                Status::Warn,
                format!("{} is a superuser; Assay needs no superuser", role.role),
                format!(
                    "let assay-server connect as a role of its own: CREATE ROLE web LOGIN PASSWORD '…' IN ROLE {SERVER_ROLE}"
                ),
            );
        }
        if role.role == SERVER_ROLE && (role.records || role.administers) {
            check = check.with_finding(
                Status::Warn,
                format!("{SERVER_ROLE} may write tables that the server only reads"),
                format!("REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA public FROM {SERVER_ROLE}"),
            );
        }
    }
    check
}

/// Whether a login for backups exists: one that may read every table and has no further rights.
pub(crate) fn backup(logins: &[String]) -> Check {
    match logins {
        [] => Check::warn(
            "backup",
            "no login may read all tables without further rights, so backups need the owner or a superuser",
            "make the login assay_backup for pg_dump as in deploy/roles.sql; if it exists, GRANT USAGE ON SCHEMA public, and \
             SELECT ON ALL TABLES IN SCHEMA public, TO assay_backup",
        ),
        logins => Check::ok("backup", format!("{} may read all tables", logins.join(", "))),
    }
}

/// The roles that are checked beside the connected one.
pub(crate) const fn known_roles() -> &'static [&'static str] {
    ROLES
}

fn describe(rights: &Rights) -> String {
    let can = [
        (rights.reads, "read"),
        (rights.records, "import"),
        (rights.administers, "administer"),
        (rights.migrates, "migrate"),
    ];
    let can: Vec<_> = can
        .iter()
        .filter(|(can, _)| *can)
        .map(|(_, word)| *word)
        .collect();
    let can = if can.is_empty() {
        "do nothing".to_owned()
    } else {
        can.join(", ")
    };
    format!(
        "{}{} may {can}",
        rights.role,
        if rights.is_connected { " (connected)" } else { "" }
    )
}

fn quoted(role: &str) -> String {
    format!("\"{}\"", role.replace('"', "\"\""))
}

/// The difference between this machine's clock and the database's. `before` and `after` were read around the query.
pub(crate) fn clock(before: Timestamp, database: Timestamp, after: Timestamp) -> Check {
    let skew = skew_ms(before, database, after);
    let certain = skew.abs();
    if certain < SKEW_NOTED_MS {
        return Check::ok("clock", "this machine and the database agree");
    }
    let state = format!(
        "this machine is {} {} the database",
        length(certain),
        if skew > 0 { "behind" } else { "ahead of" }
    );
    let advice = "set both clocks by NTP (timedatectl set-ntp true): periods, expiries and verdicts use this machine's clock";
    if certain < SKEW_WRONG_MS {
        Check::warn("clock", state, advice)
    } else {
        Check::fail("clock", state, advice)
    }
}

/// The sizes on disk.
pub(crate) fn sizes(facts: &ServerFacts, inspection: &mut Inspection) -> Result<Check, StoreError> {
    let largest: Vec<_> = inspection
        .largest_tables()?
        .iter()
        .map(|table| format!("{} {}", table.name, output::bytes(table.bytes)))
        .collect();
    let largest = match largest.as_slice() {
        [] => String::new(),
        some => format!("; the largest: {}", some.join(", ")),
    };
    Ok(Check::ok(
        "size",
        format!("{}{largest}", output::bytes(facts.size_bytes)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_agree_within_the_round_trip() {
        let at = Timestamp::from_unix_ms;
        assert_eq!(clock(at(0), at(1_900), at(0)).status, Status::Ok);
        assert_eq!(clock(at(0), at(9_000), at(10_000)).status, Status::Ok);
        assert_eq!(clock(at(0), at(5_000), at(0)).status, Status::Warn);
        let ahead = clock(at(200_000), at(0), at(200_010));
        assert_eq!(ahead.status, Status::Fail);
        assert!(ahead.lines().contains("3 min ahead of"), "{}", ahead.lines());
    }

    #[test]
    fn a_schema_is_behind_ahead_or_current() {
        let comparison = |pending: &[&str], unknown: &[&str]| SchemaComparison {
            newest: Some("1_create".to_owned()),
            pending: pending.iter().map(ToString::to_string).collect(),
            unknown: unknown.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(schema(&comparison(&[], &[]), false).status, Status::Ok);
        assert_eq!(schema(&comparison(&[], &["3"]), false).status, Status::Warn);
        assert_eq!(schema(&comparison(&["2_more"], &[]), true).status, Status::Warn);
        assert_eq!(
            schema(&comparison(&["2_more"], &["3"]), false).status,
            Status::Fail
        );
    }

    #[test]
    fn a_writable_server_is_reported() {
        let rights = |role: &str, records| Rights {
            role: role.to_owned(),
            is_connected: role == "me",
            superuser: false,
            reads: true,
            records,
            administers: false,
            migrates: false,
        };
        assert_eq!(
            roles(&[rights("me", true), rights(SERVER_ROLE, false)], false).status,
            Status::Ok
        );
        assert_eq!(
            roles(&[rights("me", true), rights(SERVER_ROLE, true)], false).status,
            Status::Warn
        );
        let blind = Rights {
            reads: false,
            ..rights("me", false)
        };
        assert_eq!(roles(&[blind], false).status, Status::Fail);
    }

    #[test]
    fn a_server_must_be_new_enough_and_store_every_text() {
        let facts = |version_number, encoding: &str| ServerFacts {
            database: "d".to_owned(),
            role: "r".to_owned(),
            version: "x".to_owned(),
            version_number,
            encoding: encoding.to_owned(),
            is_standby: false,
            size_bytes: 0,
        };
        assert_eq!(version(&facts(150_004, "UTF8")).status, Status::Ok);
        assert_eq!(version(&facts(140_019, "UTF8")).status, Status::Fail);
        assert_eq!(version(&facts(180_000, "LATIN1")).status, Status::Fail);
    }
}
