//! The message of a failed command.

use std::io::Write as _;

use anstyle::{AnsiColor, Style};

use crate::{Program, terminal, wrap::wrapped};

/// Prints the error and the advice on standard error. If a name was a key, the message does not repeat it.
pub fn print(error: &anyhow::Error, advice: Option<&str>) {
    let style: Style = AnsiColor::Red.on_default().bold();
    let reason = format!("{error:#}");
    let mut message = format!(
        "{style}{}:{style:#} {}",
        Program::running().name(),
        reason.trim_end()
    );
    if let Some(advice) = advice {
        message += &format!("\n  -> {advice}");
    }
    let message = without_keys(&message).unwrap_or(message);
    // If standard error is closed, the exit status is the only message.
    let _ = writeln!(terminal::err(), "{}", wrapped(&message, terminal::stderr_width()));
}

/// The text with the beginning of each key alone; none if it has no key.
pub(crate) fn without_keys(text: &str) -> Option<String> {
    const PREFIX: &str = "svc_";
    let mut parts = text.split(PREFIX);
    let mut shown = parts.next()?.to_owned();
    let mut has_key = false;
    for part in parts {
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let end = part.find(|c: char| !is_of_key(c)).unwrap_or(part.len());
        let (secret, rest) = part.split_at_checked(end)?;
        // A placeholder such as `svc_ro_` is no key.
        let is_key = secret.len() > 8;
        has_key |= is_key;
        shown += PREFIX;
        shown += if is_key { "…" } else { secret };
        shown += rest;
    }
    has_key.then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::without_keys;

    #[test]
    fn a_message_repeats_no_key() {
        assert_eq!(
            without_keys("invalid value 'svc_ro_0123456789abcdef' for '--retry-for', not 'svc_0123456789'")
                .as_deref(),
            Some("invalid value 'svc_…' for '--retry-for', not 'svc_…'")
        );
        assert_eq!(without_keys("a key begins with svc_ro_; no other"), None);
        assert_eq!(without_keys("none"), None);
    }
}
