//! The service's performance targets, compared with measurements.

use crate::{
    cases::{FLAKY, HISTORY, RUNS, SIGNATURE, SIGNATURES, STATUS, STORM},
    section::Section,
    table::Table,
};

/// The targets that the saved results cover.
pub(crate) fn table(load: Option<&Section>) -> Table {
    let mut table = Table::new(
        "targets",
        "Promises",
        &["Promise", "measured", "promised", "kept"],
    );
    let number = |id: &str, row: &str, column: &str| load?.table(id)?.number(row, column);
    let mut at_least = |what: &str, measured: Option<f64>, promised: f64| {
        let kept = measured.map(|measured| if measured >= promised { "yes" } else { "no" });
        table.row(vec![
            what.into(),
            measured.into(),
            format!("≥ {promised}").into(),
            kept.into(),
        ]);
    };
    at_least("status, of pgbench", number("limits", STATUS, "of pgbench"), 0.45);
    at_least(
        "status, of pgbench and a bare server together",
        number("limits", STATUS, "of both"),
        0.75,
    );
    at_least(
        "runs list, of pgbench",
        number("limits", RUNS, "of pgbench"),
        0.65,
    );
    let faster = |way: &str| number("rivals", way, "Assay is faster by");
    at_least(
        "status, times the textbook way",
        faster("the textbook way: diesel, five statements, pools as they come"),
        2.2,
    );
    at_least("status, times PostgREST", faster("PostgREST"), 5.0);
    at_least(
        "flaky list, times faster than the SQL way",
        number(
            "flaky",
            "window functions over the result rows, in SQL",
            "times the live list",
        ),
        100.0,
    );
    let mut at_most = |what: &str, measured: Option<f64>, promised: f64| {
        let kept = measured.map(|measured| if measured <= promised { "yes" } else { "no" });
        table.row(vec![
            what.into(),
            measured.into(),
            format!("≤ {promised}").into(),
            kept.into(),
        ]);
    };
    for route in ["projects", "settings", "branches", STATUS, "attempts", RUNS] {
        at_most(
            &format!("{route}, p99 ms of 32 connections"),
            number("routes", route, "p99 of 32"),
            10.0,
        );
    }
    let p50 = |route: &str| number("routes", route, "p50 ms");
    at_most("flaky list, p50 ms", p50(FLAKY), 15.0);
    at_most(
        "flaky list with every test failing, times that",
        p50(STORM).zip(p50(FLAKY)).map(|(storm, usual)| storm / usual),
        10.0,
    );
    at_most("test history, p50 ms", p50(HISTORY), 41.0);
    at_most("error signatures, p50 ms", p50(SIGNATURES), 302.0);
    at_most("error signature, p50 ms", p50(SIGNATURE), 302.0);
    at_most("runs list, p50 ms", p50(RUNS), 72.0);
    table
}
