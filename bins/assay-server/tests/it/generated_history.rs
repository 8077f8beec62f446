//! Sixteen days of a project's CI, generated from a seed: branches, pull requests, suites, shards, reruns, retries,
//! outages.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Lengths of time in milliseconds.
const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The name of the stable branch from the middle on.
pub(crate) const STABLE: &str = "trunk";
const FORMER_STABLE: &str = "main";
const BUILDS: usize = 62;
const TESTS: usize = 40;

/// A generated history.
pub(crate) struct GeneratedHistory {
    /// Oldest first. All starts differ.
    pub(crate) runs: Vec<Run>,
    /// The number of runs before the stable branch is renamed.
    pub(crate) renamed_after: usize,
}

/// A run.
pub(crate) struct Run {
    pub(crate) started: i64,
    pub(crate) build: usize,
    pub(crate) branch: Option<String>,
    pub(crate) commit: Option<String>,
    pub(crate) tested_revision: Option<String>,
    pub(crate) suite: Option<&'static str>,
    pub(crate) pull_request: Option<i64>,
    /// One report, or the shards by index.
    pub(crate) parts: Vec<Part>,
}

/// A shard, or the whole run.
pub(crate) struct Part {
    pub(crate) started: i64,
    pub(crate) results: Vec<TestResult>,
}

/// A test's results in a part.
#[derive(Clone)]
pub(crate) struct TestResult {
    pub(crate) test: usize,
    /// Empty for a test that never started.
    pub(crate) attempts: Vec<Attempt>,
}

#[derive(Clone)]
pub(crate) struct Attempt {
    pub(crate) status: &'static str,
    pub(crate) duration: Option<i64>,
    pub(crate) started: Option<i64>,
}

/// The name and file of a test.
pub(crate) fn identity(test: usize) -> (String, String) {
    let (suite, title) = titles(test);
    (format!("chromium > {suite} > {title}"), file(test))
}

fn titles(test: usize) -> (&'static str, String) {
    match test {
        // One name in two files.
        16 | 17 => ("shared.spec.ts", "is there/twice".to_owned()),
        test if test % 2 == 0 => ("cart.spec.ts", format!("cart keeps {test}")),
        test => ("pay.spec.ts", format!("pays {test}")),
    }
}

fn file(test: usize) -> String {
    match test {
        17 => "other/shared.spec.ts".to_owned(),
        test => titles(test).0.to_owned(),
    }
}

impl GeneratedHistory {
    /// The history of a seed that ends at `now`. Only a `full` one has values that a report lacks: suites, and the
    /// tested revisions of pull requests.
    pub(crate) fn new(seed: u64, now: i64, full: bool) -> Self {
        let mut dice = Dice(seed);
        let mut runs: Vec<Run> = Vec::new();
        let mut heads: Vec<(String, String)> = Vec::new();
        for build in 0..BUILDS {
            let started = build_start(build, now) + dice.below(1_000) as i64;
            let stable = if build < BUILDS / 2 { FORMER_STABLE } else { STABLE };
            let (branch, revision) = match dice.below(20) {
                // A late rerun, on its own branch or fast-forwarded to the stable one.
                0..4 if !heads.is_empty() => {
                    let (branch, revision) = heads[heads.len() - 1 - dice.below(heads.len().min(5))].clone();
                    let merged = dice.below(3) == 0;
                    (if merged { stable.to_owned() } else { branch }, revision)
                }
                0..8 => (format!("feature-{}", dice.below(3)), dice.hex()),
                _ => (stable.to_owned(), dice.hex()),
            };
            heads.push((branch.clone(), revision.clone()));
            let off_stable = branch.starts_with("feature");
            let pull_request = (off_stable && full && dice.below(4) > 0).then_some(7);
            let suites: &[Option<&'static str>] = match (full, build % 3) {
                (false, _) => &[None],
                (true, 0) => &[Some("smoke"), Some("e2e")],
                (true, _) => &[Some("e2e")],
            };
            let roll = dice.below(12);
            let outage = match build {
                20 | 47 => Some(70),
                33 => Some(30),
                _ => None,
            };
            for (place, suite) in suites.iter().enumerate() {
                let mut run = Run {
                    started: started + place as i64 * 7 * MINUTE,
                    build,
                    branch: (roll != 0).then(|| branch.clone()),
                    commit: (roll != 1).then(|| match pull_request {
                        Some(_) => dice.hex(),
                        None => revision.clone(),
                    }),
                    tested_revision: pull_request.map(|_| revision.clone()),
                    suite: *suite,
                    pull_request,
                    parts: Vec::new(),
                };
                run.add_results(&mut dice, off_stable, outage);
                runs.push(run);
            }
        }
        let renamed_after = runs.iter().take_while(|run| run.build < BUILDS / 2).count();
        Self { runs, renamed_after }
    }
}

