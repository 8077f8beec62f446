//! The files of deploy/: two processes with two database roles behind the real nginx, under one address with TLS.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use assay_testkit::{
    Browser, Cli, Client, Logins, Scripts, Server, TestDatabase, assert_contains, free_address, program,
    text, wait_until,
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const REPORT: &str =
    r#"<testsuite><testcase classname="cart" name="pays" time="0.1"/></testsuite>"#;

pub(crate) fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

pub(crate) fn file(name: &str) -> String {
    fs::read_to_string(deploy().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A file in which each of these texts occurs and is replaced.
fn file_with(name: &str, replacements: &[(&str, &str)]) -> String {
    let mut content = file(name);
    for (from, to) in replacements {
        assert!(content.contains(from), "{name} has no {from:?}");
        content = content.replace(from, to);
    }
    content
}

/// The variables of an environment file with these replacements.
pub(crate) fn variables(name: &str, replacements: &[(&str, &str)]) -> Vec<(String, String)> {
    let content = file_with(name, replacements);
    let lines = content
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| line.split_once('=').unwrap());
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The variables that a unit sets, with these replacements.
pub(crate) fn variables_of_unit(name: &str, replacements: &[(&str, &str)]) -> Vec<(String, String)> {
    let unit = file_with(name, replacements);
    let lines = unit.lines().filter_map(|line| line.strip_prefix("Environment="));
    let pairs = lines.flat_map(|line| line.split(' ').map(|pair| pair.split_once('=').unwrap()));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn borrowed(variables: &[(String, String)]) -> Vec<(&str, &str)> {
    let pairs = variables.iter();
    pairs
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// The real nginx with deploy/nginx.conf on loopback. Dropping it ends the process.
pub(crate) struct Proxy {
    process: Child,
    folder: TempDir,
    /// `localhost` with the port.
    authority: String,
    plain: String,
}

impl Proxy {
    /// Before the pages, the API and the ingest listener at these addresses.
    fn start(pages: &str, api: &str, reports: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(at("cert.pem"), cert.pem()).unwrap();
        fs::write(at("key.pem"), signing_key.serialize_pem()).unwrap();
        let (encrypted, plain) = (free_address(), free_address());
        let site = file_with(
            "nginx.conf",
            &[
                ("    listen [::]:80;\n", ""),
                ("    listen [::]:443 ssl;\n", ""),
                ("    listen [::]:80 default_server;\n", ""),
                ("    listen [::]:443 ssl default_server;\n", ""),
                (
                    "listen 80 default_server;",
                    &format!("listen {plain} default_server;"),
                ),
                (
                    "listen 443 ssl default_server;",
                    &format!("listen {encrypted} ssl default_server;"),
                ),
                ("listen 80;", &format!("listen {plain};")),
                ("listen 443 ssl;", &format!("listen {encrypted} ssl;")),
                ("server_name assay.example.org;", "server_name localhost;"),
                ("/etc/ssl/assay/fullchain.pem", &at("cert.pem")),
                ("/etc/ssl/assay/privkey.pem", &at("key.pem")),
                ("127.0.0.1:8082", pages),
                ("127.0.0.1:8080", api),
                ("127.0.0.1:8081", reports),
            ],
        );
        fs::write(at("assay.conf"), site).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let user = if is_root { "user root;" } else { "" };
        let folders: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|name| format!("{name}_temp_path {};\n", at(name)))
            .collect();
        let main = format!(
            "daemon off;\n{user}\npid {};\nerror_log {};\nevents {{}}\nhttp {{\naccess_log off;\n{folders}include {};\n}}\n",
            at("nginx.pid"),
            at("error.log"),
            at("assay.conf"),
        );
        fs::write(at("nginx.conf"), main).unwrap();
        // The path of other users often lacks its folder.
        let process =
            Command::new(["/usr/sbin/nginx", "nginx"][usize::from(!Path::new("/usr/sbin/nginx").exists())])
                .args(["-c", &at("nginx.conf"), "-p", &at(""), "-e", &at("error.log")])
                .stderr(Stdio::null())
                .spawn()
                .expect("nginx is installed (.ci/setup)");
        let (_, port) = encrypted.rsplit_once(':').unwrap();
        let proxy = Self {
            process,
            authority: format!("localhost:{port}"),
            plain,
            folder,
        };
        wait_until("the proxy", || proxy.curl(&[], "/login").status.success());
        proxy
    }

    pub(crate) fn base(&self) -> String {
        format!("https://{}", self.authority)
    }

    pub(crate) fn certificate(&self) -> String {
        self.folder.path().join("cert.pem").display().to_string()
    }

    /// Runs curl, which trusts the certificate alone, with these arguments for a path.
    fn curl(&self, arguments: &[&str], path: &str) -> Output {
        let output = Command::new("curl")
            // Without `Expect`, there is one head.
            .args(["--silent", "--show-error", "--header", "Expect:", "--cacert"])
            .arg(self.certificate())
            .args(arguments)
            .arg(format!("{}{path}", self.base()))
            .output();
        output.expect("curl is installed")
    }

    /// The head and the body of an answer.
    fn answer(&self, arguments: &[&str], path: &str) -> (String, String) {
        let output = self.curl(&[arguments, &["--include"]].concat(), path);
        assert!(output.status.success(), "{path}: {output:?}");
        let answer = String::from_utf8(output.stdout).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    fn json(&self, arguments: &[&str], path: &str) -> Value {
        let (head, body) = self.answer(arguments, path);
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The master process ends its workers at this signal.
        if let Some(process) = i32::try_from(self.process.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        let _ = self.process.wait();
    }
}

/// The deployment: a database with its logins, a process for readers, another for reports, and the proxy.
pub(crate) struct Deployment {
    pub(crate) proxy: Proxy,
    /// The addresses of the read API and of the pages behind the proxy.
    parts: [String; 2],
    _server: Server,
    _reports: Server,
    administration: Cli,
    logins: LoginsOfTest,
}

/// Logins that are dropped with their database.
struct LoginsOfTest {
    logins: Logins,
    database: TestDatabase,
}

impl Drop for LoginsOfTest {
    fn drop(&mut self) {
        self.logins.drop_in(&self.database);
    }
}

impl Deployment {
    fn new() -> Self {
        Self::with(&[])
    }

    /// With these settings of the process for readers, too.
    pub(crate) fn with(more: &[(&str, &str)]) -> Self {
        let database = TestDatabase::unmigrated();
        let prefix = database.text("SELECT current_database()").unwrap();
        let logins = Logins::new(database.url(), &prefix);
        let [owner, web, _, ingest, ..] = logins.urls();
        let administration = Cli::new(owner);
        administration.json(&["migrate"]);
        let (pages, api, reports) = (free_address(), free_address(), free_address());
        let proxy = Proxy::start(&pages, &api, &reports);
        let public_url = ("https://assay.example.org", proxy.base());
        let public_url = (public_url.0, public_url.1.as_str());

        let settings = variables(
            "server.env",
            &[
                ("postgresql://assay_web:PASSWORD@db.internal/assay", &web),
                public_url,
            ],
        );
        assert!(file("assay-server.service").contains("EnvironmentFile=/etc/assay/server.env\n"));
        let addresses = [("ASSAY_LISTEN", api.as_str()), ("ASSAY_FRONT_LISTEN", &pages)];
        let server = Server::start_with("", &[&borrowed(&settings)[..], &addresses, more].concat());

        let mut settings = variables(
            "ingest.env",
            &[
                ("postgresql://assay_uploads:PASSWORD@db.internal/assay", &ingest),
                public_url,
            ],
        );
        assert!(file("assay-ingest.service").contains("EnvironmentFile=/etc/assay/ingest.env\n"));
        settings.extend(variables_of_unit(
            "assay-ingest.service",
            &[("127.0.0.1:8081", &reports)],
        ));
        // The test needs its own address for operators.
        settings.retain(|(name, _)| name != "ASSAY_ADMIN_LISTEN");
        let reports = Server::start_with("", &borrowed(&settings));
        Self {
            proxy,
            parts: [api, pages],
            _server: server,
            _reports: reports,
            administration,
            logins: LoginsOfTest { logins, database },
        }
    }

    /// A project of a new organization: its id, a read key and an ingest key.
    pub(crate) fn project(&self, name: &str) -> (String, String, String) {
        let command = |arguments: &[&str]| self.administration.json(arguments);
        command(&["org", "create", "Shop", "--plan", "pro"]);
        let project = command(&["project", "create", "--org", "Shop", name]);
        let read = command(&["key", "create", "--org", "Shop", "--days", "90"]);
        let ingest = command(&["key", "create-ingest", "--project", name]);
        let of = |value: &Value, key: &str| text(&value[key]);
        (of(&project, "id"), of(&read, "key"), of(&ingest, "key"))
    }
}

#[test]
fn one_address_with_tls_has_pages_tools_api_and_reports() {
    let deployment = Deployment::new();
    let proxy = &deployment.proxy;
    let (project, read, ingest) = deployment.project("web");
    let folder = tempfile::tempdir().unwrap();

    // A CI job sends its report to the address.
    let job = Command::new(program("assay"))
        .args(["run", "--branch", "main", "--report", "r.xml", "--"])
        .args(["sh", "-c", &format!("printf '%s' '{REPORT}' > r.xml")])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("ASSAY_URL", proxy.base())
        .env("ASSAY_INGEST_KEY", &ingest)
        .env("SSL_CERT_FILE", proxy.certificate())
        .output()
        .unwrap();
    assert!(job.status.success(), "{job:?}");

    // A program reads it.
    let bearer = format!("Authorization: Bearer {read}");
    let runs = proxy.json(
        &["--header", &bearer],
        &format!("/api/v1/projects/{project}/runs"),
    );
    assert_eq!(runs["total"], 1, "{runs}");
    let run = text(&runs["runs"][0]["id"]);
    // The name of a test reaches the server as it was sent.
    let (head, body) = proxy.answer(
        &["--header", &bearer],
        &format!(
            "/api/v1/projects/{project}/tests/a%2F..%2F{}",
            "x%20".repeat(5_000)
        ),
    );
    assert!(
        head.starts_with("HTTP/1.1 404") && body.contains("test_not_found"),
        "{head} {body}"
    );

    // A job asks for the flaky tests.
    let listed = Command::new(program("assay"))
        .args(["quarantine", "--project", "web", "--format", "json"])
        .env("ASSAY_URL", proxy.base())
        .env("ASSAY_READ_KEY", &read)
        .env("SSL_CERT_FILE", proxy.certificate())
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");

    // An agent calls a tool.
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "list_runs", "arguments": {}}});
    let mut agent = Command::new(program("assay"))
        .args(["mcp"])
        .env("ASSAY_URL", proxy.base())
        .env("ASSAY_READ_KEY", &read)
        .env("SSL_CERT_FILE", proxy.certificate())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(agent.stdin.take().unwrap(), "{message}").unwrap();
    let answer = agent.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["total"], 1, "{answer}");

    // A person signs in, and opens the run.
    let page = format!("/p/{project}/runs/{run}");
    let (head, _) = proxy.answer(&[], &page);
    assert!(head.starts_with("HTTP/1.1 303"), "{head}");
    let origin = format!("Origin: {}", proxy.base());
    let form = format!("key={read}");
    let (head, body) = proxy.answer(&["--header", &origin, "--data", &form], "/login");
    assert!(head.starts_with("HTTP/1.1 303"), "{head} {body}");
    let cookie = head
        .lines()
        .find_map(|line| {
            line.strip_prefix("Set-Cookie: ")
                .or(line.strip_prefix("set-cookie: "))
        })
        .unwrap();
    assert!(
        cookie.starts_with("__Host-assay=") && cookie.ends_with("; Secure"),
        "{cookie}"
    );
    assert!(
        head.to_lowercase().contains("strict-transport-security: "),
        "{head}"
    );
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let (head, body) = proxy.answer(&["--header", &cookie], &page);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // The page shows the one address for the read API.
    assert_contains(&body, &format!("{}/api/v1", proxy.base()));
    assert!(!body.contains("127.0.0.1"), "{body}");
    a_person_reads_the_run_in_chromium(proxy, &read, &page);

    // A report with a key that is refused gets its answer before the whole body is sent.
    let large = folder.path().join("large.xml").display().to_string();
    fs::write(&large, REPORT.repeat(100_000)).unwrap();
    let sent = format!("@{large}");
    let report = ["--header", bearer.as_str(), "--data-binary", sent.as_str()];
    let (head, body) = proxy.answer(&report, "/ingest/v1/reports");
    assert!(
        head.contains(" 401 ") && body.contains("wrong_key_type"),
        "{head} {body}"
    );

    // A report above nginx's usual limit of 1 MiB is stored.
    let output = "a line of output\n".repeat(200_000);
    let report = REPORT.replace(
        "</testsuite>",
        &format!("<system-out>{output}</system-out></testsuite>"),
    );
    assert!(report.len() > 3 << 20);
    fs::write(&large, report).unwrap();
    let owner = format!("Authorization: Bearer {ingest}");
    let report = ["--header", owner.as_str(), "--data-binary", sent.as_str()];
    let (head, body) = proxy.answer(&report, "/ingest/v1/reports?branch=main&runKey=large");
    assert!(head.starts_with("HTTP/1.1 201"), "{head} {body}");

    // The answer to an upload links to the page.
    let bearer = format!("Authorization: Bearer {ingest}");
    let report = ["--header", bearer.as_str(), "--data-binary", REPORT];
    let (head, body) = proxy.answer(&report, "/ingest/v1/reports?branch=main&runKey=second");
    assert!(head.starts_with("HTTP/1.1 201"), "{head} {body}");
    let stored: Value = serde_json::from_str(&body).unwrap();
    let link = text(&stored["url"]);
    let (head, _) = proxy.answer(&["--header", &cookie], link.strip_prefix(&proxy.base()).unwrap());
    assert!(head.starts_with("HTTP/1.1 200"), "{link}: {head}");

    // Plain HTTP leads to TLS.
    let plain = Client::new(format!("http://{}", proxy.plain));
    let moved = plain.get_with("/login?next=%2Fp", &[("Host", "localhost")]);
    assert_eq!(moved.status, 301);
    assert_eq!(
        moved.header("location"),
        Some("https://localhost/login?next=%2Fp")
    );
    // Another host gets no answer, so that no link is made of its name.
    let other = Command::new("curl")
        .args([
            "--silent",
            "--header",
            "Host: attacker.example",
            &format!("http://{}/login", proxy.plain),
        ])
        .output()
        .unwrap();
    assert_eq!(
        (other.status.code(), other.stdout.as_slice()),
        (Some(52), &b""[..]),
        "an empty reply"
    );
}

/// Chromium accepts the test's own certificate, as a person would add it.
fn a_person_reads_the_run_in_chromium(proxy: &Proxy, read_key: &str, page: &str) {
    let browser = Browser::start(Scripts::On);
    let page = format!("{}{page}", proxy.base());
    let login = format!("{}/login", proxy.base());
    browser.open(&page);
    assert!(
        browser.address().starts_with(&format!("{login}?next=")),
        "{}",
        browser.address()
    );
    browser.write("input[name=key]", read_key);
    browser.follow("button.main");
    assert_eq!(browser.address(), page);
    assert!(
        browser.text("main").contains("1 passed at the first attempt"),
        "{}",
        browser.text("main")
    );
    let cookies = browser.cookies();
    let [cookie] = cookies.as_slice() else {
        panic!("{cookies:?}")
    };
    let of = ["name", "secure", "httpOnly", "sameSite", "path", "domain"].map(|key| cookie[key].clone());
    assert_eq!(
        json!(of),
        json!(["__Host-assay", true, true, "Strict", "/", "localhost"])
    );
    assert_eq!(browser.run("return document.cookie"), "");

    browser.follow("form[action='/logout'] button");
    assert_eq!(browser.address(), login);
    assert_eq!(browser.cookies(), Vec::<Value>::new());
    browser.open(&page);
    assert!(
        browser.address().starts_with(&format!("{login}?next=")),
        "{}",
        browser.address()
    );
    assert_eq!(browser.console(), Vec::<String>::new());
    // A copy of the cookie opens nothing either.
    let copy = format!("Cookie: __Host-assay={}", text(&cookie["value"]));
    let (head, _) = proxy.answer(&["--header", &copy], page.strip_prefix(&proxy.base()).unwrap());
    assert!(head.starts_with("HTTP/1.1 303"), "{head}");
}

/// The official client of the protocol, over TLS through the proxy.
#[test]
#[ignore = "needs npm's packages: ASSAY_AGENTS names a copy of examples/agents after npm install (examples/check)"]
fn an_agent_with_the_official_client_calls_tools_through_the_proxy() {
    let folder = std::env::var("ASSAY_AGENTS")
        .expect("ASSAY_AGENTS names a copy of examples/agents after npm install");
    let deployment = Deployment::new();
    let proxy = &deployment.proxy;
    let (_, read, ingest) = deployment.project("storefront");
    let owner = format!("Authorization: Bearer {ingest}");
    let failed = REPORT.replace(
        "/></testsuite>",
        "><failure message=\"boom\"/></testcase></testsuite>",
    );
    let report = ["--header", owner.as_str(), "--data-binary", failed.as_str()];
    let (head, body) = proxy.answer(&report, "/ingest/v1/reports?branch=feat&runKey=first");
    assert!(head.starts_with("HTTP/1.1 201"), "{head} {body}");

    let called = Command::new("node")
        .arg("current.mjs")
        .current_dir(folder)
        .env("MCP_URL", format!("{}/mcp", proxy.base()))
        .env("ASSAY_KEY", read)
        .env("ASSAY", program("assay"))
        .env("NODE_EXTRA_CA_CERTS", proxy.certificate())
        .env("SSL_CERT_FILE", proxy.certificate())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&called.stdout);
    assert!(called.status.success(), "{called:?}");
    // Over HTTP, and over standard input and output.
    assert_eq!(printed.matches("cart > pays").count(), 2, "{printed}");
}

