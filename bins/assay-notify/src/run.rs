//! What the program does: a test message, a preview, one pass, or passes until a signal.

use std::{
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use assay_answers::links::PublicPages;
use assay_domain::store::StoreError;
use assay_flakiness::Engine;
use assay_messages::{Notifier, Outgoing, Sending, Target, test_message, text};
use assay_repository::{Database, OutboxLock};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::{cli::Cli, clock, database};

/// Runs the program with the targets of the file.
pub(crate) fn run(cli: &Cli, targets: Vec<Target>) -> anyhow::Result<()> {
    let pages = cli.public_url().map(PublicPages::at);
    if let Some(name) = &cli.test {
        return send_test(&targets, name, pages.as_ref());
    }
    if pages.is_none() {
        log::warn!("messages have no links, because ASSAY_PUBLIC_URL is not set");
    }
    for target in &targets {
        log::info!("target {:?} ({})", target.name, target.channel.kind());
    }
    let every = Duration::from_secs(cli.every);
    let service = match cli.dry_run || cli.once {
        true => None,
        false => Some(signals()?),
    };
    let opened = loop {
        match (database::open(cli), &service) {
            // Postgres may start later than this program, or again.
            (Err(error), Some(signals)) if is_of_the_database(&error) => {
                log::error!("{error:#}");
                if stops(signals, every) {
                    return Ok(());
                }
            }
            (opened, _) => break opened?,
        }
    };
    let url = opened.url.as_str();
    let engine = Engine::default();
    let notifier = Notifier::new(&opened.database, &engine, pages, targets, || {
        rand::random::<f64>()
    });
    match (notifier.unclear(clock::now()), &service) {
        (Err(error), Some(_)) => log::error!("{:#}", anyhow::Error::from(error)),
        (problems, _) => {
            for problem in problems? {
                log::warn!("{problem}");
            }
        }
    }
    if let Some(signals) = service {
        until_signal(&notifier, url, every, &signals);
        return Ok(());
    }
    if cli.dry_run {
        return preview(&notifier);
    }
    let Some(_lock) = OutboxLock::acquire(url)? else {
        bail!("another assay-notify works on this database");
    };
    let report = notifier.pass(&clock::now)?;
    log::info!("{} delivered, {} failed", report.delivered, report.failed);
    Ok(())
}

/// Whether an error may pass without a change of the program's flags.
fn is_of_the_database(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(
            cause.downcast_ref(),
            Some(StoreError::Unreachable(_) | StoreError::Exhausted { .. } | StoreError::Failed { .. })
        )
    })
}

fn send_test(targets: &[Target], name: &str, pages: Option<&PublicPages>) -> anyhow::Result<()> {
    let Some(target) = targets.iter().find(|target| target.name == name) else {
        let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        bail!("the file has no target {name:?}; it has: {}", names.join(", "));
    };
    let now = clock::now();
    let content = test_message(pages);
    let message = Outgoing {
        id: uuid::Uuid::now_v7(),
        at: now,
        now,
        content: &content,
        thread: None,
    };
    target
        .channel
        .send(&message)
        .with_context(|| format!("target {name:?}"))?;
    eprintln!("assay-notify: {name:?} took the message");
    Ok(())
}

fn preview(notifier: &Notifier<'_, Database>) -> anyhow::Result<()> {
    let previews = notifier.preview(clock::now())?;
    for preview in &previews {
        let target = preview.target;
        let held = match preview.sending {
            Sending::Now => "",
            Sending::AfterQuietHours => " after its quiet hours",
        };
        for message in &preview.messages {
            print(&format!("to {target}{held}:\n{}\n", text::plain(message)))?;
        }
        if preview.is_waiting {
            eprintln!(
                "assay-notify: changes of {:?} to {target:?} wait for another judgement, or for the time since the last \
                 message",
                preview.project
            );
        }
    }
    if previews.iter().all(|preview| preview.messages.is_empty()) {
        eprintln!("assay-notify: nothing is due");
    }
    Ok(())
}

/// Prints a text. A reader that closes the output early is not an error.
fn print(text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn until_signal(notifier: &Notifier<'_, Database>, url: &str, every: Duration, signals: &Receiver<()>) {
    let mut lock: Option<OutboxLock> = None;
    let mut was_waiting = false;
    loop {
        if !lock.as_mut().is_some_and(OutboxLock::is_held) {
            // The lock ends with its connection.
            lock = OutboxLock::acquire(url).unwrap_or_else(|error| {
                log::error!("{:#}", anyhow::Error::from(error));
                None
            });
            if lock.is_none() && !was_waiting {
                log::info!("waiting until this is the only assay-notify");
            }
            was_waiting = lock.is_none();
        }
        if lock.is_some()
            && let Err(error) = notifier.pass(&clock::now)
        {
            log::error!("{:#}", anyhow::Error::from(error));
        }
        if stops(signals, every) {
            return;
        }
    }
}

/// Waits for this time. Returns whether a signal to stop came.
fn stops(signals: &Receiver<()>, every: Duration) -> bool {
    match signals.recv_timeout(every) {
        Err(RecvTimeoutError::Timeout) => false,
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            log::info!("stopping");
            true
        }
    }
}

/// Receives something at a signal to stop.
fn signals() -> anyhow::Result<Receiver<()>> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("catching signals")?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = sender.send(());
        }
    });
    Ok(receiver)
}
