//! The stored data: keys, results past their retention, and verdicts.

use assay_cli_terminal::{
    output::{count, shell_word},
    when::{distance, when},
};
use assay_domain::{
    key::{KeyEntry, KeyKind},
    project::Organization,
    store::{Administration, StoreError},
    timestamp::{DAY_MS, Timestamp},
};
use assay_repository::{BlockCounts, Inspection, ProjectState};

use crate::doctor::check::{Check, NAMED, Status};

/// How many days before its expiry a key is reported.
const SOON_DAYS: i64 = 14;
/// How many days results may stay past their retention before the check reports missing pruning.
const PRUNED_WITHIN_DAYS: i64 = 2;
/// After how many days without an import the check asks whether CI still sends reports.
const SILENT_DAYS: i64 = 7;

/// Whether each organization whose plan has the read API has a key for it, and which keys expire soon.
pub(crate) fn keys(store: &dyn Administration, now: Timestamp) -> Result<Check, StoreError> {
    let organizations = store.organizations()?;
    if organizations.is_empty() {
        return Ok(Check::warn(
            "keys",
            "no organization yet",
            "assay-admin org create NAME",
        ));
    }
    let mut valid = 0;
    let mut findings = Vec::new();
    for organization in &organizations {
        let mut keys = store.keys(organization.id)?;
        keys.retain(|key| key.kind == KeyKind::Read && key.revoked_at.is_none());
        valid += keys.iter().filter(|key| !is_expired(key, now)).count();
        findings.extend(read_key_findings(organization, &keys, now));
    }
    let summary = format!(
        "{}, {}",
        count(organizations.len(), "organization"),
        count(valid, "valid read key")
    );
    Ok(Check::ok("keys", summary).with_first(Status::Warn, findings, "", "assay-admin key list"))
}

/// The findings about an organization's read keys, none of them revoked, each with its advice.
fn read_key_findings(
    organization: &Organization,
    keys: &[KeyEntry],
    now: Timestamp,
) -> Vec<(String, String)> {
    if !organization.plan.has_read_api() {
        return Vec::new();
    }
    let name = &organization.name;
    let create = format!("assay-admin key create --org {} --days 90", shell_word(name));
    let (expired, valid): (Vec<_>, Vec<_>) = keys.iter().partition(|key| is_expired(key, now));
    if valid.is_empty() {
        let last = expired.iter().filter_map(|key| key.expires_at).max();
        let state = match last {
            Some(at) => format!(
                "{name:?} has no valid read key: the last expired {}",
                distance(at, now)
            ),
            None => format!("{name:?} has no read key"),
        };
        return vec![(state, create)];
    }
    let soon = now.plus_days(SOON_DAYS);
    let ends_soon = |key: &&&KeyEntry| key.expires_at.is_some_and(|at| at <= soon);
    let describe = |key: &&KeyEntry| {
        let at = key.expires_at.map(|at| when(at, now)).unwrap_or_default();
        (
            format!("the read key {}… of {name:?} expires {at}", key.prefix),
            format!("assay-admin key rotate {}", key.id),
        )
    };
    valid.iter().filter(ends_soon).map(describe).collect()
}

fn is_expired(key: &KeyEntry, now: Timestamp) -> bool {
    key.expires_at.is_some_and(|at| at <= now)
}

/// Whether results past their retention are deleted regularly.
pub(crate) fn retention(store: &dyn Administration, now: Timestamp) -> Result<Check, StoreError> {
    // The limit is later than the retention, so that daily pruning never triggers it.
    let due = store
        .prune(now.plus_days(-PRUNED_WITHIN_DAYS), true, &mut |_| ())?
        .projects;
    let (runs, results) = due.iter().fold((0, 0), |(runs, results), of| {
        (runs + of.runs, results + of.results)
    });
    let check = if runs == 0 {
        Check::ok("retention", "no stored result is long past its plan's retention")
    } else {
        Check::warn(
            "retention",
            format!(
                "{} with {} are past their plan's retention: no longer shown, still stored",
                count(runs, "run"),
                count(results, "result")
            ),
            "assay-admin prune (daily, from cron or a systemd timer)",
        )
    };
    let unfinished = store.unfinished_deletions()?;
    let organizations = unfinished
        .organizations
        .iter()
        .map(|organization| format!("the organization {:?} ({})", organization.name, organization.id));
    let projects = unfinished
        .projects
        .iter()
        .map(|project| format!("the project {:?} ({})", project.name, project.id));
    let names = organizations.chain(projects).take(NAMED);
    Ok(names.fold(check, |check, name| {
        let problem = format!("the deletion of {name} is not finished");
        check.with_finding(Status::Warn, problem, "assay-admin prune")
    }))
}

