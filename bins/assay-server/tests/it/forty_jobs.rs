//! Forty CI jobs that report one pull request, as real programs, against a real server and the code host's routes.

use std::{
    fs,
    process::{Child, Command, Stdio},
    sync::Mutex,
    thread,
    time::Duration,
};

use assay_testkit::{Cli, text};
use rand::{RngExt as _, seq::SliceRandom as _};
use serde_json::{Value, json};

use crate::{gate::report, ingest::IngestServer};

#[allow(dead_code, reason = "the tests of the code host use all of it")]
#[path = "../../../../crates/cli-remote/tests/it/receiver.rs"]
mod receiver;

use receiver::{Receiver, TOKEN};

const HEAD: &str = "de1049640a1b2c3d4e5f60718293a4b5c6d7e8f9";
const JOBS: usize = 40;
/// How many jobs run at the same time.
const AT_ONCE: usize = 4;

/// How a job sends its report and reports the commit.
#[derive(Clone, Copy)]
enum Kind {
    /// `assay upload` does both.
    Upload,
    /// `assay run` does both after its command, which writes the report.
    Run,
    /// `assay upload` sends the report, and `assay gate` reports the commit.
    Gate,
}

impl Kind {
    fn of(job: usize) -> Self {
        match job % 3 {
            0 => Self::Upload,
            1 => Self::Run,
            _ => Self::Gate,
        }
    }
}

/// What the jobs have in common.
struct Build {
    ingest: IngestServer,
    host: Receiver,
    folder: tempfile::TempDir,
}

impl Build {
    fn new() -> Self {
        let ingest = IngestServer::with(&[("ASSAY_PUBLIC_URL", "https://assay.example.org")]);
        ingest.cli.run(&["project", "set", "web", "--pr-comments", "on"]);
        let folder = tempfile::tempdir().unwrap();
        for job in 0..JOBS {
            let error = format!("expected {job} items, got none");
            // Every fourth job fails.
            let failure = (job % 4 == 0).then_some(error.as_str());
            let cases = [(format!("test {job}"), failure), (format!("other {job}"), None)];
            let cases: Vec<_> = cases
                .iter()
                .map(|(name, error)| (name.as_str(), *error))
                .collect();
            fs::write(folder.path().join(format!("{job}.xml")), report(&cases)).unwrap();
        }
        Self {
            ingest,
            host: Receiver::start(),
            folder,
        }
    }

    /// The command that sends the report of a job.
    fn command(&self, job: usize) -> Command {
        let (file, suite) = (format!("{job}.xml"), format!("suite {job}"));
        let comment = ["--suite", &suite, "--report-to", "comment"];
        match Kind::of(job) {
            Kind::Upload => self.program(job, &[&["upload", &file], comment.as_slice()].concat()),
            Kind::Gate => self.program(job, &["upload", &file, "--suite", &suite, "--json"]),
            Kind::Run => {
                let written = format!("written {job}.xml");
                let arguments = [&["run", "--report", &written], comment.as_slice()].concat();
                self.program(
                    job,
                    &[arguments.as_slice(), &["--", "cp", &file, &written]].concat(),
                )
            }
        }
    }

