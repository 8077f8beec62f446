//! Mail by SMTP, as plain text. Messages of one thread refer to the first one.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::mpsc,
    thread,
    time::{Duration, SystemTime},
};

use assay_messages::{Channel, Content, Outgoing, Receipt, SendError, text};
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

use assay_outbound::certificate_problem;

use crate::targets::{Allowed, Secret, relay::Relay, within_limit};

/// Time limit of each step of a delivery.
const STEP_WITHIN: Duration = Duration::from_secs(15);
/// Time limit of a whole delivery.
pub(crate) const DELIVERY_WITHIN: Duration = Duration::from_secs(60);
/// Longest subject, in characters.
const SUBJECT_CHARS: usize = 200;

/// How the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encryption {
    /// From its beginning, mostly on port 465.
    #[default]
    Tls,
    /// After `STARTTLS`, mostly on port 587. The connection ends if the server cannot.
    StartTls,
    /// Not at all: only to a loopback address that is named.
    None,
}

/// Sends mail through a server.
pub(crate) struct Mail {
    /// The server.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
    /// The encryption.
    pub(crate) encryption: Encryption,
    /// User and password, if the server wants them.
    pub(crate) credentials: Option<(String, Secret)>,
    /// The sender.
    pub(crate) from: Mailbox,
    /// The receivers.
    pub(crate) to: Vec<Mailbox>,
    /// The private addresses that are named.
    pub(crate) allowed: Allowed,
    /// The time limit of a whole delivery.
    pub(crate) within: Duration,
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
        let not_taken =
            |reason: String| SendError::new(format!("{} does not take the mail: {reason}", self.host));
        let server = self.connect()?.map_err(|error| not_taken(error.to_string()))?;
        let relay = Relay::to(server).map_err(|error| not_taken(error.to_string()))?;
        let transport = self.transport(relay.port)?;
        let (sender, receiver) = mpsc::channel();
        // A server that answers a byte at a time keeps each time limit of a step, and must not hold up other targets.
        thread::spawn(move || sender.send(transport.send(&mail)));
        let outcome = receiver.recv_timeout(self.within);
        // Ends a thread that still waits for the server.
        drop(relay);
        match outcome {
            Ok(Ok(_)) => Ok(None),
            Ok(Err(error)) => Err(not_taken(
                certificate_problem(&error).unwrap_or_else(|| error.to_string()),
            )),
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

    /// Connects to the first allowed address of the server that answers.
    fn connect(&self) -> Result<io::Result<TcpStream>, SendError> {
        let addresses = self
            .allowed
            .resolve(&self.host, self.port)
            .map_err(SendError::new)?;
        Ok(first(&addresses, STEP_WITHIN.min(self.within)))
    }

    /// The library's way to the server behind this port. The server's certificate must have its name.
    fn transport(&self, port: u16) -> Result<SmtpTransport, SendError> {
        let parameters = || {
            TlsParameters::new_rustls(self.host.clone())
                .map_err(|error| SendError::new(format!("TLS cannot be set up: {error}")))
        };
        let tls = match self.encryption {
            Encryption::Tls => Tls::Wrapper(parameters()?),
            Encryption::StartTls => Tls::Required(parameters()?),
            Encryption::None => Tls::None,
        };
        let mut transport = SmtpTransport::builder_dangerous(Ipv4Addr::LOCALHOST.to_string())
            .port(port)
            .timeout(Some(STEP_WITHIN))
            .tls(tls);
        if let Some((user, password)) = &self.credentials {
            transport = transport.credentials(Credentials::new(user.clone(), password.reveal().to_owned()));
        }
        Ok(transport.build())
    }
}

/// A connection to the first of these addresses that answers; else the error of the last one.
fn first(addresses: &[SocketAddr], within: Duration) -> io::Result<TcpStream> {
    let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in addresses {
        outcome = TcpStream::connect_timeout(address, within);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{io::Write as _, net::TcpListener, thread};

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
        let content = assay_messages::test_message(None);
        let refused = mail
            .send(&crate::targets::tests::limits::outgoing(&content))
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "127.0.0.1 does not take the mail within 1 seconds"
        );
    }

    #[test]
    fn a_line_without_an_end_takes_bounded_memory_and_its_connection_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mail = Mail {
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().unwrap().port(),
            encryption: Encryption::None,
            allowed: Allowed::new(["127.0.0.1".to_owned()]),
            ..to_example()
        };
        let sending = thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let piece = vec![b'2'; 64 << 10];
            (0..10_000).find(|_| connection.write_all(&piece).is_err())
        });
        let content = assay_messages::test_message(None);
        let refused = mail
            .send(&crate::targets::tests::limits::outgoing(&content))
            .unwrap_err();
        assert!(refused.to_string().contains("line too long"), "{refused}");
        // The server's end notices, long before 640 MB.
        assert!(sending.join().unwrap().is_some_and(|pieces| pieces < 1_000));
    }

    #[test]
    fn the_first_address_with_a_server_is_taken_and_its_reason_is_shown_without_control_characters() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refusing = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = refusing.local_addr().unwrap();
        assert_eq!(
            first(&[closed, address], STEP_WITHIN)
                .unwrap()
                .peer_addr()
                .unwrap(),
            address
        );
        assert!(first(&[closed], STEP_WITHIN).is_err() && first(&[], STEP_WITHIN).is_err());
        thread::spawn(move || {
            for mut connection in refusing.incoming().flatten() {
                // The first connection ended without a word.
                let _ = connection.write_all(b"554 no \x1b[31mmail\x07 \xe2\x80\xaehere\r\n");
            }
        });
        let mail = Mail {
            host: "127.0.0.1".to_owned(),
            port: address.port(),
            encryption: Encryption::None,
            allowed: Allowed::new(["127.0.0.1".to_owned()]),
            ..to_example()
        };
        let content = assay_messages::test_message(None);
        let refused = mail
            .send(&crate::targets::tests::limits::outgoing(&content))
            .unwrap_err();
        assert!(refused.to_string().ends_with("no mail here"), "{refused:?}");
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
