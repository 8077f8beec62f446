//! The plan of every statement that answers the read API: over a data set of some size each is explained as it was sent,
//! with what was bound to it. No table of results, runs or tests is read whole, no partition outside of the period is
//! touched, and the rows that are read are bounded by the rows that are answered.

use std::collections::BTreeMap;

use assay_domain::{
    page::PerPage,
    run::RunQuery,
    signature::{SignatureQuery, SignatureSort},
    store::Store,
    window::Days,
};
use serde_json::Value;

use crate::{
    distribution::{heard, listen},
    fixture::*,
};

/// Runs and tests of each of two projects, two runs a day over 20 weeks.
const RUNS: usize = 280;
const TESTS: usize = 200;

/// The rows of `run`, which is small enough here to be read whole.
const RUN_ROWS: f64 = 2.0 * RUNS as f64;
/// The visible occurrences of the only signature, each of which its figures look at once.
const OCCURRENCES: f64 = 181.0 * (TESTS / 10) as f64;

/// Fills a project and its neighbour in the same tables.
fn world() -> World {
    let world = World::new();
    // The first import brings the names of tests, the signature and the verdicts.
    let mut first = report("first").at(HOUR);
    for test in 0..TESTS {
        first = first.test(&format!("test {test}"), if test % 10 == 0 { "fp" } else { "p" });
    }
    world.import(&first);
    let project = world.project.id;
    let neighbour = uuid::Uuid::now_v7();
    let now = format!("to_timestamp({})", NOW.unix_ms() / 1000);
    world.database.execute(&format!(
        "SELECT assay_make_room({now} - week * interval '7 days', {now}) FROM generate_series(0, 20) AS week;
         INSERT INTO project SELECT '{neighbour}', organization_id, 'neighbour', stable_branch, NULL, false, created_at, \
             runs, tests, signatures, browsers, evaluated_at FROM project;
         INSERT INTO test SELECT '{neighbour}', ordinal, name, file_path, name_hash, file_hash FROM test;
         INSERT INTO test SELECT project_id, 1000 + n, name || ' ' || n, file_path, substring(sha256(convert_to(n::text, 'UTF8')) FOR 16), file_hash \
             FROM test, generate_series(1, 3000) AS n WHERE ordinal = 1;
         INSERT INTO signature SELECT '{neighbour}', ordinal, fingerprint, version, title, category FROM signature;
         INSERT INTO verdict SELECT '{neighbour}', test, status, in_window, last_run, last_status, last_offset_ms, newest, body FROM verdict;
         INSERT INTO verdict SELECT project_id, 1000 + n, status, in_window, last_run, last_status, last_offset_ms, newest, body \
             FROM verdict, generate_series(1, 3000) AS n WHERE test = 1;
         CREATE TEMP TABLE old AS SELECT p AS project, 1000 + n AS number, {now} - n * interval '12 hours' AS start, \
             ('00000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid AS id \
             FROM generate_series(1, {RUNS}) AS n, (VALUES ('{project}'::uuid), ('{neighbour}')) AS p (p);
         INSERT INTO run SELECT project, number, id, sha256(convert_to(number::text, 'UTF8')), false, 'branch ' || number % 5, \
             'c0ffee', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'passed', start, start, 1, NULL, {TESTS}, {TESTS}, 0, 0, {TESTS} / 10 FROM old;
         INSERT INTO branch SELECT project_id, branch, max(started_at) FROM run WHERE branch IS NOT NULL GROUP BY project_id, branch \
             ON CONFLICT (project_id, name) DO UPDATE SET newest = excluded.newest;
         INSERT INTO branch SELECT project, 'branch ' || n, {now} FROM (SELECT DISTINCT project FROM old) AS projects, generate_series(5, 400) AS n;
         INSERT INTO shard SELECT project, number, 0, id, NULL, '\\x00', 'completed', 'passed', start, start, NULL, '[]' FROM old;
         INSERT INTO run_pack SELECT old.project, old.start, old.number, pack FROM old, run_pack WHERE run_pack.project_id = '{project}' \
             AND run_pack.run_number = 1;
         INSERT INTO result SELECT project, start, 100, number, test, NULL, 0, CASE WHEN test % 10 = 0 THEN 2 ELSE 0 END, 0, 0 \
             FROM old, generate_series(0, {TESTS} - 1) AS test;
         INSERT INTO attempt SELECT project, start, start, 100, number, test, 0, CASE WHEN retry = 0 THEN 0 END, retry, retry, 0, 1 - retry, \
             false, CASE WHEN retry = 0 THEN 'it broke' END, NULL \
             FROM old, generate_series(0, {TESTS} - 1, 10) AS test, generate_series(0, 1) AS retry",
    ));
    world.database.execute("VACUUM ANALYZE");
    world
}

/// What a statement did.
#[derive(Debug, Default)]
struct Work {
    /// Rows read from tables and indexes, those included that a filter then dropped.
    read: f64,
    /// Rows answered.
    answered: f64,
    /// Partitions touched, by their parent's name.
    partitions: BTreeMap<String, usize>,
    /// Tables read whole.
    whole: Vec<String>,
}

impl Work {
    fn of(explained: &Value) -> Self {
        let mut work = Self::default();
        let plan = &explained[0]["Plan"];
        work.answered = plan["Actual Rows"].as_f64().unwrap();
        work.add(plan);
        work
    }

    fn add(&mut self, node: &Value) {
        let loops = node["Actual Loops"].as_f64().unwrap_or(0.0);
        if let Some(table) = node["Relation Name"].as_str() {
            let dropped: f64 = ["Rows Removed by Filter", "Rows Removed by Index Recheck"]
                .iter()
                .map(|field| node[field].as_f64().unwrap_or(0.0))
                .sum();
            self.read += loops * (node["Actual Rows"].as_f64().unwrap() + dropped);
            let partitioned = table.split_once('_');
            if let Some((parent, _)) =
                partitioned.filter(|(parent, _)| loops > 0.0 && ["result", "attempt"].contains(parent))
            {
                *self.partitions.entry(parent.to_owned()).or_default() += 1;
            }
            if node["Node Type"] == "Seq Scan" {
                self.whole.push(table.to_owned());
            }
        }
        for child in node["Plans"].as_array().into_iter().flatten() {
            self.add(child);
        }
    }
}

/// A statement as it was sent, with its values in the place of `$1` and so on.
fn with_values(statement: &str) -> Option<String> {
    let (sql, binds) = statement.split_once(" -- binds: ")?;
    if !sql.starts_with("SELECT") {
        return None;
    }
    let mut sql = sql.to_owned();
    for (index, bind) in elements(binds).into_iter().enumerate().rev() {
        let place = format!("${}", index + 1);
        let is_list = sql.contains(&format!("ANY({place})")) || sql.contains(&format!("ALL({place})"));
        sql = sql.replace(&place, &literal(&bind, is_list));
    }
    Some(sql)
}

/// The elements of a list as `Debug` writes it.
fn elements(list: &str) -> Vec<String> {
    let inner = list
        .trim()
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'))
        .unwrap();
    let (mut elements, mut depth, mut quoted, mut element) = (Vec::new(), 0, false, String::new());
    for c in inner.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '(' if !quoted => depth += 1,
            ']' | ')' if !quoted => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 && !quoted {
            elements.push(element.trim().to_owned());
            element.clear();
        } else {
            element.push(c);
        }
    }
    if !element.trim().is_empty() {
        elements.push(element.trim().to_owned());
    }
    elements
}

