//! Pages of the runs list while new runs arrive.

use std::collections::BTreeSet;

use crate::{
    checks::ProjectChecks,
    clock::{HOUR, MINUTE},
    comparison::Comparison,
    dice::Dice,
    importer, small,
    stack::Stack,
    world::{Organization, Project, Run},
};

/// A project of small runs. Two consecutive runs have the same start.
pub fn project(seed: u64, now: i64) -> Project {
    let mut dice = Dice::new(seed, "paging");
    let mut project = small::project("Paging / %41");
    for place in 0..37 {
        let started = now - 6 * 24 * HOUR + (place - place % 2) * HOUR;
        project.runs.push(small::run(
            &format!("page-{place}"),
            "main",
            started,
            &[("pages", 'P')],
            &mut dice,
        ));
    }
    project
}

/// Checks that no run is repeated or skipped, in both directions.
pub fn paging(
    comparison: &mut Comparison,
    stack: &Stack,
    organization: &Organization,
    project: &mut Project,
    now: i64,
) {
    let mut dice = Dice::new(7, "arrivals");
    let first_runs: BTreeSet<String> = project.runs.iter().map(|run| run.id.clone()).collect();
    let mut ids: Vec<String> = Vec::new();
    let mut arrived: Vec<String> = Vec::new();
    let client = crate::http::Client::new(stack.address(), &organization.key);
    let base = {
        let checks = ProjectChecks {
            client: client.clone(),
            organization,
            project,
            now,
            fingerprints: Default::default(),
        };
        checks.path(&["runs"])
    };
    let mut path = format!("{base}?perPage=10");
    let mut back = None;
    for round in 0..20 {
        let answer = client.get(&path).json_or_null();
        let rows = answer["runs"].as_array().cloned().unwrap_or_default();
        ids.extend(
            rows.iter()
                .filter_map(|row| row["id"].as_str().map(str::to_owned)),
        );
        let total = answer["total"].as_u64().unwrap_or_default() as usize;
        comparison.same(
            "total while runs arrive",
            &total,
            &(first_runs.len() + arrived.len()),
        );
        back = answer["prevCursor"].as_str().map(str::to_owned);
        let Some(next) = answer["nextCursor"].as_str() else {
            break;
        };
        path = format!("{base}?perPage=10&cursor={next}");
        let run: Run = small::run(
            &format!("new-{round}"),
            "main",
            now - 50 * MINUTE + round * MINUTE,
            &[("pages", 'P')],
            &mut dice,
        );
        project.runs.push(run);
        let newest = project.runs.len() - 1;
        let total = importer::send(stack, project, &project.runs[newest], 0);
        let id = total["runId"].as_str().unwrap_or_default().to_owned();
        project.runs[newest].id.clone_from(&id);
        project.runs[newest].number = total["runNumber"].as_i64().unwrap_or_default();
        arrived.push(id);
    }
    let once: BTreeSet<String> = ids.iter().cloned().collect();
    comparison.same("older runs, each once", &ids.len(), &once.len());
    comparison.same("older runs, none skipped", &once, &first_runs);
    comparison.holds(!arrived.is_empty(), || {
        "no run arrived between two pages".to_owned()
    });
    // Back to the newest run, including those that arrived in the meantime.
    let mut newer: Vec<String> = Vec::new();
    for _ in 0..20 {
        let Some(cursor) = back else { break };
        let answer = client
            .get(&format!("{base}?perPage=10&cursor={cursor}&direction=prev"))
            .json_or_null();
        let ids: Vec<String> = answer["runs"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|row| row["id"].as_str().map(str::to_owned))
            .collect();
        newer.splice(0..0, ids);
        back = answer["prevCursor"].as_str().map(str::to_owned);
    }
    let mut expected = crate::oracle::within(project, 30, now);
    expected.truncate(newer.len());
    let expected: Vec<String> = expected.iter().map(|run| run.id.clone()).collect();
    comparison.same("newer runs, newest first", &newer, &expected);
    comparison.holds(newer.len() >= arrived.len() + 30, || {
        format!("only {} runs on the way back", newer.len())
    });
}
