//! Uploads are cut off by the client, the server or Postgres, and repeated until they are stored.

use std::{
    fs,
    io::Write as _,
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use assay_testkit::{Client, PATIENCE, Server, assert_contains, free_address, program, stderr_text, text};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::{
    quiet, server, snapshot,
    world::{Report, World},
};

/// The number of uploads that are cut off. `ASSAY_KILLS` sets it.
const CUTS: u32 = 9;

/// A world with the ingest listener.
struct IngestServer {
    world: World,
    key: String,
    address: String,
}

impl IngestServer {
    fn over(world: World) -> Self {
        let key = world.cli.json(&["key", "create-ingest", "--project", "web"]);
        let mut ingest = Self {
            world,
            key: text(&key["key"]),
            address: free_address(),
        };
        ingest.start(&[]);
        ingest
    }

    /// Starts a server to replace the one that is running or was killed.
    fn start(&mut self, more: &[(&str, &str)]) {
        let environment = [
            ("ASSAY_DATABASE_URL", self.world.database.url()),
            ("ASSAY_INGEST_LISTEN", &self.address),
        ];
        let environment = [&environment, more].concat();
        self.world.server.kill();
        let command = Command::new(program("assay-server"));
        self.world.server = server::start_with(command, self.world.folder.path(), &environment);
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn command(&self, report: &Report) -> Command {
        let mut command = self.world.upload_command(report, &self.url(), &self.key);
        command.args(["--retry-for", "60s", "--spool", "kept"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    fn upload(&self, report: &Report) {
        let output = self.command(report).output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
    }

    /// Cuts off an upload at a moment. Returns whether it was still running.
    fn cut(&mut self, report: &Report, by: Cut, moment: Duration) -> bool {
        let mut upload = self.command(report).spawn().unwrap();
        thread::sleep(moment);
        let was_running = upload.try_wait().unwrap().is_none();
        match by {
            Cut::Client => {
                // The upload may have ended already.
                let _ = upload.kill();
                upload.wait().unwrap();
            }
            Cut::Server => {
                self.world.server.kill();
                self.start(&[]);
            }
            Cut::Postgres => {
                self.world.postgres().kill();
                self.world.postgres().start_again();
            }
        }
        if !matches!(by, Cut::Client) {
            // The command retries.
            let output = upload.wait_with_output().unwrap();
            assert!(output.status.success(), "{by:?}: {}", stderr_text(&output));
        }
        was_running
    }
}

/// The process that is killed to cut off an upload.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Client,
    Server,
    Postgres,
}

#[test]
fn uploads_cut_off_and_repeated_equal_ones_left_alone() {
    let _shared = quiet::shared();
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u32>().unwrap());
    let cuts = number("ASSAY_KILLS").unwrap_or(CUTS);
    let seed = number("ASSAY_SEED").unwrap_or(1);
    let whole = |build| Report::whole(build, 25, (100 - i64::from(build)) * 60);
    let shards = (1..=2).map(|part| Report {
        shard: Some((part, 2)),
        ..whole(5)
    });
    let history: Vec<_> = (1..=4).map(whole).chain(shards).collect();

    let undisturbed = IngestServer::over(World::new());
    let began = Instant::now();
    for report in &history {
        undisturbed.upload(report);
    }
    let typical = began.elapsed() / u32::try_from(history.len()).unwrap();
    let expected = snapshot::of(&undisturbed.world);

    let mut random = StdRng::seed_from_u64(seed.into());
    let mut disturbed = IngestServer::over(World::with_own_postgres());
    let (mut uploads, mut cut) = (0, 0);
    for (index, report) in (1..).zip(&history) {
        // The moments are spread evenly over the history.
        while uploads * u32::try_from(history.len()).unwrap() < cuts * index {
            let by = [Cut::Client, Cut::Server, Cut::Postgres][usize::try_from(uploads % 3).unwrap()];
            let moment = typical.mul_f64(random.random_range(0.2..1.0));
            cut += u32::from(disturbed.cut(report, by, moment));
            uploads += 1;
        }
        disturbed.upload(report);
    }
    assert!(cut > 0, "every upload ended before its moment");
    println!("{cut} of {uploads} uploads of about {typical:?} cut off");
    let context = format!("seed {seed}");
    snapshot::assert_same(&snapshot::of(&disturbed.world), &expected, &context);
    for report in &history {
        disturbed.upload(report);
    }
    snapshot::assert_same(&snapshot::of(&disturbed.world), &expected, &context);
    assert_nothing_left(&disturbed.world.server);
    let kept_folder = disturbed.world.folder.path().join("kept");
    assert_eq!(fs::read_dir(&kept_folder).map_or(0, |entries| entries.count()), 0);
}

#[test]
fn an_upload_that_finds_the_spool_full_is_stored_once_there_is_room() {
    let _shared = quiet::shared();
    let mut ingest = IngestServer::over(World::new());
    // A key may use half of it.
    ingest.start(&[("ASSAY_INGEST_SPOOL_MIB", "2")]);
    // An endless body that fills the space.
    let head = format!(
        "POST /ingest/v1/reports HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Length: 2000000\r\n\r\n",
        ingest.key
    );
    let hold = || {
        let mut holder = TcpStream::connect(&ingest.address).unwrap();
        holder.write_all(head.as_bytes()).unwrap();
        holder.write_all(&vec![b' '; 1 << 20]).unwrap();
        (holder, Instant::now())
    };
    let (mut holder, mut held) = hold();
    let client = Client::new(ingest.url());
    let authorization = format!("Bearer {}", ingest.key);
    let headers = [("Authorization", authorization.as_str())];
    let began = Instant::now();
    loop {
        let answer = client.post("/ingest/v1/reports", &headers, b"<testsuite/>");
        if answer.status == 503 {
            assert_eq!(answer.json()["code"], "busy");
            assert!(answer.header("retry-after").is_some());
            break;
        }
        assert_eq!(answer.status, 422, "{}", answer.text());
        assert!(began.elapsed() < PATIENCE, "the room is never full");
        // The request above may have used the last bytes of the space, so the body was refused.
        if held.elapsed() > Duration::from_secs(5) {
            (holder, held) = hold();
        }
        thread::sleep(Duration::from_millis(200));
    }
    let report = Report::whole(1, 5, 60);
    let upload = ingest.command(&report).spawn().unwrap();
    thread::sleep(Duration::from_secs(1));
    drop(holder);
    let output = upload.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert_eq!(ingest.world.get("/runs")["total"], 1);
    assert_nothing_left(&ingest.world.server);
}

/// Asserts that no temporary file and no memory of an upload remains.
fn assert_nothing_left(server: &Server) {
    let began = Instant::now();
    let holds_files = || {
        let entries = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
        let targets = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        let temporary = std::env::temp_dir();
        let is_body = |target: &Path| {
            target.parent() == Some(&temporary) && target.display().to_string().ends_with("(deleted)")
        };
        targets.filter(|target| is_body(target)).count() > 0
    };
    while holds_files() {
        assert!(began.elapsed() < PATIENCE, "a temporary file is held");
        thread::sleep(Duration::from_millis(20));
    }
    let metrics = server.admin().get("/metrics", None).text();
    for gauge in [
        "assay_ingest_memory_reserved_bytes 0",
        "assay_ingest_uploads_waiting 0",
    ] {
        assert_contains(&metrics, gauge);
    }
}
