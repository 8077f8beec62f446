//! The operator's file: targets with their secrets.

use std::{
    collections::HashSet,
    fs::File,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use assay_domain::settings::ChatEvent;
use assay_notices::{
    Channel, DigestTimes, Every, FileChannel, FileFormat, QuietHours, Scope, Target, TimeOfDay, Zone,
};
use lettre::message::Mailbox;
use serde::Deserialize;
use validator::{Validate, ValidationError};

use crate::{
    Allowed, Encryption, Mail, Secret, SigningKey, Slack, SlackAddress, Teams, Webhook, smtp::DELIVERY_WITHIN,
};

/// Largest file, in bytes.
const LARGEST_FILE: u64 = 256 << 10;

/// Why the file is not accepted. The text has no secret.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{0} cannot be read: {1}")]
    Unreadable(PathBuf, std::io::Error),
    /// Other users of the machine can read it.
    #[error("{0} has secrets, and other users can read it; run `chmod 600 {0}`")]
    Exposed(PathBuf),
    /// It is too large.
    #[error("{0} is larger than 256 KiB")]
    TooLarge(PathBuf),
    /// It is not what is expected.
    #[error("{0}: {1}")]
    Invalid(PathBuf, String),
}

/// Reads and checks the file.
///
/// # Errors
/// If others can read the file, or a value of it is invalid.
pub fn read(path: &Path) -> Result<Vec<Target>, ConfigError> {
    let unreadable = |error| ConfigError::Unreadable(path.to_owned(), error);
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(ConfigError::Exposed(path.to_owned()));
    }
    let mut text = String::new();
    let read = file
        .take(LARGEST_FILE + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > LARGEST_FILE {
        return Err(ConfigError::TooLarge(path.to_owned()));
    }
    targets(&text).map_err(|problem| ConfigError::Invalid(path.to_owned(), problem))
}

/// The targets of the file's text.
fn targets(text: &str) -> Result<Vec<Target>, String> {
    // The whole text of an error has the line of the file, which may be a secret.
    let file: NotifyFile = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| format!("line {}: ", before.matches('\n').count() + 1));
        format!("{}{}", line.unwrap_or_default(), without_value(error.message()))
    })?;
    file.validate().map_err(|errors| described(&errors))?;
    let allowed = Allowed::new(file.private_addresses);
    let mut names = HashSet::new();
    let mut targets = Vec::new();
    for entry in file.target {
        let name = entry.name.clone();
        if !names.insert(name.clone()) {
            return Err(format!("two targets have the name {name:?}; give each its own"));
        }
        targets.push(
            entry
                .target(&allowed)
                .map_err(|problem| format!("target {name:?}: {problem}"))?,
        );
    }
    Ok(targets)
}

/// The message of an error without the value that it names, which may be a secret.
fn without_value(message: &str) -> String {
    for kind in ["invalid type", "invalid value", "invalid length"] {
        if message.starts_with(kind) {
            let expected = message.rsplit_once(", expected ");
            return expected.map_or_else(
                || kind.to_owned(),
                |(_, expected)| format!("{kind}, expected {expected}"),
            );
        }
    }
    message.to_owned()
}

#[derive(Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[validate(schema(function = has_few_targets))]
struct NotifyFile {
    /// Hosts and addresses of this network that targets may be at.
    #[serde(default)]
    #[validate(length(max = 100, message = "has more than 100 entries"), custom(function = are_hosts))]
    private_addresses: Vec<String>,
    #[serde(default)]
    #[validate(nested)]
    target: Vec<Entry>,
}

#[derive(Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[validate(schema(function = has_one_kind))]
struct Entry {
    #[validate(custom(function = is_name))]
    name: String,
    #[validate(length(min = 1, max = 1000, message = "has none or more than 1,000 projects"))]
    projects: Option<Vec<String>>,
    #[validate(length(min = 1, message = "is empty; leave it out for all events"))]
    events: Option<Vec<ChatEvent>>,
    #[validate(nested)]
    quiet: Option<QuietEntry>,
    #[validate(nested)]
    digest: Option<DigestEntry>,
    slack: Option<SlackEntry>,
    teams: Option<TeamsEntry>,
    #[validate(nested)]
    webhook: Option<WebhookEntry>,
    #[validate(nested)]
    smtp: Option<SmtpEntry>,
    file: Option<FileEntry>,
}

#[derive(Deserialize, Validate)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as { from = \"20:00\", to = \"07:00\" }"
)]
#[validate(schema(function = has_an_end))]
struct QuietEntry {
    #[validate(custom(function = is_time))]
    from: String,
    #[validate(custom(function = is_time))]
    to: String,
    #[validate(custom(function = is_zone))]
    zone: Option<String>,
}

