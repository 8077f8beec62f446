//! Clients that read and import without a pause, and count failures.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{Cli, Client, Server, World, junit, stderr_text};

use crate::cluster::{Address, Cluster};

/// A project with one key for reports, and the worker that has it.
#[derive(Debug, Clone)]
pub(crate) struct ProjectOnWorker {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) ingest_key: String,
    pub(crate) worker: Address,
}

/// An organization with projects on both workers, and a server that reads and takes reports, with the rights of the
/// deployment.
pub(crate) struct Installation {
    pub(crate) server: Server,
    /// The world of the owner.
    pub(crate) world: World<()>,
    /// `assay-admin import` with the importer's rights.
    pub(crate) importer: Cli,
    pub(crate) projects: Vec<ProjectOnWorker>,
}

impl Installation {
    /// The same number of projects on each of two workers.
    pub(crate) fn new(cluster: &Cluster, on_each: usize) -> Self {
        assert!(cluster.workers.len() > 1, "two workers are needed: see main.rs");
        let [owner, web, ci, ingest, ..] = cluster.urls();
        let world = World::over((), &owner);
        let mut projects: Vec<ProjectOnWorker> = Vec::new();
        let count = |projects: &[ProjectOnWorker], worker: &Address| {
            projects
                .iter()
                .filter(|project| project.worker == *worker)
                .count()
        };
        for number in 0..200 {
            let name = format!("project {number}");
            let project = world.cli.json(&["project", "create", "--org", "Shop", &name]);
            let id = project["id"].as_str().unwrap().to_owned();
            let worker = cluster.worker_of(&id);
            if count(&projects, &worker) < on_each {
                let key = world.cli.json(&["key", "create-ingest", "--project", &id]);
                projects.push(ProjectOnWorker {
                    id,
                    name,
                    ingest_key: key["key"].as_str().unwrap().to_owned(),
                    worker,
                });
            }
            if cluster
                .workers
                .iter()
                .take(2)
                .all(|worker| count(&projects, worker) == on_each)
            {
                break;
            }
        }
        assert!(projects.len() >= 2 * on_each, "{projects:?}");
        let settings = [
            ("ASSAY_INGEST_DATABASE_URL", ingest.as_str()),
            ("ASSAY_RATE_LIMIT", "0"),
            ("ASSAY_INGEST_RATE_LIMIT", "0"),
        ];
        let server = Server::start_with_ingest(&web, &settings);
        Self {
            server,
            world,
            importer: Cli::new(ci),
            projects,
        }
    }

    /// Imports a report into a project. The error is the reason of a failure.
    pub(crate) fn import(
        &self,
        project: &ProjectOnWorker,
        run_key: &str,
        passes: bool,
    ) -> Result<(), String> {
        self.import_with(project, run_key, passes, &[])
    }

    /// The same with additional flags.
    pub(crate) fn import_with(
        &self,
        project: &ProjectOnWorker,
        run_key: &str,
        passes: bool,
        flags: &[&str],
    ) -> Result<(), String> {
        let file = format!("{}-{run_key}.xml", project.id);
        let path = self.world.file(&file, &report(passes));
        let arguments = [
            "import",
            "--project",
            &project.name,
            "--no-ci",
            "--branch",
            "main",
            "--run-key",
            run_key,
            &path,
        ];
        let output = self.importer.run(&[&arguments, flags].concat());
        output
            .status
            .success()
            .then_some(())
            .ok_or_else(|| stderr_text(&output))
    }

    /// Sends a report over HTTP.
    pub(crate) fn send(&self, project: &ProjectOnWorker, run_key: &str) -> Result<(), String> {
        let path = format!("/ingest/v1/reports?branch=main&runKey={run_key}");
        let authorization = format!("Bearer {}", project.ingest_key);
        let headers = [
            ("Authorization", authorization.as_str()),
            ("Content-Type", "text/xml"),
        ];
        let answer = self
            .server
            .ingest()
            .post(&path, &headers, report(true).as_bytes());
        (answer.status == 201)
            .then_some(())
            .ok_or_else(|| format!("{}: {}", answer.status, answer.text()))
    }

