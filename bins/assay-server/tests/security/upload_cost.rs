//! What an upload costs the server, for the leanest and for the most repetitive report of each format: memory against
//! what the upload reserved, and processor time.
//!
//! `cargo test -p assay-server --test security -- --ignored --nocapture large_reports` stores reports of 500,000 tests.
//! `ASSAY_COST_FORMAT=junit` does so for one format.

use std::{
    env, fs,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use assay_testkit::{Cli, Response, Server, TestDatabase, text, wait_until};

use crate::slow::processor_time;

/// Memory beside the reservations, in MiB: an allocator's spare pages, and buffers of fixed size.
const BESIDE_MIB: u64 = 50;

/// A server and an ingest key.
struct IngestServer {
    server: Server,
    authorization: String,
    database: TestDatabase,
}

impl IngestServer {
    fn with(environment: &[(&str, &str)]) -> Self {
        let database = TestDatabase::new();
        let cli = Cli::new(database.url());
        cli.json(&["org", "create", "Shop", "--plan", "pro"]);
        cli.json(&["project", "create", "--org", "Shop", "web"]);
        let key = cli.json(&["key", "create-ingest", "--project", "web"]);
        Self {
            server: Server::start_with_ingest(database.url(), environment),
            authorization: format!("Bearer {}", text(&key["key"])),
            database,
        }
    }

    fn send(&self, report: &Packed, query: &str) -> Response {
        let path = format!("/ingest/v1/reports?branch=main&{}{query}", report.format);
        let headers = [
            ("Authorization", self.authorization.as_str()),
            ("Content-Type", report.content_type),
            ("Content-Encoding", "zstd"),
        ];
        let path = if report.content_type.starts_with("multipart") {
            "/ingest/v1/reports"
        } else {
            path.as_str()
        };
        self.server.ingest().post(path, &headers, &report.bytes)
    }

    /// A value of the process's status, in bytes.
    fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    fn reserved(&self) -> u64 {
        let metrics = self.server.admin().get("/metrics", None).text();
        let sample = |line: &str| {
            line.strip_prefix("assay_ingest_memory_reserved_bytes ")?
                .parse()
                .ok()
        };
        metrics.lines().find_map(sample).unwrap()
    }

    /// Runs work, and returns its costs.
    fn measure<T>(&self, work: impl FnOnce() -> T) -> (T, Cost) {
        // Resets the peak.
        fs::write(format!("/proc/{}/clear_refs", self.server.pid()), "5").unwrap();
        let (before, began) = (self.memory("VmRSS:"), processor_time(self.server.pid()));
        let (is_over, reserved) = (AtomicBool::new(false), AtomicU64::new(0));
        let value = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    reserved.fetch_max(self.reserved(), Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(5));
                }
            });
            let value = work();
            is_over.store(true, Ordering::Relaxed);
            value
        });
        let cost = Cost {
            memory: self.memory("VmHWM:").saturating_sub(before),
            reserved: reserved.into_inner(),
            processor: processor_time(self.server.pid()) - began,
        };
        (value, cost)
    }
}

struct Cost {
    memory: u64,
    reserved: u64,
    processor: Duration,
}

/// A report, packed.
struct Packed {
    /// The format as a parameter.
    format: String,
    content_type: &'static str,
    bytes: Vec<u8>,
    unpacked: usize,
}

fn packed(format: &str, content_type: &'static str, report: &str) -> Packed {
    Packed {
        format: format!("format={format}&"),
        content_type,
        bytes: zstd::encode_all(report.as_bytes(), 3).unwrap(),
        unpacked: report.len(),
    }
}

/// The format, the beginning of a report, the shortest test of it, what separates tests, and the report's end. `#` is the
/// test's number, and `@` a name that all tests share.
type Pattern = [String; 5];

fn patterns(table: &str) -> Vec<Pattern> {
    let cells =
        |line: &str| -> Vec<String> { line.split('\t').map(|cell| cell.replace("\\n", "\n")).collect() };
    table
        .lines()
        .map(|line| cells(line).try_into().unwrap())
        .collect()
}

fn leanest() -> Vec<Pattern> {
    patterns(include_str!("costs/leanest.tsv"))
}

fn most_repetitive() -> Vec<Pattern> {
    patterns(include_str!("costs/most_repetitive.tsv"))
}

fn report([format, begin, test, between, end]: &Pattern, tests: usize) -> Packed {
    let mut report = begin.replace('@', &"😀".repeat(2_000));
    let parts: Vec<&str> = test.split('#').collect();
    for number in 0..tests {
        if number > 0 {
            report.push_str(between);
        }
        report.push_str(&parts.join(&number.to_string()));
    }
    report.push_str(end);
    packed(format, "application/octet-stream", &report)
}

/// A result of Allure in each file, as many as an upload may have.
fn allure(fields: &str) -> Packed {
    let file = |number: usize| {
        format!(
            "--a\r\nContent-Disposition: form-data; name=\"r\"; filename=\"{number}-result.json\"\r\n\r\n\
             {{\"uuid\":\"{number}\",\"name\":\"{number}\"{fields}}}\r\n"
        )
    };
    let files: String = (0..2_000).map(file).collect();
    let dry_run = "--a\r\nContent-Disposition: form-data; name=\"dryRun\"\r\n\r\ntrue\r\n";
    packed(
        "allure",
        "multipart/form-data; boundary=a",
        &format!("{files}{dry_run}--a--\r\n"),
    )
}

