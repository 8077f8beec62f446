//! The messages of the demonstration: what `assay-notify` does, within the server, with a file as its only target.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use assay_answers::links::PublicPages;
use assay_domain::{
    settings::ChatEvent,
    store::{Outbox, Store},
    timestamp::Timestamp,
};
use assay_flakiness::Engine;
use assay_messages::{FileChannel, FileFormat, Notifier, Scope, Target};

/// How often the outbox is read.
const EVERY: Duration = Duration::from_secs(2);

/// A thread that writes the messages. Dropping the value stops it and waits for it.
#[derive(Debug)]
pub(crate) struct DemoMessages {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl DemoMessages {
    /// Starts the thread. Messages link to the pages at this address, and `now` reads the clock.
    pub(crate) fn start<S: Store + Outbox + 'static>(
        store: Arc<S>,
        file: PathBuf,
        pages: Option<&str>,
        now: impl Fn() -> Timestamp + Send + 'static,
    ) -> Self {
        let pages = pages.map(PublicPages::at);
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let engine = Engine::default();
            let target = Target {
                name: "demo".to_owned(),
                scope: Scope::All,
                events: ChatEvent::ALL.to_vec(),
                quiet: None,
                digest: None,
                channel: Box::new(FileChannel {
                    path: file,
                    format: FileFormat::Text,
                }),
            };
            let notifier = Notifier::new(&*store, &engine, pages, vec![target], || 0.0);
            loop {
                if let Err(error) = notifier.pass(&now) {
                    log::warn!("the messages of the demonstration: {error}");
                }
                match stopped.recv_timeout(EVERY) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Self {
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for DemoMessages {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is in the log.
            let _ = thread.join();
        }
    }
}
