//! A generated month of three projects, imported as reports. Each number of each message is counted again in the
//! generated data.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, thread,
};

use assay_domain::{
    id::ProjectId,
    plan::Plan,
    recording::RunContext,
    rules::RecordingRules,
    settings::ChatEvent,
    store::{Administration as _, Outbox as _, ProjectChange},
    timestamp::Timestamp,
};
use assay_flakiness::Engine;
use assay_ingest::{Arrival, Files, Flags, ci::CiContext};
use assay_messages::{FileChannel, FileFormat, Notifier, Scope, Target};
use assay_reports::{Options, SourceFile};
use assay_repository::Database;
use assay_testkit::{TestDatabase, assert_contains, junit};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;

const START: Timestamp = Timestamp::from_unix_ms(1_795_000_000_000);
const MINUTE: i64 = 60_000;
const DAYS: i64 = 30;
/// Runs of a day on the stable branch, and runs on other branches for each of them.
const RUNS: (i64, i64) = (3, 2);
const TESTS: usize = 60;
/// The flaky tests, and the share of runs in which each fails.
const FLAKY: [(usize, f64); 3] = [(57, 0.04), (58, 0.06), (59, 0.1)];
const AUTHORS: [&str; 4] = ["Ada", "Grace", "Edsger", "Barbara"];

/// A run with its failed tests, each with its error.
struct Run {
    at: Timestamp,
    branch: String,
    commit: String,
    author: &'static str,
    failed: BTreeMap<usize, String>,
}

/// The runs of a project in the order of their numbers, from 1, and the errors of planted breakages with the index of
/// their first run.
#[derive(Default)]
struct Month {
    runs: Vec<Run>,
    planted: BTreeMap<String, usize>,
}

/// A word without digits, which no fingerprint masks.
fn word(number: usize) -> String {
    let letter = |place: u32| char::from(b'a' + u8::try_from(number / 26_usize.pow(place) % 26).unwrap());
    (0..3).map(letter).collect()
}

impl Month {
    fn generate(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut month = Self::default();
        // The tests of the present breakage, its error and the runs that are left of it.
        let mut broken: Option<(BTreeSet<usize>, String, u32)> = None;
        let between = 24 * 60 * MINUTE / RUNS.0;
        for number in 0..DAYS * RUNS.0 {
            // After a week, a breakage begins about every fifth day, the time of breakages aside: of one test, of some, or of more than half.
            if broken.is_none() && number > 7 * RUNS.0 && random.random_bool(1.0 / 16.0) {
                let count = [1, 2, 4, 7, 11, 40][random.random_range(0..6)];
                let first = random.random_range(0..57 - count);
                let error = format!("the total of {} is wrong", word(month.runs.len()));
                month.planted.insert(error.clone(), month.runs.len());
                broken = Some(((first..first + count).collect(), error, random.random_range(1..7)));
            }
            for of_branch in 0..=RUNS.1 {
                let flakes = FLAKY.into_iter().filter(|(_, rate)| random.random_bool(*rate));
                let mut failed: BTreeMap<usize, String> = flakes
                    .map(|(test, _)| (test, format!("no answer of {}", word(test))))
                    .collect();
                if of_branch == 0 {
                    let (tests, error, _) = broken.clone().unwrap_or_default();
                    failed.extend(tests.into_iter().map(|test| (test, error.clone())));
                } else if random.random_bool(0.5) {
                    // Half of the runs of branches fail by their own change.
                    let error = format!("a change of {} is wrong", word(month.runs.len()));
                    failed.insert(random.random_range(0..57), error);
                }
                month.runs.push(Run {
                    at: START.plus_ms(number * between + of_branch * between / (RUNS.1 + 1)),
                    branch: match of_branch {
                        0 => "main".to_owned(),
                        _ => format!("topic-{}-{of_branch}", number / 3),
                    },
                    commit: format!("{:08x}{number:032x}", random.random::<u32>()),
                    author: AUTHORS[random.random_range(0..4)],
                    failed,
                });
            }
            broken = broken.and_then(|(tests, error, left)| (left > 1).then(|| (tests, error, left - 1)));
        }
        month
    }

