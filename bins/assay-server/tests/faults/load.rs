//! Readers that continue to send requests while something breaks.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use assay_testkit::{Client, PATIENCE, Response};

use crate::world::World;

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct LoadAnswer {
    pub(crate) status: u16,
}

/// Running readers.
pub(crate) struct Load {
    stopping: Arc<AtomicBool>,
    answers: Arc<Mutex<Vec<LoadAnswer>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts readers of this world's routes. The test fails if an answer violates the contract or is missing.
    pub(crate) fn start(world: &World, readers: usize) -> Self {
        let stopping = Arc::new(AtomicBool::new(false));
        let answers = Arc::new(Mutex::new(Vec::new()));
        let paths =
            Arc::new(["/runs", "/flaky", "/errors", "/branches", "/settings"].map(|below| world.path(below)));
        let readers = (0..readers)
            .map(|reader| {
                let (client, key) = (world.server.client().clone(), world.key.clone());
                let (stopping, answers, paths) = (stopping.clone(), answers.clone(), paths.clone());
                thread::spawn(move || {
                    for path in paths.iter().cycle().skip(reader) {
                        if stopping.load(Ordering::Relaxed) {
                            return;
                        }
                        let answer = ask(&client, path, &key);
                        answers.lock().unwrap().push(answer);
                    }
                })
            })
            .collect();
        Self {
            stopping,
            answers,
            readers,
        }
    }

    /// Waits for this many more answers of this kind.
    pub(crate) fn until_more(&self, count: usize, like: impl Fn(&LoadAnswer) -> bool) {
        let matching = || {
            self.answers
                .lock()
                .unwrap()
                .iter()
                .filter(|answer| like(answer))
                .count()
        };
        let (began, before) = (Instant::now(), matching());
        while matching() < before + count {
            assert!(began.elapsed() < PATIENCE, "too few such answers: {}", matching());
            assert!(
                !self.readers.iter().any(JoinHandle::is_finished),
                "a reader failed"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends the readers and returns all answers.
    pub(crate) fn stop(self) -> Vec<LoadAnswer> {
        self.stopping.store(true, Ordering::Relaxed);
        for reader in self.readers {
            reader.join().expect("every answer kept the contract");
        }
        std::mem::take(&mut self.answers.lock().unwrap())
    }
}

fn ask(client: &Client, path: &str, key: &str) -> LoadAnswer {
    let answer = client.get(path, Some(key));
    let load_answer = LoadAnswer {
        status: answer.status,
    };
    if load_answer.status != 200 {
        assert_contract_failure(&answer);
    }
    load_answer
}

/// Checks an answer that is not a success.
pub(crate) fn assert_contract_failure(answer: &Response) {
    assert!(
        matches!(answer.status, 500 | 503),
        "{}: {}",
        answer.status,
        answer.text()
    );
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let body = answer.json();
    assert_eq!(body["code"], "internal_error");
    assert!(body["error"].is_string());
    assert_eq!(answer.header("retry-after").is_some(), answer.status == 503);
}