#[test]
fn doctor_is_green_under_each_login_and_red_for_what_was_forgotten() {
    let deployment = Deployment::new();
    let Deployment {
        proxy,
        administration,
        logins,
        ..
    } = &deployment;
    administration.json(&["org", "create", "Shop", "--plan", "pro"]);
    administration.json(&["project", "create", "--org", "Shop", "web"]);
    administration.json(&["key", "create", "--org", "Shop", "--days", "90"]);
    let doctor = |login: &str, url: &str, flags: &[&str]| -> (Option<i32>, Value) {
        let mut command = Cli::new(login.to_owned()).command(&[&["doctor", "--json"], flags].concat());
        let output = command
            .env("ASSAY_PUBLIC_URL", url)
            .env("SSL_CERT_FILE", proxy.certificate())
            .output()
            .unwrap();
        (
            output.status.code(),
            serde_json::from_slice(&output.stdout).unwrap(),
        )
    };
    let check = |report: &Value, name: &str| -> Value {
        let mut checks = report["checks"].as_array().unwrap().iter();
        checks.find(|check| check["check"] == name).unwrap().clone()
    };
    let [logins_of_programs @ .., _] = logins.logins.urls();
    for login in &logins_of_programs {
        let (status, report) = doctor(login, &proxy.base(), &["--strict"]);
        assert_eq!((status, &report["status"]), (Some(0), &json!("ok")), "{report}");
    }

    let [owner, ..] = &logins_of_programs;
    let forgotten = |url: &str, flags: &[&str], name: &str, advice: &str| {
        let (exit, report) = doctor(owner, url, &[&["--strict"], flags].concat());
        let found = check(&report, name);
        assert_eq!(exit, Some(1), "{report}");
        assert!(found["advice"].to_string().contains(advice), "{found}");
        text(&found["status"])
    };
    let address = |url: &str, flags: &[&str], advice: &str| forgotten(url, flags, "address", advice);
    assert_eq!(address("", &[], "set ASSAY_PUBLIC_URL=https://HOST"), "warn");
    let more = ["--ingest-body-mib", "65"];
    assert_eq!(address(&proxy.base(), &more, "client_max_body_size 65m;"), "fail");
    // Addresses with one part alone.
    let [api, pages] = deployment
        .parts
        .clone()
        .map(|address| format!("http://{address}"));
    assert_eq!(address(&api, &[], "ASSAY_FRONT_LISTEN"), "fail");
    assert_eq!(address(&pages, &[], "ASSAY_LISTEN"), "fail");
    assert_eq!(address(&pages, &[], "ASSAY_INGEST_LISTEN"), "fail");
    let nothing = "http://127.0.0.1:1";
    assert_eq!(address(nothing, &[], "start the server and its proxy"), "fail");

    // A timer would have deleted this result long ago.
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old.xml").display().to_string();
    fs::write(&old, REPORT).unwrap();
    let day = ["--no-ci", "--started-at", "2020-01-01T00:00:00Z"];
    administration.json(&[&["import", "--project", "web"], &day[..], &[&old]].concat());
    let advice = "assay-admin prune (daily, from cron or a systemd timer)";
    assert_eq!(forgotten(&proxy.base(), &[], "retention", advice), "warn");
    administration.json(&["prune", "--all-of-it"]);
    let (status, report) = doctor(owner, &proxy.base(), &["--strict"]);
    assert_eq!((status, &report["status"]), (Some(0), &json!("ok")), "{report}");

    let [.., backup, _] = &logins.logins.names;
    logins
        .database
        .execute(&format!("REVOKE SELECT ON run FROM {backup}"));
    let advice = "SELECT ON ALL TABLES";
    assert_eq!(forgotten(&proxy.base(), &[], "backup", advice), "warn");
    // A warning alone does not fail.
    let (status, report) = doctor(owner, &proxy.base(), &[]);
    assert_eq!((status, &report["status"]), (Some(0), &json!("warn")), "{report}");
}
