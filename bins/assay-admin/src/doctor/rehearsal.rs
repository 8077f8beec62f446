//! What the connected login must do, done in a transaction that is rolled back.

use std::time::Duration;

use assay_cli_terminal::output;
use assay_domain::{
    attempt::{Attempt, AttemptOutput, AttemptStatus, ErrorDetail},
    decision::{DecisionError, GateDecision, GateOutcome},
    execution::Executions,
    id::{KeyId, OrganizationId, ProjectId, SessionId},
    ingest::{IngestKeys, IngestTerms, Upload},
    key::{KeyHash, NewKey},
    owners::OwnersFile,
    page::PerPage,
    period::{Days, Period},
    plan::Plan,
    project::{Caller, Project},
    recording::{CheckoutFiles, ImportReceipt, RecordedAttempt, RecordedTest, Recording, RunContext, Sender},
    renames::RenamesFile,
    rules::{DailyLimits, RecordingRules, UploadBudget},
    run::{RunQuery, RunState},
    settings::ChatEvent,
    signature::{Category, ErrorClass, SignatureQuery, SignatureSort},
    store::{
        Administration as _, Attempt as Delivery, MessageKey, MessageKind, NameError, NewMessage,
        Outbox as _, ProjectChange, ReadKeys as _, RecordError, Recorder as _, Store as _, StoreError,
    },
    test::{FileSelector, ShownAs, TestName, TestSelector},
    timestamp::Timestamp,
    verdict::Judge,
};
use assay_repository::{Database, Inspection, PoolOptions};

use crate::doctor::{
    Checked,
    check::{Check, Status, reasons},
    server,
};

/// The name of everything that is written.
const NAME: &str = "assay-admin doctor";
/// The longest statement, and the longest wait for imports under way.
const LONGEST: Duration = Duration::from_secs(10);
/// The subject of the check.
const CHECK: &str = "rights";

/// Compares the grants of the login's groups with those of the migrations, and does what its programs do.
pub(crate) fn check(inspection: &mut Inspection, checked: &Checked<'_>) -> Result<Check, StoreError> {
    let mut groups = inspection.groups(server::known_roles())?;
    let is_of_group = !groups.is_empty();
    if !is_of_group {
        groups = server::known_roles().iter().map(ToString::to_string).collect();
    }
    let mut missing = inspection.missing_grants(&groups)?;
    if !is_of_group {
        missing.extend(inspection.missing_reads()?);
    }
    if !missing.is_empty() {
        let check = Check::fail(
            CHECK,
            format!("{} missing", output::count(missing.len(), "right")),
            "",
        );
        return Ok(missing.iter().fold(check, |check, grant| {
            let advice = format!("as the owner of the tables: {grant};");
            check.with_finding(Status::Fail, grant.clone(), advice)
        }));
    }
    let of_groups = Check::ok(CHECK, "the programs' groups have every right");
    // A superuser is of every group, too.
    let (refused, tried) = if inspection.rights(&[])?.iter().any(|role| role.administers) {
        let tried = "the programs' groups have every right, and this login may administer";
        (administer(checked)?, Check::ok(CHECK, tried))
    } else if is_of_group {
        let Some(of) = inspection.smallest_project()? else {
            return Ok(of_groups);
        };
        let tried = format!("{} may do everything that it must do", groups.join(", "));
        (rehearse(checked, &groups, of)?, Check::ok(CHECK, tried))
    } else {
        return Ok(of_groups);
    };
    Ok(refused
        .into_iter()
        .fold(tried, |check, (work, error)| match &error {
            StoreError::NotPermitted { .. } => check.with_finding(
                Status::Fail,
                format!("it may not {work}: {}", reasons(&error)),
                format!("as the owner of the tables: {}", server::GRANT),
            ),
            StoreError::Unreachable(_)
            | StoreError::Exhausted { .. }
            | StoreError::Failed { .. }
            | StoreError::Corrupt { .. } => {
                let found = format!("it could not {work}: {}", reasons(&error));
                check.with_finding(Status::Warn, found, "")
            }
        }))
}

/// An error of one piece of work as that of the store.
fn failed(doing: &'static str, source: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Failed {
        doing,
        source: Box::new(source),
    }
}