/// The start of a build: two are close to the window's limit, one on either side. All others keep their distance.
fn build_start(build: usize, now: i64) -> i64 {
    let edge = now - 14 * DAY;
    match build {
        0..4 => edge - 2 * DAY + build as i64 * 9 * HOUR,
        4 => edge - 30 * MINUTE,
        5 => edge + 25 * MINUTE,
        _ => edge + 3 * HOUR + (build as i64 - 6) * ((14 * DAY - 5 * HOUR) / (BUILDS as i64 - 6)),
    }
}

impl Run {
    fn add_results(&mut self, dice: &mut Dice, off_stable: bool, outage: Option<usize>) {
        let shards = if dice.below(4) == 0 { 2 + dice.below(2) } else { 1 };
        for shard in 0..shards {
            let mut clock = self.started + shard as i64 * 40 * SECOND;
            let mut part = Part {
                started: clock,
                results: Vec::new(),
            };
            let cut_short = dice.below(15) == 0;
            for test in (0..TESTS).filter(|test| test % shards == shard || *test == 23) {
                let failing = outage.is_some_and(|percent| dice.below(100) < percent);
                let Some(mut statuses) = self.outcome(test, dice, off_stable) else {
                    continue;
                };
                if failing && statuses.last() == Some(&"passed") {
                    statuses = vec!["failed"; 1 + dice.below(3)];
                }
                if cut_short && test > 30 {
                    statuses = if test == 31 + shard {
                        vec!["interrupted"]
                    } else {
                        Vec::new()
                    };
                }
                let attempts = statuses
                    .into_iter()
                    .map(|status| attempt(test, status, &mut clock, dice))
                    .collect();
                part.results.push(TestResult { test, attempts });
            }
            self.parts.push(part);
        }
    }

