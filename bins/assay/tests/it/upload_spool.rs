//! `assay upload --spool`: unsent reports are kept and sent with the next upload.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Output};

use assay_testkit::{assert_contains, stderr_text};
use serde_json::Value;

use crate::{
    receiver::{Receiver, error, stored},
    upload::{Job, KEY, output_text},
};

/// The number of files of a folder with this extension.
fn spooled(job: &Job, folder: &str, end: &str) -> usize {
    fs::read_dir(job.folder.path().join(folder)).map_or(0, |entries| {
        entries
            .filter(|entry| {
                entry
                    .as_ref()
                    .unwrap()
                    .path()
                    .extension()
                    .is_some_and(|e| e == end)
            })
            .count()
    })
}

/// Sends a report with this run key, in one attempt and with a spool.
fn upload_once(job: &Job, run_key: &str) -> Output {
    job.run(&[
        "upload",
        "--retry-for",
        "0",
        "--spool",
        "kept",
        "--run-key",
        run_key,
        "out",
    ])
}

#[test]
fn unsent_reports_wait_in_the_spool_and_go_first() {
    let job = Job::new("http://127.0.0.1:1");
    for number in ["1", "2"] {
        let output = upload_once(&job, number);
        assert_eq!(output.status.code(), Some(1));
        assert_contains(
            &stderr_text(&output),
            "the next `assay upload --spool kept` sends it",
        );
    }
    assert_eq!(spooled(&job, "kept", "upload"), 2);
    let mode = fs::read_dir(job.folder.path().join("kept"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0, "others can read it");

    let receiver = Receiver::start(vec![stored()]);
    let back = Job {
        folder: job.folder,
        url: receiver.url.clone(),
    };
    let output = back.run(&["upload", "--spool", "kept", "--run-key", "3", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    let keys: Vec<_> = receiver
        .requests()
        .iter()
        .map(|request| request.field("runKey").unwrap())
        .collect();
    assert_eq!(keys, ["1", "2", "3"]);
    assert_eq!(spooled(&back, "kept", "upload"), 0);
    // An empty spool is no error.
    let output = back.run(&["upload", "--spool", "kept"]);
    assert_eq!(output_text(&output), "Sent 0 uploads of kept\n");
}

#[test]
fn a_spool_that_cannot_be_created_is_an_error_and_no_report_is_sent() {
    let receiver = Receiver::start(vec![stored()]);
    let job = Job::new(&receiver.url);
    job.write("file", "");
    let output = job.run(&["upload", "--spool", "file/kept", "out"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "assay: nothing was stored: --spool file/kept: ";
    assert_contains(&stderr_text(&output), expected);
    assert_eq!(receiver.requests().len(), 0);
}

#[test]
fn a_refused_upload_is_not_kept_and_does_not_block_the_spool() {
    let gone = Job::new("http://127.0.0.1:1");
    gone.run(&["upload", "--retry-for", "0", "--spool", "kept", "out"]);
    let receiver = Receiver::start(vec![error(422, "nothing_to_store"), stored()]);
    let job = Job {
        folder: gone.folder,
        url: receiver.url.clone(),
    };
    let output = job.run(&["upload", "--spool", "kept", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    assert_contains(&stderr_text(&output), "an earlier upload was refused");
    assert_eq!(
        (spooled(&job, "kept", "upload"), spooled(&job, "kept", "refused")),
        (0, 1)
    );

    for (answer, kept) in [(error(422, "broken_report"), 0), (error(401, "key_expired"), 1)] {
        let receiver = Receiver::start(vec![answer]);
        let job = Job::new(&receiver.url);
        let output = job.run(&["upload", "--spool", "kept", "out"]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(spooled(&job, "kept", "upload"), kept);
    }
}

/// The job of a folder whose spool has an upload for each of these run keys.
fn with_spooled(run_keys: &[&str], url: &str) -> Job {
    let gone = Job::new("http://127.0.0.1:1");
    for run_key in run_keys {
        let output = upload_once(&gone, run_key);
        assert_eq!(output.status.code(), Some(1), "{}", stderr_text(&output));
    }
    Job {
        folder: gone.folder,
        url: url.to_owned(),
    }
}

/// The run keys of the requests.
fn sent(receiver: &Receiver) -> Vec<String> {
    let requests = receiver.requests();
    requests
        .iter()
        .map(|request| request.field("runKey").unwrap())
        .collect()
}

/// Runs `assay upload` with another key than the job's.
fn with_another_key(job: &Job, arguments: &[&str]) -> Output {
    let mut command = job.command(arguments);
    command.env("ASSAY_INGEST_KEY", "svc_of_another_project");
    command.output().unwrap()
}

/// Asserts the exit status, and that standard error has this part.
fn assert_ended(output: &Output, code: i32, part: &str) {
    let text = stderr_text(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.contains(part), "{part}: {text}");
}

#[test]
fn a_report_that_the_key_may_not_store_is_not_kept_and_does_not_block_the_spool() {
    for code in ["branch_not_allowed", "wrong_project"] {
        let receiver = Receiver::start(vec![error(403, code), stored()]);
        let job = with_spooled(&["1", "2"], &receiver.url);
        let output = job.run(&["upload", "--spool", "kept", "--run-key", "3", "out"]);
        assert_ended(&output, 0, "an earlier upload was refused");
        assert_eq!(sent(&receiver), ["1", "2", "3"]);
        assert_eq!(
            (spooled(&job, "kept", "upload"), spooled(&job, "kept", "refused")),
            (0, 1)
        );
        let receiver = Receiver::start(vec![error(403, code)]);
        let job = Job::new(&receiver.url);
        let output = job.run(&["upload", "--spool", "kept", "out"]);
        assert_ended(&output, 1, "assay: nothing was stored: made to answer");
        assert_eq!(spooled(&job, "kept", "upload"), 0);
    }
}

#[test]
fn an_upload_that_cannot_be_stored_now_does_not_hold_back_the_others() {
    // The first upload alone fails. It stays, and is not retried.
    let receiver = Receiver::start(vec![error(500, "internal_error"), stored()]);
    let job = with_spooled(&["1", "2"], &receiver.url);
    let output = job.run(&["upload", "--spool", "kept", "--run-key", "3", "out"]);
    assert_ended(&output, 0, ".upload is not sent, and stays: made to answer");
    assert_eq!(sent(&receiver), ["1", "2", "3"]);
    assert_eq!(spooled(&job, "kept", "upload"), 1);

    // An overloaded server gets no other upload of the spool, but the report of this job.
    let receiver = Receiver::start(vec![error(503, "busy"), stored()]);
    let job = with_spooled(&["1", "2"], &receiver.url);
    let output = upload_once(&job, "3");
    assert_ended(&output, 0, ".upload is not sent, and stays: made to answer");
    assert_eq!(sent(&receiver), ["1", "3"]);
    assert_eq!(spooled(&job, "kept", "upload"), 2);

    // The command that only sends the spool fails.
    let receiver = Receiver::start(vec![error(500, "internal_error"), stored()]);
    let job = Job {
        folder: job.folder,
        url: receiver.url.clone(),
    };
    let output = job.run(&["upload", "--spool", "kept"]);
    assert_ended(
        &output,
        1,
        "assay: sent 1 upload of kept, and others wait: made to answer",
    );
}

#[test]
fn an_upload_is_sent_with_its_own_key_unless_any_key_is_allowed() {
    let receiver = Receiver::start(vec![stored()]);
    let job = with_spooled(&["1"], &receiver.url);
    let entry = fs::read_dir(job.folder.path().join("kept"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let content = fs::read(&entry).unwrap();
    assert!(!content.windows(12).any(|part| part == &KEY.as_bytes()[..12]));

    let output = with_another_key(&job, &["upload", "--spool", "kept", "--run-key", "2", "out"]);
    assert_ended(
        &output,
        0,
        "assay: 1 upload waits in kept for another key; to send with the key of this job, if it is of the same project: \
         `assay upload --spool kept --any-key`",
    );
    assert_eq!(sent(&receiver), ["2"]);
    assert_eq!(
        output_text(&job.run(&["upload", "--spool", "kept"])),
        "Sent 1 upload of kept\n"
    );
    assert_eq!(sent(&receiver), ["2", "1"]);

    // An older version wrote no key.
    let end = content.iter().position(|byte| *byte == b'\n').unwrap();
    let mut head: Value = serde_json::from_slice(&content[..end]).unwrap();
    head.as_object_mut().unwrap().remove("key").unwrap();
    let older = [head.to_string().as_bytes(), &content[end..]].concat();
    for content in [content, older] {
        fs::write(&entry, content).unwrap();
        let refused = Receiver::start(vec![error(403, "branch_not_allowed"), stored()]);
        let job = Job {
            folder: tempfile::tempdir().unwrap(),
            url: refused.url.clone(),
        };
        let spool = entry.parent().unwrap().to_str().unwrap();
        let send = ["upload", "--spool", spool, "--any-key"];
        let output = with_another_key(&job, &send[..3]);
        assert_ended(&output, 0, "1 upload waits in ");
        assert_eq!(sent(&refused).len(), 0);
        // A refusal of another key is not permanent.
        assert_ended(
            &with_another_key(&job, &send),
            1,
            ".upload is not sent, and stays: ",
        );
        assert_ended(&with_another_key(&job, &send), 0, "assay: sent ");
        assert_eq!(sent(&refused), ["1", "1"]);
        assert!(!entry.exists());
    }
}

#[test]
fn the_report_of_an_expired_key_waits_for_a_valid_one() {
    let receiver = Receiver::start(vec![
        error(401, "key_expired"),
        error(401, "key_expired"),
        error(401, "key_expired"),
        stored(),
    ]);
    let job = Job::new(&receiver.url);
    for run_key in ["1", "2"] {
        let output = job.run(&["upload", "--spool", "kept", "--run-key", run_key, "out"]);
        assert_ended(
            &output,
            1,
            "assay: nothing was stored; with a valid key, `assay upload --spool kept --any-key` sends it: ",
        );
    }
    assert_eq!(spooled(&job, "kept", "upload"), 2);
    let output = with_another_key(&job, &["upload", "--spool", "kept", "--any-key"]);
    assert_ended(&output, 0, "assay: sent ");
    assert_eq!(sent(&receiver), ["1", "1", "2", "1", "2"]);
    assert_eq!(spooled(&job, "kept", "upload"), 0);
}

#[test]
fn a_file_of_the_spool_that_cannot_be_read_is_skipped() {
    let receiver = Receiver::start(vec![stored()]);
    let job = with_spooled(&["1"], &receiver.url);
    job.write("kept/0-foreign.upload", "no upload\n");
    job.write("kept/0-folder.upload/file", "");
    job.write("kept/0-of-another-user.upload", "{\"boundary\": \"b\"}\n");
    let secret = job.folder.path().join("kept/0-of-another-user.upload");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let output = job.run(&["upload", "--spool", "kept", "--run-key", "2", "out"]);
    for name in ["0-foreign.upload", "0-folder.upload"] {
        assert_ended(
            &output,
            0,
            &format!("assay: warning: an upload of the spool cannot be read, and stays: kept/{name}: "),
        );
    }
    // Root can read every file: then it is an upload of another key.
    assert_ended(
        &output,
        0,
        match fs::read(&secret).is_ok() {
            true => "1 upload waits in kept for another key",
            false => "stays: kept/0-of-another-user.upload: ",
        },
    );
    assert_eq!(sent(&receiver), ["1", "2"]);
    assert_eq!(spooled(&job, "kept", "upload"), 3);
}
