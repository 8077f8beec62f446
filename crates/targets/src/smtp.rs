//! Mail by SMTP, as plain text. Messages of one thread refer to the first one.

use std::{
    io,
    net::IpAddr,
    sync::mpsc,
    thread,
    time::{Duration, SystemTime},
};

use assay_notices::{Channel, Content, Outgoing, Receipt, SendError, text};
use lettre::{
    Message, SmtpTransport, Transport,
    message::{
        Mailbox,
        header::{ContentType, HeaderName, HeaderValue},
    },
    transport::smtp::{
        Error,
        authentication::Credentials,
        client::{Tls, TlsParameters},
    },
};
use uuid::Uuid;

use crate::{Allowed, Secret, certificates, within_limit};

/// Time limit of each step of a delivery.
const STEP_WITHIN: Duration = Duration::from_secs(15);
/// Time limit of a whole delivery.
pub(crate) const DELIVERY_WITHIN: Duration = Duration::from_secs(60);
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
    /// The time limit of a whole delivery.
    pub within: Duration,
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
        let transports = self.transports()?;
        let (sender, receiver) = mpsc::channel();
        // A server that answers a byte at a time keeps each time limit of a step, and must not hold up other targets.
        thread::spawn(move || sender.send(deliver(&transports, &mail)));
        match receiver.recv_timeout(self.within) {
            Ok(Ok(())) => Ok(None),
            Ok(Err(error)) => Err(SendError::new(format!(
                "{} does not take the mail: {}",
                self.host,
                certificates::problem(&error).unwrap_or_else(|| error.to_string())
            ))),
            Err(_) => Err(SendError::new(format!(
                "{} does not take the mail within {} seconds",
                self.host,
                self.within.as_secs()
            ))),
        }
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
            .map_err(|error| SendError::new(format!("the mail cannot be written: {error}")))
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

    /// Connections to the allowed addresses of the server, whose certificate must have its name.
    fn transports(&self) -> Result<Vec<SmtpTransport>, SendError> {
        let addresses = self
            .allowed
            .resolve(&self.host, self.port)
            .map_err(SendError::new)?;
        addresses
            .iter()
            .map(|address| self.transport(address.ip()))
            .collect()
    }

    fn transport(&self, address: IpAddr) -> Result<SmtpTransport, SendError> {
        let parameters = || {
            TlsParameters::new_rustls(self.host.clone())
                .map_err(|error| SendError::new(format!("TLS cannot be set up: {error}")))
        };
        let tls = match self.encryption {
            Encryption::Tls => Tls::Wrapper(parameters()?),
            Encryption::StartTls => Tls::Required(parameters()?),
            Encryption::None => Tls::None,
        };
        let mut transport = SmtpTransport::builder_dangerous(address.to_string())
            .port(self.port)
            .timeout(Some(STEP_WITHIN))
            .tls(tls);
        if let Some((user, password)) = &self.credentials {
            transport = transport.credentials(Credentials::new(user.clone(), password.reveal().to_owned()));
        }
        Ok(transport.build())
    }
}

/// Sends a mail by the first of these connections that can be made.
fn deliver(transports: &[SmtpTransport], mail: &Message) -> Result<(), Error> {
    let mut tried = transports.iter().peekable();
    while let Some(transport) = tried.next() {
        match transport.send(mail) {
            Err(error) if is_unreached(&error) && tried.peek().is_some() => {}
            outcome => return outcome.map(drop),
        }
    }
    Ok(())
}

/// Whether there was no connection.
fn is_unreached(error: &Error) -> bool {
    let cause = std::error::Error::source(error);
    let problem = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    problem.is_some_and(|problem| {
        [
            io::ErrorKind::ConnectionRefused,
            io::ErrorKind::HostUnreachable,
            io::ErrorKind::NetworkUnreachable,
            io::ErrorKind::AddrNotAvailable,
        ]
        .contains(&problem.kind())
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{io::Write as _, net::TcpListener, slice, thread};

    use super::*;

    #[test]
    fn a_server_that_answers_a_byte_at_a_time_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            // The client may be gone.
            while connection.write_all(b"2").is_ok() {
                thread::sleep(Duration::from_millis(50));
            }
        });
        let mail = Mail {
            host: "127.0.0.1".to_owned(),
            port,
            encryption: Encryption::None,
            allowed: Allowed::new(["127.0.0.1".to_owned()]),
            within: Duration::from_secs(1),
            ..to_example()
        };
        let content = assay_notices::test_message(None);
        let refused = mail.send(&crate::limits::outgoing(&content)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "127.0.0.1 does not take the mail within 1 seconds"
        );
    }

    #[test]
    fn an_address_without_a_server_is_told_from_a_server_that_refuses() {
        let (refusing, closed) = (
            TcpListener::bind("127.0.0.1:0").unwrap(),
            TcpListener::bind("127.0.0.1:0").unwrap(),
        );
        let ports = [&closed, &refusing].map(|listener| listener.local_addr().unwrap().port());
        drop(closed);
        thread::spawn(move || {
            let (mut connection, _) = refusing.accept().unwrap();
            connection.write_all(b"554 no mail here\r\n").unwrap();
        });
        let [closed, refusing] = ports.map(|port| {
            let transport = SmtpTransport::builder_dangerous("127.0.0.1");
            transport.port(port).timeout(Some(STEP_WITHIN)).build()
        });
        let content = assay_notices::test_message(None);
        let mail = to_example().mail(&crate::limits::outgoing(&content)).unwrap();
        let unreached = deliver(slice::from_ref(&closed), &mail).unwrap_err();
        assert!(is_unreached(&unreached), "{unreached:?}");
        // The second address is tried, and its answer counts.
        let refused = deliver(&[closed, refusing], &mail).unwrap_err();
        assert!(refused.is_permanent() && !is_unreached(&refused), "{refused:?}");
    }

    fn to_example() -> Mail {
        Mail {
            host: "mail.example.org".to_owned(),
            port: 465,
            encryption: Encryption::Tls,
            credentials: None,
            from: "Assay <assay@example.org>".parse().unwrap(),
            to: vec!["team@example.org".parse().unwrap()],
            allowed: Allowed::default(),
            within: DELIVERY_WITHIN,
        }
    }

    /// A mail as it is sent.
    pub(crate) fn mail(message: &Outgoing<'_>) -> String {
        String::from_utf8(to_example().mail(message).unwrap().formatted()).unwrap()
    }
}
