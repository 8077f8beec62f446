//! Encrypted targets: the message arrives if the certificate is trusted, and no text is sent if it is not.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use assay_testkit::{Authority, Receiver, SmtpReceiver, assert_contains, notify_file, program, stderr_text};

/// Sends a test message to a target. Only the authorities of this file are trusted.
fn send(folder: &Path, text: &str, trusted: &Path) -> Output {
    Command::new(program("assay-notify"))
        .args(["--test", "it", "--config"])
        .arg(notify_file(folder, text))
        .env("SSL_CERT_FILE", trusted)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap()
}

/// A folder, an authority with its file, and the file of another one.
fn authorities() -> (tempfile::TempDir, Authority, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (authority, other) = (Authority::new("one"), folder.path().join("other"));
    std::fs::create_dir(&other).unwrap();
    let trusted = authority.write(folder.path());
    let untrusted = Authority::new("another").write(&other);
    (folder, authority, trusted, untrusted)
}

/// No known authority vouches for the target's certificate.
fn assert_untrusted(refused: &Output, beginning: &str) {
    let printed = stderr_text(refused);
    assert_eq!(refused.status.code(), Some(1), "{printed}");
    let reason = format!("{beginning}: no authority of this system vouches for its certificate");
    assert_contains(&printed, &reason);
}

/// The target's certificate is of another name.
fn assert_misnamed(refused: &Output) {
    let printed = stderr_text(refused);
    assert!(
        printed.contains("its certificate is not trusted") && printed.contains("not valid for name"),
        "{printed}"
    );
}

fn hook(receiver: &Receiver) -> String {
    format!(
        "private_addresses = [\"localhost\"]\n[[target]]\nname = \"it\"\nwebhook = {{ url = \"https://localhost:{}/\", \
         keys = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"] }}\n",
        receiver.port
    )
}

fn mail(receiver: &SmtpReceiver) -> String {
    mail_with(receiver, "on")
}

fn mail_with(receiver: &SmtpReceiver, tls: &str) -> String {
    format!(
        "private_addresses = [\"localhost\"]\n[[target]]\nname = \"it\"\nsmtp = {{ host = \"localhost\", port = {}, \
         tls = \"{tls}\", from = \"assay@example.org\", to = [\"team@example.org\"] }}\n",
        receiver.port
    )
}

#[test]
fn a_message_arrives_over_https_if_its_authority_is_trusted_and_is_not_sent_otherwise() {
    let (folder, authority, trusted, untrusted) = authorities();
    let receiver = Receiver::encrypted(authority.server("localhost"));
    let refused = send(folder.path(), &hook(&receiver), &untrusted);
    assert_untrusted(&refused, "localhost does not answer");
    assert!(receiver.requests().is_empty());

    let sent = send(folder.path(), &hook(&receiver), &trusted);
    assert!(sent.status.success(), "{}", stderr_text(&sent));
    assert!(receiver.requests()[0].body.contains("this is a test message"));

    let misnamed = Receiver::encrypted(authority.server("other.example.org"));
    let refused = send(folder.path(), &hook(&misnamed), &trusted);
    assert_misnamed(&refused);
    assert!(misnamed.requests().is_empty());
}

#[test]
fn a_message_arrives_over_smtps_if_its_authority_is_trusted_and_is_not_sent_otherwise() {
    let (folder, authority, trusted, untrusted) = authorities();
    let receiver = SmtpReceiver::encrypted(authority.server("localhost"));
    let refused = send(folder.path(), &mail(&receiver), &untrusted);
    assert_untrusted(&refused, "localhost does not take the mail");
    assert!(receiver.mails().is_empty());

    let sent = send(folder.path(), &mail(&receiver), &trusted);
    assert!(sent.status.success(), "{}", stderr_text(&sent));
    let [mail_sent] = receiver.mails().try_into().unwrap();
    assert_contains(&mail_sent, "this is a test message");

    let misnamed = SmtpReceiver::encrypted(authority.server("other.example.org"));
    let refused = send(folder.path(), &mail(&misnamed), &trusted);
    assert_misnamed(&refused);
    assert!(misnamed.mails().is_empty());
}

#[test]
fn a_message_arrives_over_starttls_and_nothing_is_sent_in_clear_without_it_or_without_trust() {
    let (folder, authority, trusted, untrusted) = authorities();
    let receiver = SmtpReceiver::with_starttls(authority.server("localhost"));
    let refused = send(folder.path(), &mail_with(&receiver, "starttls"), &untrusted);
    assert_untrusted(&refused, "localhost does not take the mail");
    let sent = send(folder.path(), &mail_with(&receiver, "starttls"), &trusted);
    assert!(sent.status.success(), "{}", stderr_text(&sent));
    let [mail_sent] = receiver.mails().try_into().unwrap();
    assert_contains(&mail_sent, "this is a test message");
    assert_eq!(
        commands_in_clear(&receiver),
        ["EHLO", "STARTTLS", "EHLO", "STARTTLS"]
    );

    let misnamed = SmtpReceiver::with_starttls(authority.server("other.example.org"));
    let refused = send(folder.path(), &mail_with(&misnamed, "starttls"), &trusted);
    assert_misnamed(&refused);
    assert!(misnamed.mails().is_empty());
    assert_eq!(commands_in_clear(&misnamed), ["EHLO", "STARTTLS"]);

    let without = SmtpReceiver::new();
    let refused = send(folder.path(), &mail_with(&without, "starttls"), &trusted);
    let printed = stderr_text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{printed}");
    assert_contains(&printed, "localhost does not take the mail");
    assert_contains(&printed, "STARTTLS");
    assert!(without.mails().is_empty());
    let commands = commands_in_clear(&without);
    assert!(
        commands == ["EHLO"] || commands == ["EHLO", "QUIT"],
        "{commands:?}"
    );
}

/// The words of the commands that were not encrypted.
fn commands_in_clear(receiver: &SmtpReceiver) -> Vec<String> {
    let commands = receiver.in_clear();
    commands
        .iter()
        .filter_map(|command| command.split(' ').next().map(str::to_owned))
        .collect()
}
