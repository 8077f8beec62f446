//! A receiver of mail: an SMTP server that keeps what it gets.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
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
    mails: Arc<Mutex<Vec<String>>>,
}

impl SmtpReceiver {
    /// Starts it.
    #[expect(
        clippy::new_without_default,
        reason = "a default value should not open a port"
    )]
    pub fn new() -> Self {
        Self::start(None)
    }

    /// The same over TLS from the beginning of each connection.
    pub fn encrypted(tls: Arc<ServerConfig>) -> Self {
        Self::start(Some(tls))
    }

    fn start(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mails = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&mails);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // A client may end the connection at any time.
                let _ = serve(accept(connection, tls.as_ref()), &kept);
            }
        });
        Self { port, mails }
    }

    /// The mails so far, as they were sent, with their envelopes' receivers as first lines.
    pub fn mails(&self) -> Vec<String> {
        self.mails.lock().unwrap().clone()
    }
}

fn serve(connection: Box<dyn Connection>, mails: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    reader.get_mut().write_all(b"220 receiver ESMTP\r\n")?;
    let mut mail = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let command = line.trim_end().to_owned();
        let answer = match command.split([' ', ':']).next().unwrap() {
            "EHLO" => "250-receiver\r\n250 8BITMIME\r\n",
            "RCPT" => {
                mail += &format!("{command}\n");
                "250 ok\r\n"
            }
            "DATA" => {
                reader.get_mut().write_all(b"354 go on\r\n")?;
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line)? == 0 || line == ".\r\n" {
                        break;
                    }
                    mail += &line.replace("\r\n", "\n");
                }
                mails.lock().unwrap().push(std::mem::take(&mut mail));
                "250 kept\r\n"
            }
            "QUIT" => {
                reader.get_mut().write_all(b"221 bye\r\n")?;
                return Ok(());
            }
            _ => "250 ok\r\n",
        };
        reader.get_mut().write_all(answer.as_bytes())?;
    }
}