#[derive(Deserialize, Validate)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as { every = \"week\", at = \"09:00\" }"
)]
struct DigestEntry {
    every: EveryWord,
    #[validate(custom(function = is_time))]
    at: String,
    #[validate(custom(function = is_zone))]
    zone: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum EveryWord {
    Day,
    Week,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { url = … }")]
struct SlackEntry {
    url: Option<Secret>,
    token: Option<Secret>,
    channel: Option<String>,
    api: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { url = … }")]
struct TeamsEntry {
    url: Secret,
}

// A rule of a field would need its value, which is a secret, for its error.
#[derive(Deserialize, Validate)]
#[serde(deny_unknown_fields, expecting = "a table such as { url = …, keys = […] }")]
#[validate(schema(function = has_one_or_two_keys))]
struct WebhookEntry {
    url: Secret,
    keys: Vec<Secret>,
}

#[derive(Deserialize, Validate)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as { host = …, from = …, to = […] }"
)]
struct SmtpEntry {
    #[validate(length(min = 1, max = 253, message = "is empty or too long"))]
    host: String,
    #[validate(range(min = 1, message = "is 0"))]
    port: Option<u16>,
    #[serde(default)]
    tls: TlsWord,
    user: Option<String>,
    password: Option<Secret>,
    from: String,
    #[validate(length(min = 1, max = 50, message = "must have 1 to 50 addresses"))]
    to: Vec<String>,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "lowercase")]
enum TlsWord {
    #[default]
    On,
    Starttls,
    Off,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { path = … }")]
struct FileEntry {
    path: PathBuf,
    #[serde(default)]
    format: FormatWord,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "lowercase")]
enum FormatWord {
    #[default]
    Text,
    Json,
}

impl Entry {
    fn target(self, allowed: &Allowed) -> Result<Target, String> {
        let quiet = self.quiet.map(|quiet| {
            Some(QuietHours {
                from: TimeOfDay::parse(&quiet.from)?,
                to: TimeOfDay::parse(&quiet.to)?,
                zone: zone(quiet.zone.as_deref())?,
            })
        });
        let digest = self.digest.map(|digest| {
            Some(DigestTimes {
                every: match digest.every {
                    EveryWord::Day => Every::Day,
                    EveryWord::Week => Every::Week,
                },
                at: TimeOfDay::parse(&digest.at)?,
                zone: zone(digest.zone.as_deref())?,
            })
        });
        let channel: Box<dyn Channel> = match (self.slack, self.teams, self.webhook, self.smtp, self.file) {
            (Some(slack), ..) => Box::new(slack.channel(allowed)?),
            (_, Some(teams), ..) => Box::new(Teams::new(&teams.url, allowed)?),
            (_, _, Some(webhook), ..) => Box::new(webhook.channel(allowed)?),
            (_, _, _, Some(smtp), _) => Box::new(smtp.channel(allowed)?),
            (_, _, _, _, Some(file)) => Box::new(FileChannel {
                path: file.path,
                format: match file.format {
                    FormatWord::Text => FileFormat::Text,
                    FormatWord::Json => FileFormat::Json,
                },
            }),
            (None, None, None, None, None) => return Err("it has no kind".to_owned()),
        };
        Ok(Target {
            name: self.name,
            scope: self.projects.map_or(Scope::All, Scope::Named),
            events: self.events.unwrap_or_else(|| ChatEvent::ALL.to_vec()),
            quiet: quiet.flatten(),
            digest: digest.flatten(),
            channel,
        })
    }
}

impl SlackEntry {
    fn channel(self, allowed: &Allowed) -> Result<Slack, String> {
        let address = match (self.url, self.token, self.channel) {
            (Some(url), None, None) => SlackAddress::Webhook(url),
            (None, Some(token), Some(channel)) => SlackAddress::Channel {
                token,
                channel,
                api: self.api,
            },
            (None, None | Some(_), None | Some(_)) | (Some(_), _, _) => {
                return Err("slack needs either url, or token and channel".to_owned());
            }
        };
        Ok(Slack::new(address, allowed)?)
    }
}

impl WebhookEntry {
    fn channel(self, allowed: &Allowed) -> Result<Webhook, String> {
        let keys: Option<Vec<SigningKey>> = self.keys.iter().map(SigningKey::parse).collect();
        let keys = keys.ok_or(
            "a key must be whsec_ and 24 to 64 bytes in Base64; make one: echo whsec_$(openssl rand -base64 32)",
        )?;
        Ok(Webhook::new(&self.url, keys, allowed)?)
    }
}