    /// Imports each run, with a pass after it, and returns the messages, each with the runs that were stored before it.
    fn play(&self, database: &TestDatabase, project: ProjectId, name: &str) -> Vec<(usize, Value)> {
        let (importer, store) = (database.connect_as_importer(), database.connect_as_notifier());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages");
        let engine = Engine::default();
        let mut sent = Vec::new();
        let after = [START.plus_days(DAYS + 1)];
        let times = self.runs.iter().map(|run| run.at).chain(after);
        for (place, at) in times.enumerate() {
            if let Some(run) = self.runs.get(place) {
                run.import(&importer, project, place);
            }
            let target = Target {
                name: name.to_owned(),
                scope: Scope::All,
                events: ChatEvent::ALL.to_vec(),
                quiet: None,
                digest: None,
                channel: Box::new(FileChannel {
                    path: path.clone(),
                    format: FileFormat::Json,
                }),
            };
            let report = Notifier::new(&store, &engine, None, vec![target], || 0.0)
                .pass(&|| at.plus_ms(MINUTE))
                .unwrap();
            assert_eq!(report.failed, 0);
            let lines = fs::read_to_string(&path).unwrap_or_default();
            let new = lines
                .lines()
                .skip(sent.len())
                .map(|line| serde_json::from_str::<Value>(line).unwrap());
            let new: Vec<_> = new
                .map(|mut message| ((place + 1).min(self.runs.len()), message["data"].take()))
                .collect();
            sent.extend(new);
        }
        assert_eq!(store.unsettled(project).unwrap().len(), 0);
        sent
    }

    /// The runs of main among the first ones, the newest first, each with its index.
    fn of_main(&self, stored: usize) -> impl Iterator<Item = (usize, &Run)> {
        let runs = self.runs.iter().enumerate().take(stored);
        runs.rev().filter(|(_, run)| run.branch == "main")
    }

    /// The run that a text such as `run 12 (3fa9c1d2 by Ada)` begins with, and the rest. Its commit and author are right.
    fn run<'a>(&self, text: &'a str) -> (usize, &'a str) {
        let (number, rest) = text.strip_prefix("run ").unwrap().split_once(" (").unwrap();
        let (commit, rest) = rest.split_once(')').unwrap();
        let place = number.parse::<usize>().unwrap() - 1;
        assert_eq!(commit, self.runs[place].shown(), "{text}");
        (place, rest)
    }

    /// Counts what a sentence says. `broken` are the tests that its message says broke, `reported` those that earlier messages called
    /// broken and none called repaired. Returns the failing tests that it speaks of, if it says that they broke.
    fn recount(
        &self,
        stored: usize,
        (broken, reported): (&BTreeSet<usize>, &BTreeSet<usize>),
        group: &Value,
    ) -> Option<BTreeSet<usize>> {
        let sentence = group["sentence"].as_str().unwrap();
        let error = group["error"].as_str();
        let (newest, run) = self.of_main(stored).next().unwrap();
        let number = |word: &str| word.parse::<usize>().ok();
        let named: BTreeSet<usize> = group["tests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| {
                name.as_str()
                    .unwrap()
                    .rsplit(' ')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap()
            })
            .collect();
        let said = sentence.split(' ').next().and_then(number);
        let listed = named.len() + usize::try_from(group["more"].as_u64().unwrap()).unwrap();
        let with_error = |run: &Run| -> BTreeSet<usize> {
            let of_error = run
                .failed
                .iter()
                .filter(|(_, of_test)| error.is_none_or(|error| error == *of_test));
            of_error.map(|(test, _)| *test).collect()
        };
        let flaky: BTreeSet<usize> = FLAKY.iter().map(|(test, _)| *test).collect();
        let states = [
            ("passes again on main as of ", true),
            ("what broke in the suite is repaired on main as of ", false),
        ];
        for (words, is_green) in states {
            let Some((_, rest)) = sentence.split_once(words) else {
                continue;
            };
            let (place, rest) = self.run(rest);
            assert_eq!(place, newest, "the newest run of main is {}", newest + 1);
            assert_eq!(run.failed.is_empty(), is_green);
            assert!(run.failed.keys().all(|test| flaky.contains(test)));
            let repaired = rest
                .strip_prefix(": ")
                .and_then(|rest| number(rest.split(' ').next()?));
            assert_eq!(repaired.unwrap_or(0), listed);
            let repaired = reported.iter().filter(|test| !run.failed.contains_key(test));
            let (of_flaky, others): (Vec<&usize>, Vec<&usize>) =
                repaired.partition(|test| flaky.contains(*test));
            // A test that was judged flaky meanwhile is not called repaired.
            let least = others.len();
            assert!(
                (least..=least + of_flaky.len()).contains(&listed),
                "{reported:?} broke"
            );
            assert!(named.is_subset(reported));
            assert!(named.iter().all(|test| !run.failed.contains_key(test)));
            return None;
        }
        if let Some((_, rest)) = sentence.split_once(" broke") {
            let failed = with_error(run);
            assert_eq!(
                (said, listed),
                (Some(failed.len()), failed.len()),
                "tests of run {}",
                newest + 1
            );
            assert!(named.is_subset(&failed), "{named:?}");
            assert_eq!(rest.starts_with(" with one error"), failed.len() > 1);
            let (_, since) = rest.split_once(" since ").unwrap();
            let commit = since.split(';').next().unwrap();
            let mut red = self
                .of_main(stored)
                .take_while(|(_, run)| !with_error(run).is_disjoint(&failed));
            let (_, first) = red.by_ref().last().unwrap();
            assert_eq!(commit, first.shown());
            return Some(failed);
        }
        assert_eq!(said, Some(listed));
        if let Some((_, rest)) = sentence.split_once(" failed in ") {
            let (place, _) = self.run(rest);
            let failed: BTreeSet<usize> = self.runs[place].failed.keys().copied().collect();
            let of_flaky = failed.intersection(&flaky).filter(|test| !broken.contains(test));
            assert_eq!(listed, of_flaky.count());
            assert!(named.is_subset(&failed) && named.is_subset(&flaky));
        } else if let Some((_, rest)) = sentence.split_once(" failed with a new error in ") {
            let (place, _) = self.run(rest);
            assert_eq!(listed, with_error(&self.runs[place]).len());
            let first = self.runs.iter().position(|run| !with_error(run).is_empty());
            assert_eq!(first, Some(place), "the error is new");
        } else if let Some((_, number)) = sentence.split_once(" flaky as of run ") {
            assert!((1..=self.runs.len()).contains(&number.parse().unwrap()));
            assert!(
                named.is_subset(&flaky),
                "{named:?} were broken, and are not flaky"
            );
        } else {
            let (verb, rest) = sentence
                .split_once(" as of ")
                .unwrap_or_else(|| panic!("a sentence of another kind"));
            assert!(
                [
                    "pass again",
                    "passes again",
                    "are not flaky any more",
                    "is not flaky any more"
                ]
                .iter()
                .any(|words| verb.ends_with(words))
            );
            let (place, _) = self.run(rest);
            assert!(
                named
                    .iter()
                    .all(|test| !self.runs[place].failed.contains_key(test))
            );
        }
        None
    }
}

