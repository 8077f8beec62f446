//! Where the time of the stable branch goes, from real reports.

use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

use crate::ingest::IngestServer;

/// A report of eight tests, of which `pays` takes this many times as long, on a machine of this speed. `removed` is among
/// them before run 6, and `added` from run 10 on.
fn report(run: i32, slower: f64, machine: f64) -> String {
    let cases = (1..=8).map(|test| {
        let (name, factor) = match test {
            4 => ("pays".to_owned(), slower),
            7 if run < 6 => ("removed".to_owned(), 1.0),
            8 if run >= 10 => ("added".to_owned(), 1.0),
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
        let xml = report(run, slower, 1.0 + f64::from(run % 3) * 0.4);
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
    let answer = ingest.read("/durations");
    let list = &answer["slower"];
    assert_eq!(
        (&answer["runs"], &list["total"]),
        (&14.into(), &1.into()),
        "{list}"
    );
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

    let suite = &answer["suites"][0];
    assert_eq!(
        (&suite["suite"], &suite["runs"]),
        (&"".into(), &14.into()),
        "{suite}"
    );
    let change = &suite["change"];
    let ms = |of: &serde_json::Value, name: &str| of[name].as_i64().unwrap();
    let parts = ["newTestsMs", "removedTestsMs", "slowerTestsMs", "otherMs"].map(|name| ms(change, name));
    assert_eq!(
        ms(change, "earlierTestsMs") + parts.iter().sum::<i64>(),
        ms(suite, "testsMs"),
        "{suite}"
    );
    // By the median of the machines: 1.4 times the test's own seconds.
    assert_eq!(
        (parts[0], parts[1]),
        (11_200 + 9_800, -(9_800 + 11_200)),
        "{suite}"
    );
    assert_eq!(parts[2], 2_800, "{suite}");
    assert_eq!(answer["slowest"][0]["test"]["name"], "cart > added", "{answer}");
}

#[test]
fn a_commit_tells_how_evenly_its_shards_were_divided() {
    let ingest = IngestServer::new();
    // The second attempt of a command is no part of the division.
    for (shard, seconds, attempt) in [
        ("1/3", "1.0", "1"),
        ("2/3", "2.0", "1"),
        ("3/3", "6.0", "1"),
        ("1/3", "4.0", "2"),
    ] {
        let other = match attempt {
            "1" => "<testcase classname='cart' name='other' file='cart.test.ts' time='0'/>",
            _ => "",
        };
        let xml = format!(
            "<testsuites><testsuite name='cart' timestamp='2026-01-02T03:04:05Z' time='{seconds}'>\
             <testcase classname='cart' name='{shard}' file='cart.test.ts' time='{seconds}'/>{other}</testsuite></testsuites>"
        );
        let fields = [
            ("commit", "c0ffee11"),
            ("runKey", "shards"),
            ("shard", shard),
            ("attempt", attempt),
        ];
        let now = OffsetDateTime::now_utc().format(&Rfc3339).unwrap();
        let fields = [&fields[..], &[("startedAt", now.as_str())]].concat();
        let answer = ingest.send(&ingest.key, &fields, &[("r.xml", xml.as_bytes())]);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let commit = ingest.read("/commits/c0ffee11");
    let expected = serde_json::json!({"shortestMs": 1_000, "meanMs": 3_000, "longestMs": 6_000});
    assert_eq!(commit["runs"][0]["shardDurations"], expected, "{commit}");
}
