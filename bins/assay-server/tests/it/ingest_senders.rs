//! Every way of sending stores the same result: `assay-admin import`, `assay upload`, and both forms of curl.

use std::{fs, path::Path, process::Command};

use assay_domain::ingest::IngestTerms;
use assay_testkit::text;
use serde_json::Value;

use crate::{
    everything,
    ingest::{IngestServer, key_for, now},
};

/// A way to store a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    Import,
    Upload,
    CurlForm,
    CurlRaw,
}

/// A project for one way of sending, with its key.
struct Receiver {
    sender: Sender,
    project: String,
    key: String,
}

impl Receiver {
    /// Stores the report `name` of `folder`. Returns whether it was stored, and the answer.
    fn store(
        &self,
        ingest: &IngestServer,
        folder: &Path,
        name: &str,
        run_key: &str,
        start: &str,
    ) -> (bool, Value) {
        let flags = [
            "--run-key",
            run_key,
            "--branch",
            "main",
            "--started-at",
            start,
            "--json",
            name,
        ];
        let base = ingest.server.ingest().base();
        let url = format!("{base}/ingest/v1/reports");
        let mut command = match self.sender {
            Sender::Import => {
                let project = ["import", "--project", self.project.as_str()];
                ingest.cli.command(&[&project[..], &flags].concat())
            }
            Sender::Upload => {
                let mut command = ingest.cli.command(&[&["upload"][..], &flags].concat());
                command
                    .env_remove("ASSAY_DATABASE_URL")
                    .env("ASSAY_INGEST_URL", base)
                    .env("ASSAY_INGEST_KEY", &self.key);
                command
            }
            Sender::CurlForm | Sender::CurlRaw => {
                let mut command = Command::new("curl");
                let authorization = format!("Authorization: Bearer {}", self.key);
                command.args(["--silent", "--fail-with-body", "-H", &authorization]);
                command
            }
        };
        match self.sender {
            Sender::Import | Sender::Upload => {}
            Sender::CurlForm => {
                for field in [
                    format!("runKey={run_key}"),
                    "branch=main".to_owned(),
                    format!("startedAt={start}"),
                    format!("report=@{name}"),
                ] {
                    command.args(["-F", &field]);
                }
                command.arg(url);
            }
            Sender::CurlRaw => {
                let file = format!("@{name}");
                command.args([
                    "-H",
                    "Content-Type: application/octet-stream",
                    "--data-binary",
                    &file,
                ]);
                command.arg(format!("{url}?runKey={run_key}&branch=main&startedAt={start}"));
            }
        }
        let output = command.current_dir(folder).output().unwrap();
        let answer = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.success(), answer)
    }
}

