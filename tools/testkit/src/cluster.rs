//! One Postgres for all tests of a build folder. The first process starts it.
//!
//! Any number of test processes share it. Each creates a file with its process id in `users`. A killed test process
//! cannot remove its file, so a small shell script stops Postgres when no such process has run for a while. The script
//! keeps no output open, so that a CI job ends with its tests.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use assay_local_postgres::{Cluster, Durability, Settings};

/// Stops Postgres when several checks in a row, over 40 seconds, found no living user. The folder of users is moved
/// away before the last check: a later process then finds no Postgres and starts it again.
const WATCHER: &str = r#"
alive() {
  for user in "$1"/*; do
    [ -e "$user" ] || continue
    if kill -0 "${user##*/}" 2>/dev/null; then return 0; fi
    rm -f "$user"
  done
  return 1
}
idle=0
while kill -0 "$POSTMASTER" 2>/dev/null; do
  sleep 10
  if alive users; then idle=0; continue; fi
  idle=$((idle + 1))
  [ "$idle" -ge 4 ] || continue
  rm -rf users.closing
  mv users users.closing 2>/dev/null
  if alive users.closing; then
    mkdir -p users
    mv users.closing/* users/
    idle=0
    continue
  fi
  kill -INT "$POSTMASTER"
  exit 0
done
"#;

/// The connection string of a database of the shared cluster. The cluster is running when this returns.
pub(crate) fn url(database: &str) -> Result<String> {
    static CLUSTER: Mutex<Option<&'static Cluster>> = Mutex::new(None);
    let mut shared = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let cluster = match *shared {
        Some(cluster) => cluster,
        // Never dropped, because another process may use it.
        None => shared.insert(Box::leak(Box::new(start()?))),
    };
    Ok(cluster.url(database))
}

/// The connection string of the same database for the login of a program ([`LOGINS`]), if it is the superuser's of the
/// shared cluster. Any other connection string is unchanged.
pub(crate) fn url_as(url_of_superuser: &str, login: &str) -> String {
    let own = url("postgres").unwrap_or_default();
    let is_own = own
        .split_once('?')
        .is_some_and(|(_, server)| url_of_superuser.ends_with(server));
    match url_of_superuser.rsplit_once("&user=").filter(|_| is_own) {
        Some((head, _)) => format!("{head}&user={login}"),
        None => url_of_superuser.to_owned(),
    }
}

/// The logins of the programs in the shared cluster, with their group roles. The programs of tests never run as a
/// superuser, except commands of the tables' owner.
pub(crate) const LOGINS: [(&str, &str); 4] = [
    ("assay_test_server", "assay_server"),
    ("assay_test_importer", "assay_importer"),
    ("assay_test_ingester", "assay_ingester"),
    ("assay_test_notifier", "assay_notifier"),
];

/// The folder of the shared cluster: `ASSAY_TEST_POSTGRES`, or one in the target folder.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("ASSAY_TEST_POSTGRES")
        .map_or_else(|| target().join("assay-test-postgres"), PathBuf::from)
}

/// The target folder of the build that this test belongs to.
pub(crate) fn target() -> PathBuf {
    profile()
        .parent()
        .expect("a profile lies in a target folder")
        .to_path_buf()
}

/// The folder of the programs of this build, such as `target/debug`: the test's own is `deps` within it.
pub(crate) fn profile() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().expect("a program lies in a folder");
    if folder.ends_with("deps") || folder.ends_with("examples") {
        folder.parent().expect("deps lies in a folder").to_path_buf()
    } else {
        folder.to_path_buf()
    }
}

fn start() -> Result<Cluster> {
    let folder = folder();
    register(&folder)?;
    let settings = Settings {
        pg_bin: std::env::var_os("PG_BIN").map(PathBuf::from),
        path: std::env::var_os("PATH"),
        durability: Durability::Ephemeral,
        timeout: Duration::from_secs(60),
    };
    let cluster = Cluster::start(&folder, &settings).context("the tests need Postgres")?;
    if cluster.started_here() {
        watch(&folder, cluster.pid())?;
    }
    Ok(cluster)
}

/// Registers this process as a user of the cluster.
fn register(folder: &Path) -> Result<()> {
    let users = folder.join("users");
    let file = users.join(std::process::id().to_string());
    // The watcher may move the folder away between the two calls. It is then created again.
    let attempt = || fs::create_dir_all(&users).and_then(|()| fs::write(&file, ""));
    attempt()
        .or_else(|_| attempt())
        .with_context(|| format!("could not write {}", file.display()))
}

fn watch(folder: &Path, postmaster: i32) -> Result<()> {
    Command::new("sh")
        .arg("-c")
        .arg(WATCHER)
        .env("POSTMASTER", postmaster.to_string())
        .current_dir(folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("could not start the watcher of the test cluster")?;
    Ok(())
}
