//! A database on every node of the cluster that the environment names.

use std::{
    fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{Logins, PATIENCE, execute, texts};

/// The message of a test without a cluster.
const NO_CLUSTER: &str = "ASSAY_CITUS_URL must name the coordinator of a Citus cluster; \
     bins/assay-server/tests/citus/main.rs describes how to make one";

/// A distributed database. It is dropped with the value.
pub(crate) struct Cluster {
    name: String,
    user: String,
    coordinator: Address,
    pub(crate) workers: Vec<Address>,
    /// The connection string of `ASSAY_CITUS_URL`, whose database stays.
    home: String,
    pub(crate) logins: Option<Logins>,
    /// One test at a time, because one of them kills a worker.
    _turn: MutexGuard<'static, ()>,
}

/// Host and port of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: String,
}

impl Cluster {
    /// A new database with the logins of the deployment, before `assay-admin migrate`.
    pub(crate) fn new() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let home = std::env::var("ASSAY_CITUS_URL").expect(NO_CLUSTER);
        let nodes = |group: &str| -> Vec<Address> {
            let sql = format!(
                "SELECT nodename || ' ' || nodeport FROM pg_dist_node WHERE groupid {group} ORDER BY nodeport"
            );
            let nodes = texts(&home, &sql).into_iter().flatten();
            nodes
                .map(|node| {
                    let (host, port) = node.split_once(' ').unwrap();
                    Address {
                        host: host.to_owned(),
                        port: port.to_owned(),
                    }
                })
                .collect()
        };
        let mut cluster = Self {
            name: format!("assay_test_{}", std::process::id()),
            user: text(&home, "SELECT current_user"),
            coordinator: nodes("= 0").pop().expect(NO_CLUSTER),
            workers: nodes("> 0"),
            home,
            logins: None,
            _turn: turn,
        };
        cluster.drop_databases();
        for node in cluster.nodes() {
            execute(
                &cluster.url_of(node, "postgres"),
                &format!("CREATE DATABASE {}", cluster.name),
            );
            execute(&cluster.url_of(node, &cluster.name), "CREATE EXTENSION citus");
        }
        let Address { host, port } = &cluster.coordinator;
        execute(
            &cluster.url(),
            &format!("SELECT citus_set_coordinator_host('{host}', {port})"),
        );
        for Address { host, port } in &cluster.workers {
            execute(
                &cluster.url(),
                &format!("SELECT citus_add_node('{host}', {port})"),
            );
        }
        cluster.logins = Some(Logins::new(&cluster.url(), &cluster.name));
        cluster
    }

    /// The connection string of the coordinator, as a superuser.
    pub(crate) fn url(&self) -> String {
        self.url_of(&self.coordinator, &self.name)
    }

    /// The connection strings of owner, server, importer, ingest listener, assay-notify, backups and people with SQL.
    /// The server's names every node, the others the coordinator.
    pub(crate) fn urls(&self) -> [String; 7] {
        let mut urls = self.logins.as_ref().unwrap().urls();
        let list = |of: fn(&Address) -> &String| self.nodes().map(of).cloned().collect::<Vec<_>>().join(",");
        let Address { host, port } = &self.coordinator;
        urls[1] = urls[1]
            .replace(
                &format!("host={host}"),
                &format!("host={}", list(|node| &node.host)),
            )
            .replace(
                &format!("port={port}"),
                &format!("port={}", list(|node| &node.port)),
            )
            + "&load_balance_hosts=random";
        urls
    }

    /// The connection strings of all nodes, as a superuser.
    pub(crate) fn node_urls(&self) -> Vec<String> {
        self.nodes().map(|node| self.url_of(node, &self.name)).collect()
    }

    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        texts(&self.url(), sql).into_iter().flatten().collect()
    }

    pub(crate) fn text(&self, sql: &str) -> String {
        text(&self.url(), sql)
    }

    /// The worker that has a project.
    pub(crate) fn worker_of(&self, project: &str) -> Address {
        let place = self.text(&format!(
            "SELECT nodename || ' ' || nodeport FROM citus_shards \
             WHERE table_name = 'project'::regclass \
                 AND shardid = get_shard_id_for_distribution_column('project', '{project}'::uuid)"
        ));
        let (host, port) = place.split_once(' ').unwrap();
        Address {
            host: host.to_owned(),
            port: port.to_owned(),
        }
    }

    /// Kills a worker, like a power failure.
    pub(crate) fn kill(&self, worker: &Address) -> KilledWorker {
        let url = self.url_of(worker, &self.name);
        let data = text(&url, "SHOW data_directory");
        let pid = text(
            &url,
            "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)",
        );
        let program = fs::read_link(format!("/proc/{pid}/exe")).expect("the workers run on this machine");
        let killed = Command::new("kill").args(["-9", &pid]).status().unwrap();
        assert!(killed.success(), "kill -9 {pid}");
        KilledWorker {
            program,
            data: data.into(),
            url,
            is_down: true,
        }
    }

    fn nodes(&self) -> impl Iterator<Item = &Address> {
        self.workers.iter().chain([&self.coordinator])
    }

    fn url_of(&self, node: &Address, database: &str) -> String {
        let Address { host, port } = node;
        format!(
            "postgresql:///{database}?host={host}&port={port}&user={}",
            self.user
        )
    }

    fn drop_databases(&self) {
        for node in self.nodes() {
            execute(
                &self.url_of(node, "postgres"),
                &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name),
            );
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.drop_databases();
        for name in self.logins.iter().flat_map(|logins| &logins.names) {
            execute(&self.home, &format!("DROP ROLE IF EXISTS {name}"));
        }
    }
}

/// A worker that was killed.
pub(crate) struct KilledWorker {
    program: PathBuf,
    data: PathBuf,
    url: String,
    is_down: bool,
}

impl Drop for KilledWorker {
    /// A failed test leaves the cluster as it was.
    fn drop(&mut self) {
        if self.is_down {
            self.restart();
        }
    }
}

impl KilledWorker {
    /// Starts it again, and waits until it answers.
    pub(crate) fn restart(&mut self) {
        self.is_down = false;
        let owner = fs::metadata(&self.data).unwrap();
        let begun = Instant::now();
        loop {
            let mut postgres = Command::new(&self.program);
            postgres
                .arg("-D")
                .arg(&self.data)
                .current_dir("/")
                .process_group(0);
            postgres
                .env("HOME", &self.data)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if owner.uid() != rustix::process::getuid().as_raw() {
                postgres.gid(owner.gid()).uid(owner.uid());
            }
            let mut running = postgres.spawn().unwrap();
            // The processes of a killed Postgres need a moment to exit.
            while running.try_wait().unwrap().is_none() {
                if answers(&self.url) {
                    return;
                }
                assert!(begun.elapsed() < PATIENCE, "the worker did not start");
                thread::sleep(Duration::from_millis(100));
            }
            assert!(begun.elapsed() < PATIENCE, "the worker did not start");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

fn answers(url: &str) -> bool {
    let mut psql = Command::new("psql");
    psql.args(["--no-psqlrc", "--dbname", url, "--command", "SELECT 1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    psql.status().unwrap().success()
}

fn text(url: &str, sql: &str) -> String {
    // `SHOW` cannot be part of another statement.
    let sql = sql.strip_prefix("SHOW ").map_or_else(
        || sql.to_owned(),
        |name| format!("SELECT current_setting('{name}')"),
    );
    let text = texts(url, &sql).pop().flatten();
    text.unwrap_or_else(|| panic!("{sql}: nothing"))
}