/// `ASSAY_ALL_REPORTS=1` selects every file of the suites and their reports instead of one in eleven,
/// `ASSAY_ALL_REPORTS=FOLDER` those of a folder.
#[test]
fn reports_are_read_equally_from_every_sender() {
    let ingest = IngestServer::new();
    let start = now().plus_days(-1).to_string();
    let all = std::env::var_os("ASSAY_ALL_REPORTS");
    let step = if all.is_some() { 1 } else { 11 };
    let root = match all.map(std::path::PathBuf::from) {
        Some(folder) if folder.is_dir() => folder,
        Some(_) | None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/reports"),
    };
    let files: Vec<_> = files_below(&root).into_iter().step_by(step).collect();
    let (mut stored, mut refused) = (0, 0);
    // A page of the runs list has at most fifty runs.
    for (batch, files) in files.chunks(40).enumerate() {
        let senders = [Sender::Import, Sender::Upload, Sender::CurlForm, Sender::CurlRaw];
        let receivers = senders.map(|sender| {
            let name = format!("{sender:?} {batch}");
            let project = text(&ingest.cli.json(&["project", "create", "--org", "Shop", &name])["id"]);
            let key = key_for(
                &ingest.database,
                project.parse().unwrap(),
                &IngestTerms::default(),
            );
            Receiver { sender, project, key }
        });
        for (number, path) in files.iter().enumerate() {
            // The working folder is outside of the checkout, because only the command line reads files of a checkout.
            let folder = tempfile::tempdir().unwrap();
            // A body that is no form has no name, and errors of a report have the name of its file.
            let name = "report";
            fs::copy(path, folder.path().join(name)).unwrap();
            let run_key = format!("run-{number}");
            let [import, others @ ..] = &receivers;
            let store = |receiver: &Receiver| receiver.store(&ingest, folder.path(), name, &run_key, &start);
            let store = &store;
            let sent = std::thread::scope(|scope| {
                let threads = others
                    .each_ref()
                    .map(|receiver| scope.spawn(move || store(receiver)));
                threads.map(|thread| thread.join().unwrap())
            });
            let (is_stored, answer) = &sent[1];
            // A report without tests is imported as an empty run, but refused over HTTP.
            let is_imported = answer["code"] != "nothing_to_store" && store(import).0;
            assert!(
                sent.iter().all(|sent| sent.0 == is_imported),
                "{}: imported: {is_imported}, sent: {sent:?}",
                path.display()
            );
            match is_stored {
                true => stored += 1,
                false => refused += 1,
            }
        }
        let [imported, others @ ..] = receivers.each_ref().map(|receiver| {
            let all = everything::of(ingest.server.client(), &ingest.read_key, &receiver.project);
            // The settings contain the project's name.
            let name = format!("{:?} {batch}", receiver.sender);
            let all: Vec<_> = all
                .into_iter()
                // An import is no upload.
                .filter(|(path, _)| !path.contains("/uploads"))
                .map(|(path, body)| (path, without_judging_times(&body.replace(&name, "the project"))))
                .collect();
            without_ids(&all, &receiver.project)
        });
        for (sender, answers) in senders[1..].iter().zip(others) {
            assert_eq!(answers.len(), imported.len(), "{sender:?}");
            for (theirs, ours) in answers.iter().zip(&imported) {
                assert_eq!(theirs, ours, "{sender:?}");
            }
        }
    }
    assert!(stored > 10 && refused > 0, "{stored} stored, {refused} refused");
}

/// A body without times of judgements and of creation.
fn without_judging_times(body: &str) -> String {
    let mut body = body.to_owned();
    for (begin, end) in [
        ("\"evaluatedAt\":\"", '"'),
        ("\"createdAt\":\"", '"'),
        (", judged ", ' '),
    ] {
        let mut from = 0;
        while let Some(at) = body[from..].find(begin) {
            let at = from + at + begin.len();
            let length = body[at..].find(end).unwrap();
            body.replace_range(at..at + length, "");
            from = at;
        }
    }
    body
}

/// Every file below a folder, in a fixed order.
fn files_below(root: &Path) -> Vec<std::path::PathBuf> {
    let mut folders = vec![root.to_path_buf()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    files
}

/// The answers with each id replaced by its order of appearance.
fn without_ids(all: &[(String, String)], project: &str) -> Vec<(String, String)> {
    let mut known: Vec<String> = vec![project.to_owned()];
    let mut replace = |text: &str| {
        let mut rest = text;
        let mut out = String::new();
        while let Some(at) = rest.find(|c: char| c.is_ascii_hexdigit()) {
            let (before, after) = rest.split_at(at);
            out.push_str(before);
            let end = after
                .find(|c: char| !c.is_ascii_hexdigit() && c != '-')
                .unwrap_or(after.len());
            let (word, after) = after.split_at(end);
            match word.len() == 36 && word.matches('-').count() == 4 {
                true => {
                    let place = known.iter().position(|id| id == word).unwrap_or_else(|| {
                        known.push(word.to_owned());
                        known.len() - 1
                    });
                    out.push_str(&format!("#{place}"));
                }
                false => out.push_str(word),
            }
            rest = after;
        }
        out + rest
    };
    // The list of projects contains the projects of all senders.
    all.iter()
        .filter(|(path, _)| path != "/projects")
        .map(|(path, body)| (replace(path), replace(body)))
        .collect()
}