/// Whether every project's verdicts are current and sound.
pub(crate) fn projects(inspection: &mut Inspection, now: Timestamp) -> Result<(Check, Check), StoreError> {
    let projects = inspection.projects()?;
    let BlockCounts { unsound, .. } = inspection.verdicts()?;
    let verdicts = match unsound {
        0 => verdicts(&projects, now),
        _ => verdicts(&projects, now).with_finding(
            Status::Fail,
            format!("{} cannot be read", count(unsound, "row")),
            "assay-admin rebuild",
        ),
    };
    Ok((verdicts, packs(&projects, &inspection.unreadable_packs()?)))
}

fn verdicts(projects: &[ProjectState], now: Timestamp) -> Check {
    let runs: i64 = projects.iter().map(|project| project.runs).sum();
    let check = Check::ok(
        "verdicts",
        format!("{} with {}", count(projects.len(), "project"), count(runs, "run")),
    );
    if projects.is_empty() {
        return check.with_finding(Status::Ok, None, "assay-admin project create --org ORG NAME");
    }
    let limit = SILENT_DAYS * DAY_MS;
    let stale = |project: &&ProjectState| {
        project.runs > 0 && project.evaluated_at.is_none_or(|at| now.since_ms(at) > limit)
    };
    let findings = projects.iter().filter(stale).map(|project| {
        let name = &project.name;
        let finding = project.evaluated_at.map_or_else(
            || format!("{name:?} was never judged"),
            |at| format!("{name:?} was judged {}, at its last import", distance(at, now)),
        );
        (
            finding,
            "check that CI still sends reports with `assay run`, `assay upload` or `assay-admin import`",
        )
    });
    check.with_first(Status::Warn, findings, "", "")
}

/// Whether the blocks of results are sound, and the errors of attempts are there.
pub(crate) fn results(inspection: &mut Inspection) -> Result<Check, StoreError> {
    let (results, errors) = (inspection.blocks()?, inspection.errors()?);
    let attempts = inspection.attempts()?;
    let mut check = Check::ok(
        "results",
        format!("{} of results", count(results.blocks, "block")),
    );
    if results.unsound > 0 {
        check = check.with_finding(
            Status::Fail,
            format!(
                "{} cannot be read, one of {}",
                count(results.unsound, "block"),
                results.example.unwrap_or_default()
            ),
            "restore the table result_block from a backup, or import the run's reports again with --replace",
        );
    }
    if attempts.unsound > 0 {
        check = check.with_finding(
            Status::Fail,
            format!(
                "{} with a status that does not exist, one of {}",
                count(attempts.unsound, "attempt"),
                attempts.example.unwrap_or_default()
            ),
            "restore the table attempt from a backup, or import the run's reports again with --replace",
        );
    }
    if errors.unsound > 0 {
        check = check.with_finding(
            Status::Fail,
            format!("the errors of {} are missing", count(errors.unsound, "attempt")),
            "restore the table attempt_texts from a backup",
        );
    }
    Ok(check)
}

fn packs(projects: &[ProjectState], unreadable: &[String]) -> Check {
    let missing: Vec<_> = projects
        .iter()
        .filter(|project| project.without_pack > 0)
        .collect();
    let mut check = Check::ok("packs", "every run has a pack for the engine");
    if let [first, ..] = missing.as_slice() {
        let runs: i64 = missing.iter().map(|project| project.without_pack).sum();
        check = Check::fail(
            "packs",
            format!(
                "{} of {} without a pack (the first is {:?}): the flaky list omits them",
                count(runs, "run"),
                count(missing.len(), "project"),
                first.name
            ),
            "assay-admin rebuild",
        );
    }
    let findings = unreadable.iter().map(|run| {
        let found = format!("the pack of {run}; verdicts leave the run out");
        (found, "assay-admin rebuild")
    });
    check.with_first(Status::Fail, findings, " packs", "")
}