/// A piece of work that failed.
type Refused = (&'static str, StoreError);

/// Connects with a transaction that is rolled back.
fn connect(checked: &Checked<'_>) -> Result<Database, StoreError> {
    let options = PoolOptions {
        size: 1,
        rolls_back: true,
        statement_timeout: LONGEST,
        lock_round: LONGEST,
        ..checked.options
    };
    Database::connect(checked.url, options)
}

/// Makes, changes and deletes an organization with a project and keys, and prunes, as the owner of the tables does.
fn administer(checked: &Checked<'_>) -> Result<Vec<Refused>, StoreError> {
    let (database, now) = (connect(checked)?, (checked.clock)());
    let named = |error| match error {
        NameError::Store(error) => error,
        other @ (NameError::Taken { .. } | NameError::Missing(_)) => failed("naming something", other),
    };
    let organization = match database.create_organization(NAME, Plan::Pro, now).map_err(named) {
        Ok(organization) => organization.id,
        Err(error) => return Ok(vec![("make an organization", error)]),
    };
    let project = match database
        .create_project(organization, NAME, "main", now)
        .map_err(named)
    {
        Ok(project) => project.id,
        Err(error) => return Ok(vec![("make a project", error)]),
    };
    let key = |number| NewKey {
        id: KeyId(project.0),
        hash: KeyHash([number; 32]),
        prefix: "rolled back".to_owned(),
        created_at: now,
    };
    let change = ProjectChange {
        stable_branch: Some("trunk".to_owned()),
        ..ProjectChange::default()
    };
    // In 1970 no result is past its retention, so a large database is not pruned here.
    let prune = || match database.unfinished_deletions()?.projects.is_empty() {
        true => database
            .prune(Timestamp::from_unix_ms(0), false, &mut |_| {})
            .map(drop),
        false => Ok(()),
    };
    let expires_at = now.plus_days(1);
    let mut refused = Vec::new();
    let mut note = |work, outcome: Result<(), StoreError>| {
        refused.extend(outcome.err().map(|error| (work, error)));
    };
    let plan = database.set_plan(organization, Plan::Standard);
    note("change a plan", plan.map(drop));
    let name = database.rename_project(project, CHECK);
    note("rename a project", name.map_err(named));
    let set = database.set_project(project, &change, checked.judge, now);
    note("set a project", set.map(drop));
    let created = database.create_read_key(organization, &key(0), expires_at);
    note("make a read key", created.map(drop));
    let revoked = database.revoke_key(KeyId(project.0), now);
    note("revoke a key", revoked.map(drop));
    let deleted = database.delete_key(KeyId(project.0), now);
    note("delete a key", deleted.map(drop));
    let created = database.create_ingest_key(project, &key(1), &IngestTerms::default());
    note("make an ingest key", created.map(drop));
    note("prune", prune());
    let deleted = database.delete_organization(organization, now, &mut |_| {});
    note("delete an organization", deleted.map(drop));
    Ok(refused)
}

/// Does the work of these groups in a project.
fn rehearse(
    checked: &Checked<'_>,
    groups: &[String],
    (organization, project): (OrganizationId, ProjectId),
) -> Result<Vec<Refused>, StoreError> {
    let rehearsal = Rehearsal {
        database: connect(checked)?,
        organization,
        project,
        judge: checked.judge,
        now: (checked.clock)(),
    };
    let is_of = |group: &str| groups.iter().any(|known| known == group);
    let (records, receives) = (is_of("assay_importer"), is_of("assay_ingester"));
    let mut refused = Vec::new();
    let mut note = |work, outcome: Result<(), StoreError>| {
        refused.extend(outcome.err().map(|error| (work, error)));
    };
    note("read results", rehearsal.read());
    if is_of(server::SERVER_ROLE) {
        note("check keys and sessions", rehearsal.check_keys());
    }
    if records || receives {
        for (content, work) in [(0, "import a report"), (1, "replace a report")] {
            let imported = rehearsal.import(content, RecordingRules::Unrestricted);
            note(work, imported.map(drop));
        }
    }
    if receives {
        note("receive a report", rehearsal.receive());
    }
    if is_of("assay_notifier") {
        note("send messages", rehearsal.send());
    }
    Ok(refused)
}

/// A transaction that is rolled back, and what it is about.
struct Rehearsal<'a> {
    database: Database,
    organization: OrganizationId,
    project: ProjectId,
    judge: &'a dyn Judge,
    now: Timestamp,
}