fn all(tests: usize, repetitions: usize) -> impl Iterator<Item = Packed> {
    let leanest = leanest().into_iter().map(move |pattern| report(&pattern, tests));
    let repetitive = most_repetitive().into_iter();
    let repetitive = repetitive.map(move |pattern| report(&pattern, repetitions));
    let files = [
        allure(",\"historyId\":\"\",\"status\":\"passed\""),
        allure(",\"historyId\":\"1\",\"status\":\"failed\""),
    ];
    leanest.chain(repetitive).chain(files)
}

/// Sends each report alone.
#[expect(clippy::print_stdout, reason = "the test shows what it measures")]
fn each_alone(tests: usize, repetitions: usize, query: &str) {
    let ingest = IngestServer::with(&[
        ("ASSAY_INGEST_MEMORY_MIB", "4096"),
        ("ASSAY_INGEST_UNPACKED_MIB", "1024"),
    ]);
    // Patterns are compiled once.
    ingest.send(&report(&leanest()[0], 10), "dryRun=true");
    let mut faults = Vec::new();
    let only = env::var("ASSAY_COST_FORMAT").ok();
    let is_measured = |report: &Packed| only.as_ref().is_none_or(|only| report.format.contains(only));
    for report in all(tests, repetitions).filter(is_measured) {
        let (answer, cost) = ingest.measure(|| ingest.send(&report, query));
        let (memory, reserved) = (cost.memory >> 20, cost.reserved >> 20);
        println!(
            "{:<22} {:>6} kB {:>4} MiB of {:>4} MiB reserved, {:>6.2?} for {:>3} MB: {} {}",
            report.format,
            report.bytes.len() >> 10,
            memory,
            reserved,
            cost.processor,
            report.unpacked / 1_000_000,
            answer.status,
            answer.text().chars().take(130).collect::<String>(),
        );
        assert!([200, 201, 413].contains(&answer.status), "{}", answer.text());
        if memory > reserved + BESIDE_MIB {
            faults.push(format!(
                "{} took {memory} MiB and reserved {reserved} MiB",
                report.format
            ));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_report_takes_the_memory_that_it_reserved() {
    each_alone(20_000, 3_000, "dryRun=true");
}

#[test]
#[ignore = "a measurement of some minutes"]
fn large_reports_take_the_memory_that_they_reserved() {
    each_alone(500_000, 500_000, "runKey=large");
}

#[test]
fn many_reports_at_once_stay_within_the_memory_for_reading() {
    const MEMORY_MIB: u64 = 256;
    const UPLOADS: usize = 60;
    /// An allocator's spare pages, and buffers of fixed size of each upload.
    const BESIDE: u64 = 150;
    let memory = MEMORY_MIB.to_string();
    let ingest = IngestServer::with(&[("ASSAY_INGEST_MEMORY_MIB", memory.as_str())]);
    let reports: Vec<Packed> = leanest()
        .iter()
        .map(|pattern| report(pattern, 5_000))
        .chain(most_repetitive().iter().map(|pattern| report(pattern, 500)))
        .collect();
    ingest.send(&reports[0], "dryRun=true");
    let ((), cost) = ingest.measure(|| {
        thread::scope(|scope| {
            for report in reports.iter().cycle().take(UPLOADS) {
                let ingest = &ingest;
                scope.spawn(move || {
                    wait_until("the upload is read", || {
                        let answer = ingest.send(report, "dryRun=true");
                        assert!([200, 413, 503].contains(&answer.status), "{}", answer.text());
                        answer.status != 503
                    });
                });
            }
        });
    });
    let (memory, reserved) = (cost.memory >> 20, cost.reserved >> 20);
    println!(
        "{UPLOADS} uploads took {memory} MiB of {reserved} MiB reserved and {:?}",
        cost.processor
    );
    assert!(reserved <= MEMORY_MIB / 2, "one key reserved {reserved} MiB");
    assert!(memory <= MEMORY_MIB + BESIDE, "{memory} MiB");
}

#[test]
fn memory_is_given_back_after_uploads_beside_lost_connections() {
    /// The memory that may stay: caches, and an allocator's spare pages.
    const STAYS_MIB: u64 = 80;
    let ingest = IngestServer::with(&[]);
    let text = "expected 3, got 4 in a line of some length\n".repeat(20);
    let case = |number| {
        format!("<testcase name=\"pays {number}\"><failure message=\"no\">{text}</failure></testcase>")
    };
    let cases: String = (0..100).map(case).collect();
    let small = packed(
        "junit",
        "application/octet-stream",
        &format!("<testsuite>{cases}</testsuite>"),
    );
    let send = |report: &Packed, key: &str| {
        wait_until("the upload is stored", || {
            let answer = ingest.send(report, &format!("runKey={key}"));
            assert!([201, 429, 503].contains(&answer.status), "{}", answer.text());
            answer.status == 201
        });
    };
    send(&small, "first");
    let before = ingest.memory("VmRSS:") >> 20;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                ingest.database.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid()",
                );
                thread::sleep(Duration::from_millis(300));
            }
        });
        let clients = (0..6).map(|client| {
            let (send, small) = (&send, &small);
            scope.spawn(move || (0..5).for_each(|number| send(small, &format!("{client}-{number}"))))
        });
        for client in clients.collect::<Vec<_>>() {
            client.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    send(&report(&leanest()[1], 80_000), "large");
    wait_until("the memory is given back", || {
        let now = ingest.memory("VmRSS:") >> 20;
        now <= before + STAYS_MIB
    });
    assert_eq!(ingest.reserved(), 0);
}
