//! Many jobs of one commit.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use assay_cli_remote::codehost::{CodeHost, Comment, Counts, Outcome, PostError, post, write_until_current};
use assay_domain::run::CiProvider;
use rand::seq::SliceRandom as _;

use crate::receiver::{Receiver, TOKEN};

pub(crate) const MARKER: &str = "<!-- assay project=1 ";

/// A comment of the project.
pub(crate) fn comment(state: i64, text: &str) -> Comment {
    Comment {
        enabled: true,
        revision: Some("de1049640a1b2c3d4e5f60718293a4b5c6d7e8f9".to_owned()),
        state,
        clean: false,
        action: "rerun".to_owned(),
        counts: Counts {
            total: 3,
            failed: 1,
            skipped: 0,
            recovered: 0,
        },
        headline: "1 test failed".to_owned(),
        url: Some("https://assay.example.org/p/1/pull/7".to_owned()),
        marker: MARKER.to_owned(),
        markdown: format!("{MARKER}revision=abc state={state} action=rerun -->\n{text}"),
        annotations: Vec::new(),
    }
}

pub(crate) fn github(receiver: &Receiver, token: &'static str) -> CodeHost {
    let api = receiver.api.clone();
    let variable = move |name: &str| match name {
        "GITHUB_TOKEN" => Some(token.to_owned()),
        "GITHUB_REPOSITORY" => Some("shop/web".to_owned()),
        "GITHUB_API_URL" => Some(api.clone()),
        _ => None,
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    let host = CodeHost::of_job(Some(CiProvider::GithubActions), &variable, 7, deadline);
    host.unwrap().unwrap()
}

/// A server that composes the text of all uploads so far.
#[derive(Default)]
struct Server {
    uploads: Mutex<Vec<usize>>,
    clock: AtomicI64,
}

impl Server {
    fn upload(&self, job: usize) {
        let mut uploads = self.uploads.lock().unwrap();
        if !uploads.contains(&job) {
            uploads.push(job);
            uploads.sort_unstable();
        }
    }

    /// The state is taken before the content is read, so that a larger state never has older content.
    fn compose(&self) -> Comment {
        let state = self.clock.fetch_add(1, Ordering::SeqCst);
        let uploads = self.uploads.lock().unwrap().clone();
        comment(state, &format!("uploads {uploads:?}"))
    }
}

fn posted(receiver: &Receiver, server: &Server, comment: Comment) -> Outcome {
    let host = github(receiver, TOKEN);
    write_until_current(comment, |comment| post(&host, comment), || Ok(server.compose())).unwrap()
}

#[test]
fn forty_jobs_one_after_another_keep_one_comment_with_two_requests_each() {
    let (receiver, server) = (Receiver::start(), Server::default());
    receiver.add("User", "Looks good");
    let mut jobs: Vec<usize> = (0..40).chain(0..10).collect();
    jobs.shuffle(&mut rand::rng());
    for (place, job) in jobs.into_iter().enumerate() {
        let before = receiver.requests().len();
        server.upload(job);
        let outcome = posted(&receiver, &server, server.compose());
        let requests = receiver.requests().len() - before;
        match outcome {
            // The job that writes the comment looks again, because another may have written one.
            Outcome::Created => assert_eq!((place, requests), (0, 3)),
            Outcome::Edited => assert_eq!(requests, 2),
            Outcome::Unchanged => assert_eq!(requests, 1),
            Outcome::Newer | Outcome::Silent => panic!("{outcome:?}"),
        }
    }
    let all: Vec<usize> = (0..40).collect();
    let bodies = receiver.bodies();
    assert_eq!(bodies.len(), 2, "{bodies:?}");
    assert!(bodies[1].ends_with(&format!("uploads {all:?}")), "{}", bodies[1]);
}

#[test]
fn forty_jobs_at_the_same_time_leave_one_comment_with_the_newest_text() {
    for _ in 0..5 {
        let (receiver, server) = (Receiver::start(), Arc::new(Server::default()));
        let mut jobs: Vec<usize> = (0..40).chain(0..10).collect();
        jobs.shuffle(&mut rand::rng());
        let threads: Vec<_> = jobs
            .into_iter()
            .enumerate()
            .map(|(place, job)| {
                let (receiver, server) = (receiver.clone(), Arc::clone(&server));
                thread::spawn(move || {
                    server.upload(job);
                    let composed = server.compose();
                    // Some jobs are killed before they post.
                    if place % 7 != 3 {
                        posted(&receiver, &server, composed);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        // A killed job may have been the last one to upload; a later job shows its results.
        posted(&receiver, &server, server.compose());
        let bodies = receiver.bodies();
        assert_eq!(bodies.len(), 1, "{bodies:?}");
        let all: Vec<usize> = (0..40).collect();
        assert!(bodies[0].ends_with(&format!("uploads {all:?}")), "{}", bodies[0]);
    }
}

#[test]
fn a_slow_job_does_not_replace_a_newer_text() {
    let receiver = Receiver::start();
    let host = github(&receiver, TOKEN);
    assert_eq!(post(&host, &comment(7, "new")).unwrap(), Outcome::Created);
    assert_eq!(post(&host, &comment(5, "old")).unwrap(), Outcome::Newer);
    assert_eq!(post(&host, &comment(8, "new")).unwrap(), Outcome::Unchanged);
    assert_eq!(post(&host, &comment(9, "newest")).unwrap(), Outcome::Edited);
    assert_eq!(receiver.bodies(), [comment(9, "newest").markdown]);
}

#[test]
fn a_slow_job_that_wrote_over_a_newer_text_writes_the_newest() {
    let receiver = Receiver::start();
    let host = github(&receiver, TOKEN);
    post(&host, &comment(5, "first")).unwrap();
    // Between the search and the write of this job, another one may post; the job asks again after it wrote.
    let write = |comment: &Comment| post(&host, comment);
    let outcome = write_until_current(comment(6, "second"), write, || {
        Ok::<_, PostError>(comment(7, "third"))
    });
    assert_eq!(outcome.unwrap(), Outcome::Edited);
    assert_eq!(receiver.bodies(), [comment(7, "third").markdown]);
}

/// A comment whose change probably broke a test.
fn blocking(state: i64, text: &str) -> Comment {
    Comment {
        action: "block".to_owned(),
        markdown: format!("{MARKER}revision=abc state={state} action=block -->\n{text}"),
        ..comment(state, text)
    }
}

#[test]
fn a_comment_is_written_anew_only_when_a_breakage_becomes_probable() {
    let receiver = Receiver::start();
    let host = github(&receiver, TOKEN);
    let ids = || {
        receiver
            .state
            .lock()
            .unwrap()
            .comments
            .keys()
            .copied()
            .collect::<Vec<_>>()
    };
    assert_eq!(post(&host, &comment(1, "unclear")).unwrap(), Outcome::Created);
    assert_eq!(
        post(&host, &comment(2, "still unclear")).unwrap(),
        Outcome::Edited
    );
    let before = ids();
    assert_eq!(post(&host, &blocking(3, "broken")).unwrap(), Outcome::Created);
    let after = ids();
    let changes = receiver.requests().into_iter().map(|(method, _)| method);
    let changes: Vec<String> = changes.filter(|method| method != "GET").collect();
    // The answer is never missing: the earlier comment is deleted when the other one exists.
    assert_eq!(changes, ["POST", "PATCH", "POST", "DELETE"]);
    assert_eq!(after.len(), 1);
    assert_ne!(before, after);
    assert_eq!(post(&host, &blocking(4, "two broken")).unwrap(), Outcome::Edited);
    assert_eq!(
        post(&host, &comment(5, "unclear again")).unwrap(),
        Outcome::Edited
    );
    // A late job of an earlier state is no edge.
    assert_eq!(post(&host, &blocking(4, "two broken")).unwrap(), Outcome::Newer);
    assert_eq!(ids(), after);
    assert_eq!(receiver.bodies(), [comment(5, "unclear again").markdown]);
}

#[test]
fn jobs_that_find_a_breakage_at_the_same_time_leave_one_comment() {
    let receiver = Receiver::start();
    post(&github(&receiver, TOKEN), &comment(1, "unclear")).unwrap();
    let jobs: Vec<_> = (2..12)
        .map(|state| {
            let receiver = receiver.clone();
            thread::spawn(move || {
                let host = github(&receiver, TOKEN);
                let write = |comment: &Comment| post(&host, comment);
                write_until_current(blocking(state, "broken"), write, || Ok(blocking(20, "broken"))).unwrap()
            })
        })
        .collect();
    for job in jobs {
        job.join().unwrap();
    }
    let bodies = receiver.bodies();
    assert!(
        matches!(&bodies[..], [body] if body.ends_with("\nbroken")),
        "{bodies:?}"
    );
}

#[test]
fn a_clean_commit_writes_no_comment_and_turns_one_green() {
    let receiver = Receiver::start();
    let host = github(&receiver, TOKEN);
    let clean = |state| Comment {
        clean: true,
        ..comment(state, "green")
    };
    assert_eq!(post(&host, &clean(1)).unwrap(), Outcome::Silent);
    assert_eq!(receiver.bodies(), [""; 0]);
    post(&host, &comment(2, "red")).unwrap();
    assert_eq!(post(&host, &clean(3)).unwrap(), Outcome::Edited);
    assert_eq!(receiver.bodies(), [clean(3).markdown]);
}