/// Whether a group says that tests broke.
fn says_broke(group: &Value) -> bool {
    let sentence = group["sentence"].as_str().unwrap();
    sentence.starts_with(|first: char| first.is_ascii_digit()) && sentence.contains(" broke")
}

impl Run {
    /// The commit and its author in a message.
    fn shown(&self) -> String {
        format!("{} by {}", &self.commit[..8], self.author)
    }

    fn import(&self, store: &Database, project: ProjectId, place: usize) {
        let name = |test: usize| format!("adds up {test}");
        let cases: Vec<_> = (0..TESTS)
            .map(|test| (name(test), !self.failed.contains_key(&test)))
            .collect();
        let error = |of: &str| {
            let failed = self.failed.iter().find(|(test, _)| name(**test) == of);
            (failed.unwrap().1.clone(), "at cart.test.ts:3:1".to_owned())
        };
        let files = vec![SourceFile {
            name: "report.xml".to_owned(),
            bytes: junit(&cases, "cart.test.ts", error).into_bytes(),
            modified: None,
        }];
        let counts = Files::of(&files);
        let flags = Flags {
            run_key: Some(place.to_string()),
            context: RunContext {
                branch: Some(self.branch.clone()),
                commit_sha: Some(self.commit.clone()),
                author_name: Some(self.author.to_owned()),
                ..RunContext::default()
            },
            started_at: Some(self.at.plus_ms(-MINUTE)),
            ..Flags::default()
        };
        let arrival = Arrival {
            files: counts,
            report: assay_reports::read(files, &Options::default()).unwrap(),
            flags: &flags,
            ci: &CiContext::default(),
            job_started_at: None,
        };
        let prepared = assay_ingest::prepare(arrival, self.at).unwrap();
        let (engine, rules) = (Engine::default(), RecordingRules::Unrestricted);
        assay_ingest::import(store, &engine, project, &prepared, rules, self.at).unwrap();
    }
}

#[test]
fn each_breakage_of_a_month_has_a_message_at_once_and_no_message_has_a_wrong_number() {
    let results: Vec<_> = thread::scope(|scope| {
        let projects: Vec<_> = (0..3).map(|seed| scope.spawn(move || of_project(seed))).collect();
        projects
            .into_iter()
            .map(|project| project.join().unwrap())
            .collect()
    });
    let (mut messages, mut failed, mut planted, mut wrong) = (0, 0, 0, Vec::new());
    for (sent, runs, breakages, of_project) in results {
        messages += sent;
        failed += runs;
        planted += breakages;
        wrong.extend(of_project);
    }
    println!("{planted} breakages, {failed} failed runs, {messages} messages");
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(planted >= 10, "{planted}");
    assert!(
        messages * 9 <= failed,
        "{messages} messages, {failed} failed runs"
    );
}

