//! The entries of the operator's file, each checked as a whole.

use std::path::PathBuf;

use assay_domain::settings::ChatEvent;
use assay_messages::{
    Channel, DigestTimes, Every, FileChannel, FileFormat, QuietHours, Scope, Target, TimeOfDay, Zone,
};
use lettre::message::Mailbox;
use serde::Deserialize;
use validator::{Validate, ValidationError};

use crate::targets::{
    Allowed, Encryption, Mail, Request, RequestEntry, Secret, SigningKey, Slack, SlackAddress, Teams,
    Webhook, smtp::DELIVERY_WITHIN,
};

#[derive(Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[validate(schema(function = has_few_targets))]
pub(super) struct NotifyFile {
    /// Hosts and addresses of this network that targets may be at.
    #[serde(default)]
    #[validate(length(max = 100, message = "has more than 100 entries"), custom(function = are_hosts))]
    pub(super) private_addresses: Vec<String>,
    #[serde(default)]
    #[validate(nested)]
    pub(super) target: Vec<Entry>,
}

#[derive(Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[validate(schema(function = has_one_kind))]
pub(super) struct Entry {
    #[validate(custom(function = is_name))]
    pub(super) name: String,
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
    request: Option<RequestEntry>,
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
    pub(super) fn target(self, allowed: &Allowed) -> Result<Target, String> {
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
        let chat = (self.slack, self.teams, self.webhook);
        let channel: Box<dyn Channel> = match (chat, self.request, self.smtp, self.file) {
            ((Some(slack), ..), ..) => Box::new(slack.channel(allowed)?),
            ((_, Some(teams), _), ..) => Box::new(Teams::new(&teams.url, allowed)?),
            ((_, _, Some(webhook)), ..) => Box::new(webhook.channel(allowed)?),
            (_, Some(request), ..) => Box::new(Request::new(request, allowed)?),
            (_, _, Some(smtp), _) => Box::new(smtp.channel(allowed)?),
            (_, _, _, Some(file)) => Box::new(FileChannel {
                path: file.path,
                format: match file.format {
                    FormatWord::Text => FileFormat::Text,
                    FormatWord::Json => FileFormat::Json,
                },
            }),
            ((None, None, None), None, None, None) => return Err("it has no kind".to_owned()),
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
        entry.request.is_some(),
        entry.smtp.is_some(),
        entry.file.is_some(),
    ];
    match kinds.iter().filter(|has| **has).count() {
        1 => Ok(()),
        _ => Err(problem(
            "must have exactly one of slack, teams, webhook, request, smtp and file",
        )),
    }
}