/// A value as SQL writes it.
fn literal(bind: &str, is_list: bool) -> String {
    if let Some(inner) = bind.strip_prefix("Some(").and_then(|rest| rest.strip_suffix(')')) {
        return literal(inner, is_list);
    }
    if bind == "None" {
        return "NULL".to_owned();
    }
    if let Some(ms) = bind
        .strip_prefix("At(Timestamp(")
        .and_then(|rest| rest.strip_suffix("))"))
    {
        return format!("(timestamptz 'epoch' + interval '{ms} ms')");
    }
    if bind.starts_with('[') && is_list {
        let values: Vec<String> = elements(bind).iter().map(|value| literal(value, false)).collect();
        return format!("(ARRAY[{}])", values.join(","));
    }
    if bind.starts_with('[') {
        let bytes: String = elements(bind)
            .iter()
            .map(|byte| format!("{:02x}", byte.parse::<u8>().unwrap()))
            .collect();
        return format!("'\\x{bytes}'::bytea");
    }
    if let Some(text) = bind.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return format!("'{text}'");
    }
    if bind.len() == 36 && bind.contains('-') {
        return format!("'{bind}'::uuid");
    }
    bind.to_owned()
}

/// The most that a question may cost.
struct Bound {
    /// Statements.
    statements: usize,
    /// Partitions of results or attempts that a statement touches.
    partitions: usize,
    /// Rows read by a statement for each one answered, and beyond that.
    per_row: f64,
    beyond: f64,
}