/// Whether a message is about a commit to revert.
fn names_commit(content: &Value) -> bool {
    let events = content["events"].as_array().unwrap();
    events.iter().any(|event| event == "revert_candidate")
}

/// The messages of a project, its failed runs, its breakages, and what is wrong.
fn of_project(seed: u64) -> (usize, usize, usize, Vec<String>) {
    let database = TestDatabase::new();
    let store = database.connect();
    let organization = store.create_organization("Acme", Plan::Pro, START).unwrap();
    let name = ["shop", "mail", "maps"][usize::try_from(seed).unwrap()];
    let project = store
        .create_project(organization.id, name, "main", START)
        .unwrap();
    let change = ProjectChange {
        chat: Some(Some(ChatEvent::ALL.to_vec())),
        ..ProjectChange::default()
    };
    store
        .set_project(project.id, &change, &Engine::default(), START)
        .unwrap();
    let month = Month::generate(17 + seed);
    let sent = month.play(&database, project.id, name);
    let mut wrong = Vec::new();
    let mut reported: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    // The tests that messages called broken, and none called repaired.
    let mut of_broken = BTreeSet::new();
    for (stored, content) in &sent {
        let headline = content["headline"].as_str().unwrap();
        let groups = content["groups"].as_array().unwrap();
        let still_broken = of_broken.clone();
        let recounted = std::panic::catch_unwind(|| {
            let mut broken = BTreeSet::new();
            for group in groups {
                let more = month.recount(*stored, (&broken, &still_broken), group);
                broken.extend(more.unwrap_or_default());
            }
            // The headline is the first group's sentence, or sums up all broken tests.
            let said = groups.iter().take_while(|group| says_broke(group)).count().max(1);
            let first = groups[0]["sentence"].as_str().unwrap();
            match said {
                1 => assert!(headline.starts_with(first)),
                several => {
                    let number = if broken.len() == 1 {
                        "1 test broke".to_owned()
                    } else {
                        format!("{} tests broke", broken.len())
                    };
                    assert!(
                        headline.starts_with(&format!("{number} with {several} errors")),
                        "{}",
                        broken.len()
                    );
                }
            }
            let more = groups.len() - said + usize::try_from(content["more"].as_u64().unwrap()).unwrap();
            match headline.split_once(", and ") {
                None => assert_eq!(more, 0),
                Some((_, rest)) => assert!(rest.starts_with(&format!("{more} more change"))),
            }
            broken
        });
        match recounted {
            Ok(broken) => of_broken.extend(broken),
            Err(why) => {
                let why = match why.downcast_ref::<String>() {
                    Some(why) => why.clone(),
                    None => (*why.downcast_ref::<&str>().unwrap()).to_owned(),
                };
                wrong.push(format!("{name}, after run {stored}: {content}\n  {why}"));
            }
        }
        let (_, newest) = month.of_main(*stored).next().unwrap();
        let says_repaired = |group: &Value| {
            let sentence = group["sentence"].as_str().unwrap();
            ["passes again", "pass again", "is repaired"]
                .iter()
                .any(|words| sentence.contains(words))
        };
        if groups.iter().any(says_repaired) {
            of_broken.retain(|test| newest.failed.contains_key(test));
        }
        for group in groups {
            let error = group["error"]
                .as_str()
                .and_then(|error| month.planted.get_key_value(error));
            let is_reported =
                |_: &_| says_broke(group) || group["sentence"].as_str().unwrap().contains("a new error");
            // The third failed run may name the commit to revert: the one that broke it.
            if let Some((error, first)) = error.filter(is_reported) {
                match names_commit(content) {
                    true => assert_contains(
                        group["sentence"].as_str().unwrap(),
                        &format!("; revert candidate {}", &month.runs[*first].commit[..8]),
                    ),
                    false => reported.entry(error).or_default().push(*stored - 1),
                }
            }
        }
    }
    for (error, first) in &month.planted {
        let at = reported.get(error.as_str()).cloned().unwrap_or_default();
        if at != [*first] {
            wrong.push(format!(
                "{name}: {error:?} began in run {} and is in the messages after {at:?}",
                first + 1
            ));
        }
    }
    let failed = month.runs.iter().filter(|run| !run.failed.is_empty()).count();
    // The third failed run of a breakage may have a message about the commit to revert.
    let others = sent.iter().filter(|(_, content)| !names_commit(content));
    (others.count(), failed, month.planted.len(), wrong)
}
