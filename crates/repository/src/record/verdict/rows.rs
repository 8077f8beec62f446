//! The verdicts of a judgement in their stored form.

use std::collections::{BTreeMap, HashMap, HashSet};

use assay_domain::{
    observation::History,
    store::StoreError,
    timestamp::Timestamp,
    verdict::{ENGINE_WINDOW_DAYS, Evidence, Figures, Judgement, Verdict, VerdictStatus},
};
use diesel::{
    pg::PgRowByRowLoadingMode,
    prelude::*,
    sql_types::{Array, Integer, Uuid as SqlUuid},
};
use uuid::Uuid;

use crate::{
    db::{
        column::{At, corrupt, int},
        pool::Read,
        schema::{verdict_block, verdict_evidence},
    },
    read::{
        observation::Texts,
        verdict::Body,
        verdict_block::{BlockVerdict, OwnFigures, StoredBlocks, VerdictBlock, VerdictEvidence},
    },
};

/// Judged verdicts by test.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) verdicts: BTreeMap<i32, BlockVerdict>,
    /// Of the verdicts with runs or branches as evidence.
    evidence: HashMap<i32, VerdictEvidence>,
    /// The different bodies. Most tests share theirs with many others.
    bodies: Texts,
}

impl Rows {
    /// Adds a judgement. The outcome of the last run, and the start of the newest, are added later.
    pub(super) fn push(
        &mut self,
        judgement: Judgement,
        history: &History,
        run_numbers: &HashMap<&str, i32>,
    ) -> Result<(), StoreError> {
        let Judgement {
            verdict,
            mut evidence,
        } = judgement;
        let Verdict {
            test,
            status,
            reason,
            explanation,
            signals,
            labels,
            failing_on,
            figures,
            last_run,
        } = verdict;
        let (mut runs, mut named_runs) = (Vec::new(), Vec::new());
        for signal in &mut evidence.signals {
            let named = std::mem::take(&mut signal.runs);
            named_runs.push(named.len());
            for run in named {
                let number = run_numbers.get(run.as_str()).copied();
                runs.push(number.ok_or_else(|| corrupt("run of evidence", &run))?);
            }
        }
        if !runs.is_empty() || !failing_on.is_empty() {
            let evidence = VerdictEvidence {
                project_id: Uuid::nil(),
                test: int(test),
                failing_on: serde_json::to_string(&failing_on).map_err(unwritable)?,
                run_numbers: runs,
            };
            self.evidence.insert(int(test), evidence);
        }
        let last_run = last_run.and_then(|index| history.runs.get(index));
        let body = Body {
            explanation,
            signals,
            labels,
            figures,
            evidence,
            named_runs,
        };
        let verdict = BlockVerdict {
            reason,
            last_run: last_run.map(|last| last.run.number),
            ..self.bare(status, body)?
        };
        self.verdicts.insert(int(test), verdict);
        Ok(())
    }

    /// Adds the verdict on a test without results in the window.
    pub(super) fn push_outside_window(
        &mut self,
        test: i32,
        engine: String,
        newest: Option<At>,
    ) -> Result<(), StoreError> {
        let body = Body {
            explanation: format!("No runs in the last {ENGINE_WINDOW_DAYS} days"),
            signals: Vec::new(),
            labels: Vec::new(),
            figures: Figures::default(),
            evidence: Evidence {
                engine,
                now: Timestamp::from_unix_ms(0),
                window_days: ENGINE_WINDOW_DAYS,
                runs_seen: 0,
                runs_skipped: 0,
                runs_dropped: 0,
                dropped: Vec::new(),
                signals: Vec::new(),
            },
            named_runs: Vec::new(),
        };
        let verdict = BlockVerdict {
            in_window: false,
            newest,
            ..self.bare(VerdictStatus::InsufficientData, body)?
        };
        self.verdicts.insert(test, verdict);
        Ok(())
    }

    /// A verdict of the window with the figures of this body, which the body then lacks.
    fn bare(&mut self, status: VerdictStatus, mut body: Body) -> Result<BlockVerdict, StoreError> {
        let own = &mut body.figures;
        let own = OwnFigures {
            time_lost_ms: own.time_lost_ms.take().map(u64::cast_signed),
            flake_score: std::mem::take(&mut own.flake_score),
            flake_rate: std::mem::take(&mut own.flake_rate),
            broken_probability: own.broken_probability.take(),
            impact: std::mem::take(&mut own.impact),
        };
        body.evidence.now = Timestamp::from_unix_ms(0);
        Ok(BlockVerdict {
            status,
            reason: None,
            in_window: true,
            last_run: None,
            last_status: None,
            last_offset_ms: None,
            newest: None,
            own,
            body: self
                .bodies
                .shared(&serde_json::to_string(&body).map_err(unwritable)?),
        })
    }

