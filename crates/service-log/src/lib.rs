//! Protects the log: a record is one line, without keys and without control characters.

mod format;
mod panic_level;

use std::{borrow::Cow, panic};

use assay_domain::key::{INGEST_PREFIX, RECOGNISED_CHARS};
use log::{Level, Log, Metadata, Record};

pub use format::LogFormat;
pub use panic_level::PanicLevel;

/// The prefix of every key's text.
const KEY: &str = INGEST_PREFIX;
/// The number of characters from which a key is redacted; `assay-admin key list` shows one fewer.
const HIDDEN_FROM: usize = RECOGNISED_CHARS + 1;

/// This target logs each request that is not HTTP as an error. Clients could fill the log with such errors.
const REQUEST_PARSER: &str = "actix_http::h1";

/// These targets log several lines at `info` for each message of an agent, beside the access log's.
const VERBOSE_TARGETS: [&str; 2] = ["rmcp", "tracing::span"];

/// Starts to log with this filter and format, panics included. Without a format, lines are those of `env_logger`.
pub fn start(filter: &str, format: Option<LogFormat>) {
    let mut builder = env_logger::Builder::new();
    builder.parse_filters(filter);
    if let Some(format) = format {
        format.apply(&mut builder);
    }
    let inner = builder.build();
    let level = inner.filter();
    // This fails only if there is another logger, and this program has none.
    if log::set_boxed_logger(Box::new(Guard(inner))).is_ok() {
        log::set_max_level(level);
        panic::set_hook(Box::new(|panic| {
            let location = panic.location().map(ToString::to_string).unwrap_or_default();
            let payload = panic.payload();
            let fixed = payload.downcast_ref::<&str>().copied();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let level = PanicLevel::current();
            log::log!(
                level,
                "panic at {location}: {}",
                fixed.or(text).unwrap_or("no message")
            );
        }));
    }
}

/// Wraps the logger: hides dependencies' debug output, escapes control characters, redacts keys.
///
/// Below `info` some libraries log parts of requests unchanged. A control character would start a line that looks like
/// another record. Assay's own code logs no keys; if one gets into a message, it is redacted.
struct Guard<L>(L);

impl<L: Log> Log for Guard<L> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_loggable(metadata) && self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let message = record.args().to_string();
        match safe(&message) {
            Cow::Borrowed(_) => self.0.log(record),
            Cow::Owned(safe) => self.0.log(
                &Record::builder()
                    .metadata(record.metadata().clone())
                    .module_path(record.module_path())
                    .file(record.file())
                    .line(record.line())
                    .key_values(record.key_values())
                    .args(format_args!("{safe}"))
                    .build(),
            ),
        }
    }

    fn flush(&self) {
        self.0.flush();
    }
}

fn is_loggable(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let is_verbose = VERBOSE_TARGETS.iter().any(|begin| target.starts_with(begin));
    let lowest_level = if is_verbose { Level::Warn } else { Level::Info };
    let is_level_logged = metadata.level() <= lowest_level || target.starts_with("assay_");
    is_level_logged && !target.starts_with(REQUEST_PARSER)
}

/// The message on one line, without keys.
fn safe(message: &str) -> Cow<'_, str> {
    let one_line = if message.contains(char::is_control) {
        Cow::Owned(message.chars().flat_map(escaped).collect())
    } else {
        Cow::Borrowed(message)
    };
    if one_line.contains(KEY) {
        Cow::Owned(redact_keys(&one_line))
    } else {
        one_line
    }
}

fn escaped(char: char) -> impl Iterator<Item = char> {
    let control = char.is_control();
    let escaped = control.then(|| char.escape_debug()).into_iter().flatten();
    escaped.chain((!control).then_some(char))
}

/// Redacts every word that starts like a key and is longer than a key's public part.
fn redact_keys(message: &str) -> String {
    let mut parts = message.split(KEY);
    let mut safe = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|char: char| !char.is_ascii_alphanumeric() && !"_-".contains(char))
            .unwrap_or(part.len());
        let (key, rest) = part.split_at_checked(end).unwrap_or((part, ""));
        safe.push_str(KEY);
        safe.push_str(if KEY.len() + key.len() < HIDDEN_FROM {
            key
        } else {
            "…"
        });
        safe.push_str(rest);
    }
    safe
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    impl Log for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn log(&self, record: &Record<'_>) {
            self.0.lock().unwrap().push(record.args().to_string());
        }

        fn flush(&self) {}
    }

    fn logged(level: Level, target: &str, message: &str) -> Vec<String> {
        let lines = Lines::default();
        let guard = Guard(lines.clone());
        guard.log(
            &Record::builder()
                .level(level)
                .target(target)
                .args(format_args!("{message}"))
                .build(),
        );
        let lines = lines.0.lock().unwrap();
        lines.clone()
    }

    #[test]
    fn only_our_own_crates_log_below_info() {
        for target in [
            "actix_server::worker",
            "rustls::server",
            "diesel",
            "mio::poll",
            "h2",
        ] {
            assert!(logged(Level::Debug, target, "x").is_empty(), "{target}");
            assert!(logged(Level::Trace, target, "x").is_empty(), "{target}");
            assert_eq!(logged(Level::Info, target, "x"), ["x"]);
        }
        assert_eq!(logged(Level::Trace, "assay_http_api::dispatch", "x"), ["x"]);
        assert_eq!(logged(Level::Info, "access", "x"), ["x"]);
        assert!(logged(Level::Error, "actix_http::h1::dispatcher", "x").is_empty());
    }

    #[test]
    fn a_record_is_one_line() {
        let forged = "a\r\n[2026-11-20T00:00:00Z INFO  access] method=GET\u{1b}[2J\u{85}é";
        assert_eq!(
            logged(Level::Error, "assay_http_api", forged),
            [r"a\r\n[2026-11-20T00:00:00Z INFO  access] method=GET\u{1b}[2J\u{85}é"]
        );
    }

    #[test]
    fn a_key_in_a_message_is_redacted() {
        let key = "svc_ro_0123456789abcdefghijABCDEFGHIJ01234567";
        for (message, expected) in [
            (format!("header {key}, and {key}"), "header svc_…, and svc_…"),
            (format!("\"{key}\"\n"), "\"svc_…\"\\n"),
            ("token svc_session_a-b_c".to_owned(), "token svc_…"),
            (format!("svc_{key}é"), "svc_svc_…é"),
            (
                "use a key that begins with svc_ro_.".to_owned(),
                "use a key that begins with svc_ro_.",
            ),
            ("svc_ro_01234".to_owned(), "svc_ro_01234"),
            ("svc_ingestkey0".to_owned(), "svc_…"),
        ] {
            assert_eq!(logged(Level::Error, "assay_http_api", &message), [expected]);
        }
    }
}