impl SmtpEntry {
    fn channel(self, allowed: &Allowed) -> Result<Mail, String> {
        let encryption = match self.tls {
            TlsWord::On => Encryption::Tls,
            TlsWord::Starttls => Encryption::StartTls,
            TlsWord::Off => Encryption::None,
        };
        let is_named_loopback = allowed.names(&self.host)
            && self
                .host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if encryption == Encryption::None && !is_named_loopback {
            return Err("tls may be off only to a loopback address that private_addresses names".to_owned());
        }
        let credentials = match (self.user, self.password) {
            (Some(user), Some(password)) => Some((user, password)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err("user and password need each other".to_owned()),
        };
        let mailbox = |text: &String| {
            text.parse::<Mailbox>()
                .map_err(|_| format!("{text:?} is not an address of mail"))
        };
        Ok(Mail {
            port: self.port.unwrap_or(match encryption {
                Encryption::Tls => 465,
                Encryption::StartTls => 587,
                Encryption::None => 25,
            }),
            host: self.host,
            encryption,
            credentials,
            from: mailbox(&self.from)?,
            to: self.to.iter().map(mailbox).collect::<Result<_, _>>()?,
            allowed: allowed.clone(),
            within: DELIVERY_WITHIN,
        })
    }
}

fn zone(name: Option<&str>) -> Option<Zone> {
    name.map_or(Some(Zone::utc()), Zone::named)
}

fn problem(message: &'static str) -> ValidationError {
    ValidationError::new("invalid").with_message(message.into())
}

fn is_name(name: &str) -> Result<(), ValidationError> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    match (1..=60).contains(&name.len()) && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(problem("must have 1 to 60 letters, digits, - or _")),
    }
}

fn is_time(text: &str) -> Result<(), ValidationError> {
    TimeOfDay::parse(text)
        .map(drop)
        .ok_or_else(|| problem("is not a time such as 07:30"))
}

fn is_zone(name: &str) -> Result<(), ValidationError> {
    Zone::named(name).map(drop).ok_or_else(|| {
        problem("is not a time zone that this system knows, such as Europe/Berlin; install tzdata if it is missing")
    })
}

/// Whether each is the name of a host or an address, without port, scheme or mask.
fn are_hosts(named: &[String]) -> Result<(), ValidationError> {
    let is_part = |char: char| char.is_ascii_alphanumeric() || ['.', '-', '_'].contains(&char);
    let is_host = |name: &String| {
        name.parse::<std::net::IpAddr>().is_ok() || (!name.is_empty() && name.chars().all(is_part))
    };
    match named.iter().all(is_host) {
        true => Ok(()),
        false => Err(problem(
            "must have only names of hosts and single addresses, without port, scheme or mask",
        )),
    }
}

fn has_an_end(quiet: &QuietEntry) -> Result<(), ValidationError> {
    match quiet.from == quiet.to {
        true => Err(problem("from and to are the same time, so that no hour is quiet")),
        false => Ok(()),
    }
}

fn has_few_targets(file: &NotifyFile) -> Result<(), ValidationError> {
    match file.target.len() {
        ..=100 => Ok(()),
        _ => Err(problem("the file has more than 100 targets")),
    }
}

fn has_one_or_two_keys(webhook: &WebhookEntry) -> Result<(), ValidationError> {
    match webhook.keys.len() {
        1 | 2 => Ok(()),
        _ => Err(problem("must have one key, or two while they are rotated")),
    }
}

fn has_one_kind(entry: &Entry) -> Result<(), ValidationError> {
    let kinds = [
        entry.slack.is_some(),
        entry.teams.is_some(),
        entry.webhook.is_some(),
        entry.smtp.is_some(),
        entry.file.is_some(),
    ];
    match kinds.iter().filter(|has| **has).count() {
        1 => Ok(()),
        _ => Err(problem(
            "must have exactly one of slack, teams, webhook, smtp and file",
        )),
    }
}