    /// The attempts of a test; none if it does not run.
    fn outcome(&self, test: usize, dice: &mut Dice, off_stable: bool) -> Option<Vec<&'static str>> {
        let mut chance = |percent: usize| dice.below(100) < percent;
        let build = self.build;
        let smoke = self.suite == Some("smoke");
        if smoke && test % 4 == 3 {
            return None;
        }
        let failed = match test {
            0 => chance(30),
            1 | 16 => {
                return Some(if chance(25) {
                    vec!["failed", "passed"]
                } else {
                    vec!["passed"]
                });
            }
            2 => build >= 50 && !off_stable,
            3 => (25..32).contains(&build),
            4 => build >= BUILDS - 3,
            5 => off_stable && build >= 40,
            6 => return Some(vec!["skipped"]),
            7 => return Some(vec![if chance(20) { "interrupted" } else { "passed" }]),
            8 => chance(15),
            10 => build == 37,
            11 if !chance(10) => return None,
            12 if !chance(15) => return None,
            12 => chance(50),
            13 => !smoke && chance(12),
            14 => build < 12 && chance(60),
            15 => {
                return Some(if chance(10) {
                    vec!["timedOut"; 3]
                } else {
                    vec!["passed"]
                });
            }
            18 => build % 5 == 4,
            19 => build.is_multiple_of(2),
            20 if build >= 54 => !off_stable,
            20 => {
                return Some(if chance(30) {
                    vec!["timedOut", "failed", "passed"]
                } else {
                    vec!["passed"]
                });
            }
            21 if build >= 5 => return None,
            22 => return Some(vec![if build < 5 { "failed" } else { "skipped" }]),
            23 => chance(20),
            24 if build < BUILDS - 3 => return None,
            25 => {
                return Some(if (24..28).contains(&build) {
                    vec!["failed", "passed"]
                } else {
                    vec!["passed"]
                });
            }
            _ => chance(1),
        };
        Some(match failed {
            true if chance(30) => vec!["failed", "failed"],
            true => vec!["failed"],
            false => vec!["passed"],
        })
    }

    /// Two runs with the same value have the same code.
    pub(crate) fn revision(&self) -> Option<&str> {
        self.tested_revision.as_deref().or(self.commit.as_deref())
    }

    /// The executions of each test: its attempts in one shard are one execution.
    pub(crate) fn executions(&self) -> BTreeMap<usize, Vec<Vec<Attempt>>> {
        let mut executions: BTreeMap<usize, Vec<Vec<Attempt>>> = BTreeMap::new();
        for result in self.parts.iter().flat_map(|part| &part.results) {
            let mut attempts = result.attempts.clone();
            if attempts.is_empty() {
                attempts.push(Attempt {
                    status: "skipped",
                    duration: None,
                    started: None,
                });
            }
            executions.entry(result.test).or_default().push(attempts);
        }
        executions
    }

    /// The report of a part in Playwright's form, with the run's values that it can contain.
    pub(crate) fn report(&self, index: usize) -> Value {
        let part = &self.parts[index];
        let sharded = self.parts.len() > 1;
        let mut suites: Vec<Value> = Vec::new();
        for result in &part.results {
            let (suite, title) = titles(result.test);
            let file = file(result.test);
            let statuses: Vec<&str> = result.attempts.iter().map(|attempt| attempt.status).collect();
            let verdict = match statuses.as_slice() {
                [.., "failed" | "timedOut"] => "unexpected",
                ["passed"] => "expected",
                [.., "passed"] => "flaky",
                _ => "skipped",
            };
            let expected = if statuses == ["skipped"] {
                "skipped"
            } else {
                "passed"
            };
            suites.push(
                json!({"title": suite, "file": file, "specs": [{"title": title, "file": file, "tests": [{
                    "projectName": "chromium",
                    "expectedStatus": expected,
                    "status": verdict,
                    "results": result.attempts.iter().map(Attempt::report).collect::<Vec<_>>(),
                }]}]}),
            );
        }
        json!({
            "config": {
                "configFile": "/src/playwright.config.ts",
                "rootDir": "/src",
                "metadata": {
                    "ci": {"commitHash": self.commit, "buildHref": format!("https://ci.test/builds/{}", self.build)},
                    "gitCommit": {"branch": self.branch},
                },
                "shard": sharded.then(|| json!({"current": index + 1, "total": self.parts.len()})),
            },
            "suites": suites,
            "errors": [],
            "stats": {"startTime": instant(part.started), "duration": 5_000},
        })
    }
}

fn attempt(test: usize, status: &'static str, clock: &mut i64, dice: &mut Dice) -> Attempt {
    let started = *clock;
    let duration = 20 + dice.below(4_000) as i64;
    *clock += duration;
    let untimed = test == 8 || test == 9 || dice.below(40) == 0;
    Attempt {
        status,
        duration: (!untimed).then_some(duration),
        // In a table of attempts, the first attempt determines the run's start.
        started: (test == 0 || dice.below(30) > 0).then_some(started),
    }
}

impl Attempt {
    fn failed(&self) -> bool {
        self.status == "failed" || self.status == "timedOut"
    }

    fn report(&self) -> Value {
        let failed = self.failed();
        let mut result = json!({
            "status": self.status,
            "errors": if failed { json!([{"message": "Error: expect(received).toBe(expected)"}]) } else { json!([]) },
        });
        if let Some(duration) = self.duration {
            result["duration"] = json!(duration);
        }
        if let Some(started) = self.started {
            result["startTime"] = json!(instant(started));
        }
        result
    }
}

/// A time in the format of reports and API.
pub(crate) fn instant(ms: i64) -> String {
    assay_domain::timestamp::Timestamp::from_unix_ms(ms).to_string()
}

/// Repeatable random numbers: SplitMix64.
struct Dice(u64);

impl Dice {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    fn hex(&mut self) -> String {
        format!(
            "{:016x}{:016x}{:08x}",
            self.bits(),
            self.bits(),
            self.bits() as u32
        )
    }
}
