//! A receiver of mail: an SMTP server that keeps what it gets.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use rustls::ServerConfig;

use crate::authority::{Connection, accept};

/// An SMTP server on a port of its own, until the process ends.
#[derive(Debug)]
pub struct SmtpReceiver {
    /// Its port on 127.0.0.1.
    pub port: u16,
    kept: Arc<Mutex<Kept>>,
}

/// What it got, and how it answers.
#[derive(Debug, Default)]
struct Kept {
    mails: Vec<String>,
    in_clear: Vec<String>,
    loses_answers: bool,
}

/// How connections are encrypted.
enum Encryption {
    None,
    FromTheBeginning(Arc<ServerConfig>),
    AfterStartTls(Arc<ServerConfig>),
}

impl SmtpReceiver {
    /// Starts it.
    #[expect(
        clippy::new_without_default,
        reason = "a default value should not open a port"
    )]
    pub fn new() -> Self {
        Self::start(Encryption::None)
    }

    /// The same over TLS from the beginning of each connection.
    pub fn encrypted(tls: Arc<ServerConfig>) -> Self {
        Self::start(Encryption::FromTheBeginning(tls))
    }

    /// The same over TLS after the command `STARTTLS`.
    pub fn with_starttls(tls: Arc<ServerConfig>) -> Self {
        Self::start(Encryption::AfterStartTls(tls))
    }

    fn start(encryption: Encryption) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let kept = Arc::new(Mutex::new(Kept::default()));
        let keeping = Arc::clone(&kept);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // A client may end the connection at any time.
                let _ = serve(connection, &encryption, &keeping);
            }
        });
        Self { port, kept }
    }

    /// The mails so far, as they were sent, with their envelopes' receivers as first lines.
    pub fn mails(&self) -> Vec<String> {
        self.kept.lock().unwrap().mails.clone()
    }

    /// The commands so far that were not encrypted.
    pub fn in_clear(&self) -> Vec<String> {
        self.kept.lock().unwrap().in_clear.clone()
    }

    /// From now on it keeps each mail and closes the connection without an answer, or answers again.
    pub fn lose_answers(&self, loses: bool) {
        self.kept.lock().unwrap().loses_answers = loses;
    }
}

fn serve(connection: TcpStream, encryption: &Encryption, kept: &Mutex<Kept>) -> io::Result<()> {
    let (from_the_beginning, later) = match encryption {
        Encryption::None => (None, None),
        Encryption::FromTheBeginning(tls) => (Some(tls), None),
        Encryption::AfterStartTls(tls) => (None, Some(tls)),
    };
    let mut connection = accept(connection, from_the_beginning);
    connection.write_all(b"220 receiver ESMTP\r\n")?;
    let mut session = Session {
        offers_tls: later.is_some(),
        is_clear: from_the_beginning.is_none(),
        kept,
    };
    if let Some(connection) = session.run(connection)? {
        session.offers_tls = false;
        session.is_clear = false;
        session.run(accept(connection, later))?;
    }
    Ok(())
}

struct Session<'a> {
    offers_tls: bool,
    is_clear: bool,
    kept: &'a Mutex<Kept>,
}

impl Session<'_> {
    /// Serves a connection to its end. Returns it if the client begins to encrypt.
    fn run(&self, connection: Box<dyn Connection>) -> io::Result<Option<Box<dyn Connection>>> {
        let mut reader = BufReader::new(connection);
        let mut mail = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let command = line.trim_end().to_owned();
            if self.is_clear {
                self.kept.lock().unwrap().in_clear.push(command.clone());
            }
            let answer = match command.split([' ', ':']).next().unwrap() {
                "EHLO" if self.offers_tls => "250-receiver\r\n250-STARTTLS\r\n250 8BITMIME\r\n",
                "EHLO" => "250-receiver\r\n250 8BITMIME\r\n",
                "STARTTLS" if self.offers_tls => {
                    reader.get_mut().write_all(b"220 go on\r\n")?;
                    return Ok(Some(reader.into_inner()));
                }
                "RCPT" => {
                    mail += &format!("{command}\n");
                    "250 ok\r\n"
                }
                "DATA" => {
                    reader.get_mut().write_all(b"354 go on\r\n")?;
                    loop {
                        let mut line = String::new();
                        if reader.read_line(&mut line)? == 0 {
                            // Half a mail is none.
                            return Ok(None);
                        }
                        if line == ".\r\n" {
                            break;
                        }
                        mail += &line.replace("\r\n", "\n");
                    }
                    let mut kept = self.kept.lock().unwrap();
                    kept.mails.push(std::mem::take(&mut mail));
                    if kept.loses_answers {
                        return Ok(None);
                    }
                    "250 kept\r\n"
                }
                "QUIT" => {
                    reader.get_mut().write_all(b"221 bye\r\n")?;
                    return Ok(None);
                }
                _ => "250 ok\r\n",
            };
            reader.get_mut().write_all(answer.as_bytes())?;
        }
    }
}