impl Rehearsal<'_> {
    /// Reads each noun, as the pages, the API, the gate and messages do.
    fn read(&self) -> Result<(), StoreError> {
        let (database, now) = (&self.database, self.now);
        let caller = Caller {
            organization: self.organization,
            plan: Plan::Pro,
            only: None,
        };
        let Some(project) = database.project_of_key(self.project, now)? else {
            return Ok(());
        };
        database.ready()?;
        database.projects(&caller)?;
        database.settings(&project)?;
        database.branches(&project)?;
        let period = Period::ending(now, Days::default());
        let runs = database.runs(&project, &RunQuery::newest(period, PerPage::Ten))?;
        for run in runs.runs.iter().take(1) {
            database.run(&project, run.id)?;
        }
        database.timings(&project, now)?;
        self.read_tests(&project, &period)
    }

    fn read_tests(&self, project: &Project, period: &Period) -> Result<(), StoreError> {
        let (database, now) = (&self.database, self.now);
        let mut names: Vec<TestName> = Vec::new();
        database.with_snapshot(project, &mut |snapshot| {
            let known = snapshot.all_test_names()?;
            names = known.iter().take(1).map(|(_, name)| name.owned()).collect();
            snapshot.owners_file()?;
            snapshot.observations(period.from, now).map(drop)
        })?;
        for name in names {
            let test = TestSelector {
                name: name.name,
                file: FileSelector::Any,
            };
            database.history(project, &test, period)?;
            database.verdict(project, &test)?;
            database.test_summary(project, &test, period, 1)?;
        }
        let signatures = SignatureQuery {
            period: *period,
            branch: None,
            category: None,
            search: Some(NAME.to_owned()),
            sort: SignatureSort::Occurrences,
            page: 1,
            per_page: PerPage::Ten,
        };
        database.signatures(project, &signatures).map(drop)
    }

    /// Checks and notes keys and sessions, as the server does, and lists uploads.
    fn check_keys(&self) -> Result<(), StoreError> {
        let (database, key) = (&self.database, KeyId(self.project.0));
        database.key(&KeyHash([0; 32]))?;
        database.key_used(key, self.now)?;
        let session = SessionId(self.project.0);
        match database.end_session(session, Some(key), self.now.plus_days(1), self.now) {
            // There is no such key.
            Ok(()) | Err(StoreError::Failed { .. }) => {}
            Err(error) => return Err(error),
        }
        database.is_session_ended(session)?;
        if let Some(project) = database.project_of_key(self.project, self.now)? {
            database.project_uploads(&project, 1)?;
        }
        Ok(())
    }

    /// The project's stable branch, whose runs also store the files of a checkout and what changed.
    fn stable_branch(&self) -> Result<Option<String>, StoreError> {
        let Some(project) = self.database.project_of_key(self.project, self.now)? else {
            return Ok(None);
        };
        let newest = RunQuery::newest(Period::ending(self.now, Days::default()), PerPage::Ten);
        Ok(Some(self.database.runs(&project, &newest)?.stable_branch))
    }

    /// Imports a report of one failed test with this content, in the place of an earlier one.
    fn import(&self, content: u8, rules: RecordingRules) -> Result<ImportReceipt, StoreError> {
        let mut executions = Executions::with_capacity(1);
        let attempt = Attempt {
            status: AttemptStatus::Failed,
            duration_ms: Some(1),
            started_at: None,
            browser: Some(NAME.to_owned()),
            skip_reason: None,
            output: Some(Box::new(AttemptOutput {
                attachments: Vec::new(),
                console: Some(NAME.to_owned()),
                timeout_ms: None,
            })),
            errors: vec![ErrorDetail {
                message: Some(NAME.to_owned()),
                ..ErrorDetail::default()
            }],
        };
        let class = ErrorClass {
            fingerprint: "0".repeat(32),
            version: 1,
            title: NAME.to_owned(),
            category: Category::Assertion,
        };
        executions.push([RecordedAttempt {
            attempt,
            class: Some(class),
        }]);
        let recording = Recording {
            run_key: NAME.to_owned(),
            content: [content; 32],
            shard: None,
            context: RunContext {
                branch: self.stable_branch()?,
                ..RunContext::default()
            },
            sender: Sender::default(),
            replaces: true,
            is_backfilled: false,
            started_at: self.now,
            finished_at: None,
            state: RunState::Completed,
            report_errors: Vec::new(),
            tests: vec![RecordedTest {
                test: TestName {
                    name: NAME.to_owned(),
                    file_path: None,
                },
                shown_as: ShownAs::default(),
                attempts: executions,
            }],
            passed_groups: Vec::new(),
            checkout: CheckoutFiles {
                owners: Some(OwnersFile {
                    path: "CODEOWNERS".to_owned(),
                    text: String::new(),
                    files: String::new(),
                }),
                renames: Some(RenamesFile { text: String::new() }),
            },
        };
        let imported = self
            .database
            .record_under(self.project, &recording, rules, self.judge, self.now);
        imported.map_err(|error| match error {
            RecordError::Store(error) | RecordError::NotJudged(error) => error,
            other @ (RecordError::NoProject(_)
            | RecordError::ShardingDiffers { .. }
            | RecordError::RevisionDiffers { .. }
            | RecordError::ClockDiffers { .. }
            | RecordError::NotAllowed(_)) => failed("importing a report", other),
        })
    }

    /// Looks up a key, records an upload and stores a decision about it, as the ingest listener does.
    fn receive(&self) -> Result<(), StoreError> {
        let (database, key) = (&self.database, KeyId(self.project.0));
        database.ingest_key(&KeyHash([0; 32]))?;
        database.trusted_keys("", "")?;
        let budget = UploadBudget {
            key,
            bytes: 1,
            of_day: DailyLimits {
                tests: Some(u64::MAX),
                bytes: None,
            },
        };
        let rules = RecordingRules::IngestKey {
            backfill: false,
            pull_requests_only: false,
            budget: Some(budget),
        };
        let imported = self.import(2, rules)?;
        database.record_upload(&Upload {
            key,
            project: self.project,
            at: self.now,
            run_id: imported.run_id,
            run_number: imported.run_number,
            shard_id: imported.shard_id,
            effect: imported.effect,
            bytes: 1,
            files: 1,
            client: None,
            sender: None,
        })?;
        let decision = GateDecision {
            run_id: imported.run_id,
            shard_id: None,
            outcome: GateOutcome::Blocked,
            failed: 1,
            excused: Vec::new(),
        };
        let stored = database.record_decision(self.project, &decision, rules, self.now);
        stored.map(drop).map_err(|error| match error {
            DecisionError::Store(error) => error,
            other @ (DecisionError::NoRun
            | DecisionError::NoUpload { .. }
            | DecisionError::NoTest { .. }
            | DecisionError::NotAllowed(_)) => failed("storing a decision", other),
        })
    }

    /// Settles edges, writes a message and notes its delivery, as assay-notify does.
    fn send(&self) -> Result<(), StoreError> {
        let (database, project, now) = (&self.database, self.project, self.now);
        database.outbox_projects(now)?;
        database.register(project, Some(ChatEvent::ALL), now)?;
        let edges = database.unsettled(project)?;
        let numbers: Vec<_> = edges.iter().map(|edge| edge.number).collect();
        let through = database.settle(project, &numbers, &[], now)?;
        database.settled(project)?;
        let message = NewMessage {
            target: NAME,
            number: 1,
            id: project.0,
            kind: MessageKind::Changes,
            through,
            content: Some("{}".to_owned()),
            thread: None,
        };
        database.add_message(project, &message, now)?;
        let key = MessageKey {
            project,
            target: NAME,
            number: 1,
        };
        database.due(project, NAME, now)?;
        database.note_attempt(key, &Delivery::Delivered { receipt: None }, now)?;
        database.forget(project, now).map(drop)
    }
}
