//! `assay upload --spool`: unsent reports are kept and sent with the next upload.

use std::{fs, os::unix::fs::PermissionsExt as _};

use assay_testkit::stderr_text;

use crate::{
    receiver::{Receiver, error, stored},
    upload::{Job, output_text},
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

#[test]
fn unsent_reports_wait_in_the_spool_and_go_first() {
    let job = Job::new("http://127.0.0.1:1");
    for number in ["1", "2"] {
        let output = job.run(&[
            "upload",
            "--retry-for",
            "0",
            "--spool",
            "kept",
            "--run-key",
            number,
            "out",
        ]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr_text(&output).contains("the next `assay upload --spool kept` sends it"),
            "{}",
            stderr_text(&output)
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
    // The command does not wait.
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
    assert!(
        stderr_text(&output).contains(expected),
        "{}",
        stderr_text(&output)
    );
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
    assert!(
        stderr_text(&output).contains("an earlier upload was refused"),
        "{}",
        stderr_text(&output)
    );
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
