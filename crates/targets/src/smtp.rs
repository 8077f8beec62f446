//! Mail by SMTP, as plain text. Messages of one thread refer to the first one.

use std::time::{Duration, SystemTime};

use assay_notices::{Channel, Content, Outgoing, Receipt, SendError, text};
use lettre::{
    Message, SmtpTransport, Transport,
    message::{
        Mailbox,
        header::{ContentType, HeaderName, HeaderValue},
    },
    transport::smtp::{
        authentication::Credentials,
        client::{Tls, TlsParameters},
    },
};
use uuid::Uuid;

use crate::{Allowed, Secret, within_limit};

/// Time limit of each step of a delivery.
const WITHIN: Duration = Duration::from_secs(15);
/// Longest subject, in characters.
const SUBJECT_CHARS: usize = 200;

/// How the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encryption {
    /// From its beginning, mostly on port 465.
    #[default]
    Tls,
    /// After `STARTTLS`, mostly on port 587. The connection ends if the server cannot.
    StartTls,
    /// Not at all: only to a loopback address that is named.
    None,
}

/// Sends mail through a server.
pub struct Mail {
    /// The server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The encryption.
    pub encryption: Encryption,
    /// User and password, if the server wants them.
    pub credentials: Option<(String, Secret)>,
    /// The sender.
    pub from: Mailbox,
    /// The receivers.
    pub to: Vec<Mailbox>,
    /// The private addresses that are named.
    pub allowed: Allowed,
}

impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mail")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

impl Channel for Mail {
    fn send(&self, message: &Outgoing<'_>) -> Result<Receipt, SendError> {
        let mail = self.mail(message)?;
        let transport = self.transport()?;
        let sent = transport.send(&mail);
        sent.map(|_| None)
            .map_err(|error| SendError(format!("{} does not take the mail: {error}", self.host)))
    }

    fn kind(&self) -> &'static str {
        "smtp"
    }
}

impl Mail {
    fn mail(&self, message: &Outgoing<'_>) -> Result<Message, SendError> {
        let body = within_limit(message.content, |content| self.body(content));
        let subject: String = text::subject(message.content)
            .chars()
            .take(SUBJECT_CHARS)
            .collect();
        let at = u64::try_from(message.at.unix_ms()).unwrap_or(0);
        let mut mail = Message::builder()
            .from(self.from.clone())
            .message_id(Some(self.id(message.id)))
            .date(SystemTime::UNIX_EPOCH + Duration::from_millis(at))
            .subject(subject)
            // No answer by a vacation notice.
            .raw_header(HeaderValue::new(
                HeaderName::new_from_ascii_str("Auto-Submitted"),
                "auto-generated".to_owned(),
            ))
            .header(ContentType::TEXT_PLAIN);
        for to in &self.to {
            mail = mail.to(to.clone());
        }
        if let Some((thread, _)) = &message.thread {
            mail = mail.in_reply_to(self.id(*thread)).references(self.id(*thread));
        }
        mail.body(body)
            .map_err(|error| SendError(format!("the mail cannot be written: {error}")))
    }

    fn body(&self, content: &Content) -> String {
        format!(
            "{}\n\n-- \nSent by Assay, {}\n",
            text::plain(content),
            content.organization
        )
    }

    /// The id of a mail, which is the same at each attempt.
    fn id(&self, id: Uuid) -> String {
        format!("<{}@{}>", id.simple(), self.from.email.domain())
    }

    /// A connection to an allowed address of the server, whose certificate must have its name.
    fn transport(&self) -> Result<SmtpTransport, SendError> {
        let addresses = self.allowed.resolve(&self.host, self.port).map_err(SendError)?;
        let address = addresses
            .first()
            .ok_or_else(|| SendError(format!("{} has no address", self.host)))?;
        let parameters = || {
            TlsParameters::new_rustls(self.host.clone())
                .map_err(|error| SendError(format!("TLS cannot be set up: {error}")))
        };
        let tls = match self.encryption {
            Encryption::Tls => Tls::Wrapper(parameters()?),
            Encryption::StartTls => Tls::Required(parameters()?),
            Encryption::None => Tls::None,
        };
        let mut transport = SmtpTransport::builder_dangerous(address.ip().to_string())
            .port(self.port)
            .timeout(Some(WITHIN))
            .tls(tls);
        if let Some((user, password)) = &self.credentials {
            transport = transport.credentials(Credentials::new(user.clone(), password.reveal().to_owned()));
        }
        Ok(transport.build())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A mail as it is sent.
    pub(crate) fn mail(message: &Outgoing<'_>) -> String {
        let mail = Mail {
            host: "mail.example.org".to_owned(),
            port: 465,
            encryption: Encryption::Tls,
            credentials: None,
            from: "Assay <assay@example.org>".parse().unwrap(),
            to: vec!["team@example.org".parse().unwrap()],
            allowed: Allowed::default(),
        };
        String::from_utf8(mail.mail(message).unwrap().formatted()).unwrap()
    }
}