/// The first problem with the place of its value.
fn described(errors: &validator::ValidationErrors) -> String {
    use validator::ValidationErrorsKind::{Field, List, Struct};
    let Some((field, kind)) = errors.errors().iter().min_by_key(|(field, _)| field.to_string()) else {
        return "it is invalid".to_owned();
    };
    match kind {
        Struct(inner) => format!("{field}: {}", described(inner)),
        List(inner) => inner.iter().next().map_or_else(String::new, |(place, inner)| {
            format!("{field} {}: {}", place + 1, described(inner))
        }),
        Field(problems) => {
            let message = problems.first().and_then(|problem| problem.message.as_deref());
            let message = message.unwrap_or("is invalid");
            match &**field {
                "__all__" => message.to_owned(),
                field => format!("{field} {message}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const WHOLE: &str = r#"
private_addresses = ["127.0.0.1"]

[[target]]
name = "team"
projects = ["Shop/web"]
events = ["run_failed", "run_recovered"]
quiet = { from = "20:00", to = "07:00", zone = "Europe/Berlin" }
digest = { every = "week", at = "09:00" }
slack = { url = "https://hooks.slack.com/services/T0/B0/hidden" }

[[target]]
name = "thread"
slack = { token = "xoxb-hidden", channel = "C012" }

[[target]]
name = "office"
teams = { url = "https://example.webhook.office.com/hidden" }

[[target]]
name = "hook"
webhook = { url = "http://127.0.0.1:9000/", keys = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] }

[[target]]
name = "mail"
smtp = { host = "mail.example.org", user = "assay", password = "hidden", from = "Assay <assay@example.org>", to = ["team@example.org"] }

[[target]]
name = "log"
file = { path = "/tmp/messages.txt", format = "json" }
"#;

    #[test]
    fn a_file_with_every_kind_is_read_and_shows_no_secret() {
        let targets = targets(WHOLE).unwrap();
        let kinds: Vec<&str> = targets.iter().map(|target| target.channel.kind()).collect();
        assert_eq!(kinds, ["slack", "slack", "teams", "webhook", "smtp", "file"]);
        let first = &targets[0];
        assert_eq!(first.scope, Scope::Named(vec!["Shop/web".to_owned()]));
        assert_eq!(first.events, [ChatEvent::RunFailed, ChatEvent::RunRecovered]);
        assert!(first.quiet.is_some() && first.digest.is_some());
        assert_eq!(targets[1].events, ChatEvent::ALL);
        let shown = format!("{targets:?}");
        assert!(!shown.contains("hidden") && !shown.contains("whsec"), "{shown}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_without_secrets() {
        for (change, expected) in [
            (
                ("name = \"team\"", "name = \"the team\""),
                "name must have 1 to 60 letters",
            ),
            (
                ("name = \"thread\"", "name = \"team\""),
                "two targets have the name \"team\"",
            ),
            (("20:00", "24:00"), "target 1: quiet: from is not a time"),
            (
                ("20:00", "07:00"),
                "target 1: quiet: from and to are the same time",
            ),
            (
                ("[\"127.0.0.1\"]", "[\"10.0.0.0/8\"]"),
                "private_addresses must have only names",
            ),
            (
                (
                    "keys = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]",
                    "keys = \"whsec_hidden\"",
                ),
                "invalid type, expected a sequence",
            ),
            (
                (
                    "slack = { url = \"https://hooks.slack.com/services/T0/B0/hidden\" }",
                    "slack = \"https://hooks.slack.com/services/T0/B0/hidden, expected hidden\"",
                ),
                "line 10: invalid type, expected a table such as { url = … }",
            ),
            (("quiet =", "quite ="), "line 8: unknown field `quite`"),
            (("Europe/Berlin", "Mars/Olympus"), "zone is not a time zone"),
            (("\"week\"", "\"month\""), "unknown variant `month`"),
            (("\"run_failed\"", "\"run_faild\""), "line 7: "),
            (
                (
                    "slack = { url = \"https://hooks.slack.com/services/T0/B0/hidden\" }",
                    "",
                ),
                "exactly one of",
            ),
            (
                ("https://hooks.slack.com", "http://hooks.slack.com"),
                "must begin with https://",
            ),
            (
                ("http://127.0.0.1:9000/", "http://127.0.0.2:9000/"),
                "must begin with https://",
            ),
            ((", channel = \"C012\"", ""), "either url, or token and channel"),
            (
                ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_hidden"),
                "a key must be whsec_",
            ),
            (
                ("keys = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]", "keys = []"),
                "must have one key",
            ),
            (("user = \"assay\", ", ""), "user and password need each other"),
            (
                (
                    "host = \"mail.example.org\"",
                    "tls = \"off\", host = \"mail.example.org\"",
                ),
                "tls may be off only",
            ),
            (("team@example.org", "team"), "\"team\" is not an address"),
            (
                ("private_addresses", "private_adresses"),
                "unknown field `private_adresses`",
            ),
        ] {
            let changed = WHOLE.replace(change.0, change.1);
            assert_ne!(changed, WHOLE, "{change:?}");
            let problem = targets(&changed).unwrap_err();
            assert!(problem.contains(expected), "{expected}: {problem}");
            assert!(!problem.contains("hidden"), "{problem}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.toml");
        fs::write(&path, WHOLE).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = read(&path).unwrap_err().to_string();
        assert!(refused.contains("chmod 600"), "{refused}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&path).unwrap().len(), 6);
        assert!(
            read(&folder.path().join("none"))
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
    }
}
