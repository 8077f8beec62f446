//! The tests that became slower on the stable branch, from real reports.

use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

use crate::ingest::IngestServer;

/// A report of eight tests, of which `pays` takes this many times as long, on a machine of this speed.
fn report(slower: f64, machine: f64) -> String {
    let cases = (1..=8).map(|test| {
        let (name, factor) = match test {
            4 => ("pays".to_owned(), slower),
            test => (format!("test {test}"), 1.0),
        };
        let seconds = f64::from(test) * machine * factor;
        format!("<testcase classname='cart' name='{name}' file='cart.test.ts' time='{seconds:.3}'/>")
    });
    let cases: String = cases.collect();
    format!("<testsuites><testsuite name='cart' tests='8'>{cases}</testsuite></testsuites>")
}

#[test]
fn a_test_that_became_slower_is_listed_with_the_run_since_which_it_is() {
    let ingest = IngestServer::new();
    let newest = OffsetDateTime::now_utc() - Duration::hours(2);
    let send = |run: i32, branch: &str, slower: f64| {
        let started = newest - Duration::hours(i64::from(20 - run) * 6);
        let started = started.format(&Rfc3339).unwrap();
        let (commit, key) = (format!("c{run}"), format!("{branch}-{run}"));
        let fields = [
            ("branch", branch),
            ("commit", &*commit),
            ("runKey", &*key),
            ("startedAt", &*started),
        ];
        let xml = report(slower, 1.0 + f64::from(run % 3) * 0.4);
        let answer = ingest.send(&ingest.key, &fields, &[("r.xml", xml.as_bytes())]);
        assert_eq!(answer.status, 201, "{}", answer.text());
    };
    for run in 1..=14 {
        send(run, "main", if run < 9 { 1.0 } else { 1.5 });
    }
    // Another branch is no evidence about the stable one.
    for run in 15..=20 {
        send(run, "feature", 9.0);
    }
    let list = ingest.read("/slower");
    assert_eq!((&list["runs"], &list["total"]), (&14.into(), &1.into()), "{list}");
    let test = &list["tests"][0];
    assert_eq!(test["test"]["name"], "cart > pays");
    assert_eq!(
        (&test["since"]["runNumber"], &test["since"]["revision"]),
        (&9.into(), &"c9".into())
    );
    assert_eq!(test["runs"], 6);
    let factor = test["factor"].as_f64().unwrap();
    assert!((1.45..1.55).contains(&factor), "{list}");
    let extra = test["extraMs"].as_i64().unwrap();
    assert!((2_000..3_600).contains(&extra), "{list}");
}