    /// `assay` with these arguments in a job of GitHub Actions.
    fn program(&self, job: usize, arguments: &[&str]) -> Command {
        let mut command = Cli::new("postgresql://127.0.0.1:1/nowhere").command(arguments);
        command
            .current_dir(self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env(
                "ASSAY_API_URL",
                format!("http://{}/api/v1", self.ingest.server.address()),
            )
            .env("ASSAY_READ_KEY", &self.ingest.read_key)
            .env("ASSAY_INGEST_URL", self.ingest.server.ingest().base())
            .env("ASSAY_INGEST_KEY", &self.ingest.key)
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_API_URL", &self.host.api)
            .env("GITHUB_REPOSITORY", "shop/web")
            .env("GITHUB_TOKEN", TOKEN)
            .env("GITHUB_EVENT_NAME", "pull_request")
            .env("GITHUB_REF", "refs/pull/7/merge")
            .env("GITHUB_HEAD_REF", "topic")
            .env("GITHUB_SHA", HEAD)
            .env("GITHUB_RUN_ID", "9")
            .env("GITHUB_JOB", format!("job-{job}"));
        command
    }

    fn finish(&self, job: usize) {
        let ends = |mut command: Command, statuses: &[i32]| {
            let output = command.output().unwrap();
            let status = output.status.code().unwrap();
            assert!(
                statuses.contains(&status),
                "{status}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            output.stdout
        };
        let printed = ends(self.command(job), &[0]);
        if matches!(Kind::of(job), Kind::Gate) {
            let stored: Value = serde_json::from_slice(&printed).unwrap();
            let run = text(&stored["runId"]);
            let arguments = [
                "gate",
                "--run",
                &run,
                "--exit-code",
                "9",
                "--report-to",
                "comment",
            ];
            ends(self.program(job, &arguments), &[0, 9]);
        }
    }

    /// Starts a job and kills it, somewhere between its start and its end.
    fn kill(&self, job: usize) {
        let mut child: Child = self.command(job).spawn().unwrap();
        thread::sleep(Duration::from_millis(rand::rng().random_range(0..300)));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// The text of a comment without its hidden line, which has the time of the text.
    fn comment(&self) -> (String, String) {
        let bodies = self.host.bodies();
        let [body] = bodies.as_slice() else {
            panic!("{} comments: {bodies:?}", bodies.len())
        };
        let (hidden, shown) = body.split_once('\n').unwrap();
        (hidden.to_owned(), shown.to_owned())
    }

    /// The text that the server composes now.
    fn expected(&self) -> String {
        let commit = self.ingest.read(&format!("/commits/{HEAD}"));
        let body = json!({"runId": commit["runs"][0]["id"]}).to_string();
        let headers = [("Content-Type", "application/json")];
        let answer = self
            .ingest
            .post("/ingest/v1/comments", &self.ingest.key, &headers, body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        text(&answer.json()["markdown"])
            .split_once('\n')
            .unwrap()
            .1
            .to_owned()
    }
}

#[test]
fn forty_jobs_keep_one_comment_with_the_newest_state() {
    let build = Build::new();
    let mut jobs: Vec<usize> = (0..JOBS).collect();
    jobs.shuffle(&mut rand::rng());
    let (one_by_one, at_once) = jobs.split_at(JOBS / 2);
    for (place, job) in one_by_one.iter().enumerate() {
        // Every fifth job is killed, and its repetition ends. Every fourth one runs twice.
        let is_killed = place % 5 == 3;
        if is_killed {
            build.kill(*job);
        }
        for _ in 0..=usize::from(place % 4 == 2) {
            let before = build.host.requests().len();
            build.finish(*job);
            let requests = build.host.requests().split_off(before);
            let of = |sought: &str| requests.iter().filter(|(method, _)| method == sought).count();
            // The job that writes the comment looks again, because another one may have written it. When a breakage
            // becomes probable, it deletes the earlier one first.
            let most = 2 + of("POST") + of("DELETE");
            let is_bounded = requests.len() <= most && of("DELETE") <= of("POST") && of("POST") <= 1;
            // The last request of a killed job may arrive after its end.
            assert!(is_killed || is_bounded, "{requests:?}");
        }
    }
    let requests = build.host.requests();
    let deletions = requests.iter().filter(|(method, _)| method == "DELETE");
    assert!(
        deletions.count() <= 1,
        "a breakage becomes probable once: {requests:?}"
    );
    assert_eq!(build.comment().1, build.expected());

    let twice = at_once.iter().take(5);
    let queue: Mutex<Vec<usize>> = Mutex::new(at_once.iter().chain(twice).copied().collect());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(job) = { queue.lock().unwrap().pop() } {
                    if job % 5 == 3 {
                        build.kill(job);
                    }
                    build.finish(job);
                }
            });
        }
    });
    let (hidden, shown) = build.comment();
    assert_eq!(shown, build.expected());
    assert!(hidden.contains(&format!(" revision={HEAD} ")), "{hidden}");
    let commit: Value = build.ingest.read(&format!("/commits/{HEAD}"));
    assert_eq!(commit["runs"].as_array().unwrap().len(), JOBS);
    let failed = JOBS / 4;
    assert_eq!(
        (&commit["counts"]["total"], &commit["counts"]["failed"]),
        (&json!(2 * JOBS), &json!(failed))
    );
    assert!(shown.contains(&format!("{failed} tests failed")), "{shown}");
}