    /// Reads a path.
    pub(crate) fn read(&self, client: &Client, path: &str) -> Result<(), String> {
        let answer = client.get(&format!("/api/v1{path}"), Some(&self.world.key));
        (answer.status == 200)
            .then_some(())
            .ok_or_else(|| format!("{path}: {} {}", answer.status, answer.text()))
    }
}

/// Paths that are read all the time, of one project and of all.
pub(crate) fn paths(project: &ProjectOnWorker) -> Vec<String> {
    let of_project = [
        "/settings",
        "/branches",
        "/runs?days=90",
        "/flaky?explain=true",
        "/errors",
        "/tests/cart%20%3E%20adds/status",
    ];
    let of_project = of_project.map(|path| format!("/projects/{}{path}", project.id));
    [vec!["/projects".to_owned()], of_project.to_vec()].concat()
}

fn report(passes: bool) -> String {
    let failure = |_: &str| ("expected 3, got 4".to_owned(), "at cart.test.ts:3:1".to_owned());
    junit(&[("adds", passes), ("sums", true)], "cart.test.ts", failure)
}

/// The counts of clients' requests, and the first failures.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) reads: AtomicU64,
    pub(crate) imports: AtomicU64,
    pub(crate) failures: Mutex<Vec<String>>,
    /// The slowest request, in milliseconds.
    pub(crate) slowest_ms: AtomicU64,
}

impl Counts {
    fn record(&self, of: &AtomicU64, begun: Instant, outcome: Result<(), String>) {
        of.fetch_add(1, Ordering::Relaxed);
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap();
        self.slowest_ms.fetch_max(ms, Ordering::Relaxed);
        if let Err(error) = outcome {
            self.failures.lock().unwrap().push(error);
        }
    }

    /// Fails if a request failed. Returns the numbers of reads and imports.
    pub(crate) fn all_succeeded(&self) -> (u64, u64) {
        let failures = self.failures.lock().unwrap();
        let (reads, imports) = (
            self.reads.load(Ordering::Relaxed),
            self.imports.load(Ordering::Relaxed),
        );
        assert!(
            failures.is_empty(),
            "{} of {reads} reads and {imports} imports failed, such as {:?}",
            failures.len(),
            failures.iter().take(3).collect::<Vec<_>>()
        );
        (reads, imports)
    }
}

/// Runs `meanwhile` while clients import into these projects, one a project, and others read the first `read` of them.
pub(crate) fn under_load<T>(
    installation: &Installation,
    projects: &[ProjectOnWorker],
    read: usize,
    counts: &Counts,
    meanwhile: impl FnOnce() -> T,
) -> T {
    let over = AtomicBool::new(false);
    let is_over = || over.load(Ordering::Relaxed);
    thread::scope(|scope| {
        for project in projects.iter().take(read) {
            scope.spawn(|| {
                let client = Client::new(format!("http://{}", installation.server.address()));
                let paths = paths(project);
                while !is_over() {
                    for path in &paths {
                        let begun = Instant::now();
                        counts.record(&counts.reads, begun, installation.read(&client, path));
                    }
                }
            });
        }
        for project in projects {
            scope.spawn(|| {
                for number in 0.. {
                    if is_over() {
                        break;
                    }
                    let (key, begun) = (format!("load-{number}"), Instant::now());
                    let imported = match number % 2 {
                        0 => installation.import(project, &key, number % 3 > 0),
                        _ => installation.send(project, &key),
                    };
                    counts.record(&counts.imports, begun, imported);
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
        // The clients end even if `meanwhile` panics. Otherwise the test would never end.
        let _end = End(&over);
        meanwhile()
    })
}

/// Ends the clients.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