    /// The rows to write, if all verdicts of the project that are not among these stay as they are stored.
    pub(super) fn changes(
        self,
        connection: &mut PgConnection,
        project: Uuid,
        stored: StoredBlocks,
    ) -> Read<Changes> {
        let mut changed: HashSet<i32> = self
            .verdicts
            .iter()
            .filter(|(test, verdict)| stored.verdicts.get(test) != Some(verdict))
            .map(|(test, _)| *test)
            .collect();
        let mut all = stored.verdicts;
        let judged: HashSet<i32> = self.verdicts.keys().copied().collect();
        all.extend(self.verdicts);
        let mut evidence = self.evidence;
        let mut outdated = Vec::new();
        // Row by row, because the runs of all tests are large.
        let rows = verdict_evidence::table
            .filter(verdict_evidence::project_id.eq(project))
            .select(VerdictEvidence::as_select())
            .load_iter::<VerdictEvidence, PgRowByRowLoadingMode>(connection)?;
        for row in rows {
            let row = row?;
            let new = evidence.get(&row.test);
            if new.is_some_and(|new| new.run_numbers == row.run_numbers && new.failing_on == row.failing_on) {
                evidence.remove(&row.test);
            } else if judged.contains(&row.test) || !all.contains_key(&row.test) {
                outdated.push(row.test);
            }
        }
        changed.extend(evidence.keys().copied().chain(outdated.iter().copied()));
        for row in evidence.values_mut() {
            row.project_id = project;
        }
        let blocks = VerdictBlock::of_verdicts(project, &all);
        let is_same = |blocks: &[VerdictBlock], block: &VerdictBlock| {
            blocks
                .binary_search_by_key(&block.block, |other| other.block)
                .is_ok_and(|place| blocks.get(place) == Some(block))
        };
        let replaced = stored.blocks.iter().filter(|block| !is_same(&blocks, block));
        let replaced = replaced.map(|block| block.block).collect();
        Ok(Changes {
            verdicts: changed.len(),
            replaced,
            outdated,
            evidence: evidence.into_values().collect(),
            blocks: blocks
                .into_iter()
                .filter(|block| !is_same(&stored.blocks, block))
                .collect(),
        })
    }
}

fn unwritable(source: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Failed {
        doing: "writing verdicts",
        source: Box::new(source),
    }
}

/// The rows that a judgement changes.
pub(super) struct Changes {
    /// The number of verdicts that differ in anything.
    pub(super) verdicts: usize,
    /// The numbers of the stored blocks that have other verdicts now, or none.
    replaced: Vec<i32>,
    blocks: Vec<VerdictBlock>,
    /// The tests whose evidence is another one now, or none.
    outdated: Vec<i32>,
    evidence: Vec<VerdictEvidence>,
}

impl Changes {
    /// Writes the rows, with at most four statements.
    pub(super) fn store(&self, connection: &mut PgConnection, project: Uuid) -> QueryResult<()> {
        if !self.replaced.is_empty() {
            diesel::delete(verdict_block::table)
                .filter(verdict_block::project_id.eq(project))
                .filter(verdict_block::block.eq_any(&self.replaced))
                .execute(connection)?;
        }
        if !self.blocks.is_empty() {
            diesel::copy_from(verdict_block::table)
                .from_insertable(self.blocks.as_slice())
                .execute(connection)?;
        }
        if !self.outdated.is_empty() {
            // Raw SQL, because diesel has no rows from arrays. A list would be compared with each row.
            diesel::sql_query(
                "DELETE FROM verdict_evidence USING unnest($2) AS outdated (test) \
                 WHERE verdict_evidence.project_id = $1 AND verdict_evidence.test = outdated.test",
            )
            .bind::<SqlUuid, _>(project)
            .bind::<Array<Integer>, _>(&self.outdated)
            .execute(connection)?;
        }
        if !self.evidence.is_empty() {
            diesel::copy_from(verdict_evidence::table)
                .from_insertable(self.evidence.as_slice())
                .execute(connection)?;
        }
        Ok(())
    }
}
