//! `assay verify` by a real server, and the watch of its fixes on the stable branch.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use assay_testkit::{Cli, ServedWorld, junit, stderr_text, text};
use serde_json::Value;

/// A report of the suite, in which `cart > pays` passed or not.
fn report(passed: bool) -> String {
    let cases =
        ["pays", "a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|name| (name, passed || name != "pays"));
    junit(&cases, "cart.py", |_| ("timed out".to_owned(), String::new()))
}

fn sh(folder: &Path, script: &str) {
    let status = Command::new("sh")
        .args(["-euc", script])
        .current_dir(folder)
        .status();
    assert!(status.unwrap().success(), "{script}");
}

/// A project whose test failed in every second of 12 runs of the stable branch, and a checkout with a command.
struct Shop {
    world: ServedWorld,
    ingest_key: String,
}

impl Shop {
    fn new() -> Self {
        let world = ServedWorld::on_one_address(&[]);
        let key = text(&world.cli.json(&["key", "create-ingest", "--project", "web"])["key"]);
        let shop = Self {
            world,
            ingest_key: key,
        };
        for number in 0..12 {
            shop.run(2_000 - number, &format!("{number:07}abc"), number % 2 == 0, &[]);
        }
        shop.world.file("pass.xml", &report(true));
        sh(
            shop.world.folder.path(),
            "git init --quiet . && git config user.name a && git config user.email a@example.org
             echo 1 > code; git add code; git commit --quiet -m first",
        );
        shop
    }

    /// Imports a run of the stable branch.
    fn run(&self, minutes_ago: i64, commit: &str, passed: bool, flags: &[&str]) -> Value {
        let key = format!("{commit}-{minutes_ago}");
        let own = ["--branch", "main", "--commit", commit, "--run-key", &key];
        self.world
            .import_report(minutes_ago, &report(passed), &[&own, flags].concat())
    }

    /// Runs `assay verify` in the checkout with a shell command.
    fn verify(&self, flags: &[&str], script: &str) -> Output {
        let arguments = [
            &["verify", "--test", "cart > pays"],
            flags,
            &["--report", "junit.xml", "--", "sh", "-c", script],
        ];
        let mut command = Cli::new("postgresql://127.0.0.1:1/nowhere").command(&arguments.concat());
        command
            .current_dir(self.world.folder.path())
            .env("ASSAY_URL", format!("http://{}", self.world.server.address()))
            .env("ASSAY_READ_KEY", &self.world.key)
            .env("ASSAY_INGEST_KEY", &self.ingest_key);
        command.output().unwrap()
    }

    fn fix(&self) -> Value {
        self.world.get("/tests/cart%20%3E%20pays/fix")
    }
}

fn ends(output: &Output, status: i32, sentence: &str) {
    let both = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        stderr_text(output)
    );
    assert_eq!(output.status.code(), Some(status), "{both}");
    assert!(both.contains(sentence), "{sentence}: {both}");
}

/// Each run takes another time.
const PASSES: &str = r#"sed "s/time=\"[0-9.]*\"/time=\"0.0$(date +%N)\"/" pass.xml > junit.xml"#;

#[test]
fn a_proof_needs_the_whole_suite_a_green_command_a_clean_checkout_and_the_keys_of_its_project() {
    let mut shop = Shop::new();
    let folder = shop.world.folder.path().to_path_buf();
    assert_eq!(shop.fix()["variants"][0]["tests"], 10);
    let alone = junit(&[("pays", true)], "cart.py", |_| Default::default());
    shop.world.file("alone.xml", &alone);
    ends(
        &shop.verify(&[], "cp alone.xml junit.xml"),
        3,
        "the command ran no other test",
    );
    ends(
        &shop.verify(&[], "cp pass.xml junit.xml; exit 1"),
        3,
        "status 1, which no failed test explains",
    );
    let few = junit(&[("pays", true), ("a", true), ("b", true)], "cart.py", |_| {
        Default::default()
    });
    shop.world.file("few.xml", &few);
    ends(
        &shop.verify(&[], "cp few.xml junit.xml"),
        3,
        "3 of the usual 10 tests",
    );
    let jest = format!("<testsuites name=\"jest tests\">{}</testsuites>", report(true));
    shop.world.file("jest.xml", &jest);
    ends(
        &shop.verify(&[], "cp jest.xml junit.xml"),
        3,
        "writes a pass on retry like any other pass",
    );
    let not_proved = shop.fix()["fixes"].as_array().unwrap().len();
    // What is not committed is in no commit.
    fs::write(folder.join("code"), "2").unwrap();
    ends(
        &shop.verify(&["--flake-rate", "0.9"], PASSES),
        0,
        "the checkout has changes that are in no commit",
    );
    assert_eq!(shop.fix()["fixes"].as_array().unwrap().len(), not_proved);
    sh(&folder, "git commit --quiet -a -m second");
    ends(&shop.verify(&["--flake-rate", "0.9"], PASSES), 0, "proved: ");
    assert_eq!(shop.fix()["fixes"][0]["state"], "waiting");
    // A failure on the same commit outweighs the proof, whichever came first.
    shop.world.file("fail.xml", &report(false));
    ends(
        &shop.verify(&[], "cp fail.xml junit.xml; exit 1"),
        1,
        "with an error of before",
    );
    assert_eq!(shop.fix()["fixes"][1]["state"], "unproved");
    // Another project's key would claim a fix of that project.
    shop.world
        .cli
        .json(&["project", "create", "--org", "Shop", "api"]);
    shop.ingest_key = text(&shop.world.cli.json(&["key", "create-ingest", "--project", "api"])["key"]);
    ends(
        &shop.verify(&["--project", "web"], PASSES),
        2,
        "the ingest key is of project \"api\"",
    );
    let mut alone =
        Cli::new("postgresql://127.0.0.1:1/nowhere").command(&["verify", "--test", "x", "--", "true"]);
    ends(&alone.output().unwrap(), 2, "--flake-rate");
}

#[test]
fn without_its_variant_nothing_runs_for_a_test_that_fails_on_one_only() {
    let shop = Shop::new();
    for number in 0..4 {
        shop.run(
            900 - number,
            &format!("{number:07}abc"),
            true,
            &["--suite", "windows"],
        );
    }
    let output = shop.verify(&["--suite", "other"], "touch ran");
    ends(&output, 3, "the variant of this job is not known");
    assert!(!shop.world.folder.path().join("ran").exists());
}

#[test]
fn a_claim_is_watched_by_the_rate_of_before_and_by_newer_revisions() {
    let shop = Shop::new();
    let needed = shop.fix()["buildsNeeded"].as_i64().unwrap();
    let message = "Wait for the till\n\nAssay-Fixes: cart > pays\nAssay-Fixes: cart > payz";
    let imported = shop.run(900, "f1f1f1f1", true, &["--message", message]);
    assert!(
        imported["warnings"].to_string().contains("cart > payz"),
        "{imported}"
    );
    let goal = shop.fix()["fixes"][0]["runsNeeded"].as_i64().unwrap();
    assert!((goal - needed).abs() <= 1, "{goal}, not {needed}");
    // Clean runs lower the rate, and not the goal. A run of an old revision shows nothing of the fix.
    for number in 0..6 {
        shop.run(800 - number, &format!("a{number:07}"), true, &[]);
    }
    shop.run(700, "0000002abc", false, &[]);
    let fix = &shop.fix()["fixes"][0];
    assert_eq!(
        (&fix["state"], &fix["cleanRuns"]),
        (&"watching".into(), &7.into()),
        "{fix}"
    );
    assert_eq!(fix["runsNeeded"], goal);
}
