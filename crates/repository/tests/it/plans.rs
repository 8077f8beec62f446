//! The plans of the hot statements: an index is used, and the rows that are read are bounded.

use assay_domain::store::Store;

use crate::fixture::*;

#[test]
fn periods_of_one_test_are_read_through_an_index() {
    let world = World::new();
    world.import(&report("a").test("x", "fp").test("y", "p"));
    // Rows enough that reading all of them would be worse, over 400 runs of 200 tests.
    world.database.execute(&format!(
        "INSERT INTO result SELECT '{0}', now() - run * interval '1 hour', 100, run, test, null, 0, 0, 0, 0 \
             FROM generate_series(1000, 1400) AS run, generate_series(1, 200) AS test; \
         INSERT INTO attempt SELECT '{0}', now() - run * interval '1 hour', now(), 100, run, test, 0, test % 20, 0, 0, 0, 1, false \
             FROM generate_series(1000, 1400) AS run, generate_series(1, 20) AS test; \
         ANALYZE result; ANALYZE attempt",
        world.project.id
    ));
    let plan = |sql: &str| {
        let sql = sql.replace("PROJECT", &format!("project_id = '{}'", world.project.id));
        let mut connection = world.database.connection();
        #[derive(diesel::QueryableByName)]
        struct Line {
            #[diesel(sql_type = diesel::sql_types::Text, column_name = "QUERY PLAN")]
            line: String,
        }
        let lines: Vec<Line> =
            diesel::RunQueryDsl::load(diesel::sql_query(format!("EXPLAIN {sql}")), &mut connection).unwrap();
        lines
            .into_iter()
            .map(|line| line.line)
            .collect::<Vec<_>>()
            .join("\n")
    };
    for (sql, index) in [
        (
            "SELECT * FROM result WHERE PROJECT AND test = 7 AND started_at > now() - interval '50 days'",
            "result_of_test",
        ),
        (
            "SELECT * FROM result WHERE PROJECT AND run_number = 1100",
            "result_pkey",
        ),
        (
            "SELECT * FROM attempt WHERE PROJECT AND test = 7 AND started_at > now() - interval '50 days'",
            "attempt_of_test",
        ),
        (
            "SELECT * FROM attempt WHERE PROJECT AND signature = 7 AND started_at > now() - interval '50 days'",
            "attempt_of_signature",
        ),
        (
            "SELECT * FROM attempt WHERE PROJECT AND run_number = 1100 AND test = 3",
            "attempt_pkey",
        ),
    ] {
        let plan = plan(sql);
        assert!(
            plan.contains(index) && !plan.contains("Seq Scan"),
            "{sql}\n{plan}"
        );
    }
    world.store.branches(&world.project).unwrap();
}
