//! A receiver of mail: an SMTP server without encryption that keeps what it gets.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mails = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&mails);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // A client may end the connection at any time.
                let _ = serve(connection, &kept);
            }
        });
        Self { port, mails }
    }

    /// The mails so far, as they were sent, with their envelopes' receivers as first lines.
    pub fn mails(&self) -> Vec<String> {
        self.mails.lock().unwrap().clone()
    }
}

fn serve(connection: TcpStream, mails: &Mutex<Vec<String>>) -> std::io::Result<()> {
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
