//! A pseudo-terminal, so that a program behaves as on a terminal.

use std::{
    fs::File,
    io::{Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// The time limit for each expected output.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program on a terminal.
pub struct Session {
    child: Child,
    terminal: File,
    shown: Receiver<Vec<u8>>,
    output: Vec<u8>,
}

/// The streams that are connected to the terminal. The others stay those of the command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Input, output and errors.
    All,
    /// Standard error only.
    Error,
}

impl Session {
    /// Runs a command on a terminal with this number of columns.
    pub fn start(mut command: Command, columns: u16, streams: Streams) -> Self {
        let (terminal, other) = open(columns);
        let copy = || Stdio::from(other.try_clone().unwrap());
        command.env("TERM", "xterm-256color").stderr(copy());
        if streams == Streams::All {
            command.stdin(copy()).stdout(copy());
        }
        let child = command.spawn().unwrap();
        // The command still holds the other end. Reading ends only after the program alone holds and closes it.
        drop((command, other));
        let (send, shown) = channel();
        let mut reader = terminal.try_clone().unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading a terminal fails once its other end is closed.
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if send.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            terminal,
            shown,
            output: Vec::new(),
        }
    }

    /// Waits until the terminal shows a text.
    pub fn until(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.text().contains(text) {
            let remaining = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(remaining) {
                Ok(bytes) => self.output.extend(bytes),
                Err(error) => panic!("{text:?} was not shown ({error}): {}", self.text()),
            }
        }
    }

    /// Types a line.
    pub fn answer(&mut self, line: &str) {
        writeln!(self.terminal, "{line}").unwrap();
    }

    /// The program's standard input, if that is not the terminal.
    pub fn stdin(&mut self) -> impl Write + use<> {
        self.child.stdin.take().unwrap()
    }

    /// Waits for the end. Returns the exit status and the whole output.
    pub fn end(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(remaining) {
                Ok(bytes) => self.output.extend(bytes),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("it did not end ({error}): {}", self.text()),
            }
        }
        (self.child.wait().unwrap(), self.text())
    }

    /// The output until now. A read may end inside a character, so all bytes are decoded together.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The program has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both ends of a new terminal.
fn open(columns: u16) -> (File, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    // Not as this process's controlling terminal.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(path, flags, Mode::empty()).unwrap();
    let size = Winsize {
        ws_row: 40,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(theirs.as_fd(), size).unwrap();
    (File::from(ours), theirs)
}