#[test]
fn every_read_goes_through_indexes_and_reads_little_more_than_it_answers() {
    listen();
    let world = world();
    let store = world.database.connect();
    let project = &world.project;
    let test = any_file("test 20");
    let month = window(Days::Thirty);
    let runs = |branch: Option<&str>| RunQuery {
        branch: branch.map(str::to_owned),
        ..run_query()
    };
    let signatures = |sort, search: Option<&str>| SignatureQuery {
        window: month,
        branch: None,
        category: None,
        search: search.map(str::to_owned),
        sort,
        page: 1,
        per_page: PerPage::Ten,
    };
    let run = store.runs(project, &run_query()).unwrap().runs[3].id;
    let history = world.history(14);
    let newest = history.runs.last().unwrap().run.clone();
    let keys: Vec<_> = (0..10)
        .map(|test| result_key(test, newest.number, newest.started_at))
        .collect();
    // A period of 30 days lies in five or six weeks, the 90 days that are visible in 13 or 14.
    let bound = |statements, partitions, per_row, beyond| Bound {
        statements,
        partitions,
        per_row,
        beyond,
    };
    check("branches", &world, &bound(1, 0, 1.0, 200.0), || {
        drop(store.branches(project).unwrap())
    });
    check("runs", &world, &bound(1, 0, 3.0, 130.0), || {
        drop(store.runs(project, &runs(None)).unwrap())
    });
    check("runs of a branch", &world, &bound(1, 0, 3.0, 130.0), || {
        drop(store.runs(project, &runs(Some("branch 2"))).unwrap());
    });
    check("run", &world, &bound(4, 1, 3.0, 3.0), || {
        drop(store.run(project, run).unwrap())
    });
    check("attempts", &world, &bound(1, 1, 3.0, 60.0), || {
        drop(store.attempts(project, run, &test).unwrap())
    });
    check("history", &world, &bound(4, 6, 3.0, 2.0 * RUN_ROWS), || {
        drop(store.history(project, &test, &month).unwrap())
    });
    check("verdict", &world, &bound(1, 0, 5.0, 0.0), || {
        drop(store.verdict(project, &test).unwrap())
    });
    check(
        "signature",
        &world,
        &bound(7, 14, 1.0, OCCURRENCES + 2.0 * RUN_ROWS),
        || {
            drop(
                store
                    .signature(project, &fingerprint("it broke"), &month)
                    .unwrap(),
            );
        },
    );
    for (sort, search) in [
        (SignatureSort::Occurrences, None),
        (SignatureSort::FirstSeen, None),
        (SignatureSort::Tests, Some("broke")),
    ] {
        check("signatures", &world, &bound(10, 14, 1.0, OCCURRENCES), || {
            drop(store.signatures(project, &signatures(sort, search)).unwrap());
        });
    }
    check("observations", &world, &bound(2, 0, 3.0, 2.0 * RUN_ROWS), || {
        drop(store.observations(project, NOW.plus_days(-14), NOW).unwrap());
    });
    check("final results", &world, &bound(1, 1, 1.0, 0.0), || {
        drop(store.final_results(project, &keys).unwrap())
    });
    check("names", &world, &bound(1, 0, 1.0, 0.0), || {
        drop(store.test_names(project, &[3, 4]).unwrap())
    });
}

/// Tables that are a few pages here, which are read whole because an index would be no better.
const SMALL: [&str; 6] = [
    "project",
    "organization",
    "signature",
    "signature_alias",
    "browser",
    "run",
];

fn check(what: &str, world: &World, bound: &Bound, ask: impl Fn()) {
    // The first time something may be looked up once for all.
    ask();
    let statements: Vec<String> = heard(&ask)
        .iter()
        .filter_map(|statement| with_values(statement))
        .collect();
    assert!(
        !statements.is_empty() && statements.len() <= bound.statements,
        "{what} took {} statements: {statements:#?}",
        statements.len()
    );
    for sql in statements {
        let explain = format!("EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF, COSTS OFF, SUMMARY OFF) {sql}");
        let explained: Value = serde_json::from_str(&explained(world, &explain)).unwrap();
        let work = Work::of(&explained);
        let told = || format!("{what}: {work:?}\n{sql}\n{explained:#}");
        let whole: Vec<_> = work
            .whole
            .iter()
            .filter(|table| !SMALL.contains(&table.as_str()))
            .collect();
        assert!(whole.is_empty(), "{}", told());
        assert!(
            work.partitions
                .values()
                .all(|touched| *touched <= bound.partitions),
            "{}",
            told()
        );
        assert!(
            work.read <= bound.per_row * work.answered + bound.beyond,
            "{}",
            told()
        );
    }
}

fn explained(world: &World, explain: &str) -> String {
    #[derive(diesel::QueryableByName)]
    struct Plan {
        #[diesel(sql_type = diesel::sql_types::Json, column_name = "QUERY PLAN")]
        plan: Value,
    }
    let plan: Plan =
        diesel::RunQueryDsl::get_result(diesel::sql_query(explain), &mut world.database.connection())
            .unwrap_or_else(|error| panic!("{explain}: {error}"));
    plan.plan.to_string()
}
