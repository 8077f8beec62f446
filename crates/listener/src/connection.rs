//! A client's connection, closed when the client makes no progress.
//!
//! actix-http waits five seconds for the first head of a connection and for the start of each further head. It waits
//! without a limit for the rest of a further head, for the end of an unread body, and for a slow reader. A client that
//! keeps sending without reading answers makes it loop without waiting. This module bounds each of these.

use std::{
    cell::Cell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep_until},
};

use crate::refusal::Refusal;

/// How long a request may take to arrive, from the first byte after the last answer.
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// How long a client may read nothing of its answer.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// The extra time for each byte that the client has read: ten kilobytes a second are fast enough.
const PER_BYTE: Duration = Duration::from_micros(100);
/// How long a refused client may take to read its answer before the connection is closed.
const LINGER_FOR: Duration = Duration::from_secs(1);
/// How long a client may keep the server waiting for one answer, all pauses together.
const TAKEN_IN_ALL: Duration = Duration::from_secs(120);
/// How many bytes are read ahead while a request is being answered. From twice this number on, actix-http loops without
/// waiting.
const AHEAD_BYTES: usize = 64 * 1_024;
/// How much of a refused request's body is read and dropped, so that the client reads the answer.
const REFUSED_BYTES: usize = 1 << 20;
/// How long that lasts at most.
const REFUSED_FOR: Duration = Duration::from_secs(2);

/// A stream to a client. A pending operation fails with [`io::ErrorKind::TimedOut`] when the client exceeds a time
/// limit.
///
/// The stream does not parse HTTP. It knows what was read and written and when, and [`Answering`] says whether the
/// server or the client has to act. One task owns all its operations.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    stream: S,
    socket: fn(&S) -> &TcpStream,
    answering: Answering,
    due: Due,
    /// Fires when a limit ends, or earlier. Created when an operation first has to wait.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Bytes read since the last answer was complete.
    ahead: usize,
    /// Whether reading waits until an answer is written.
    is_held: bool,
    refusing: Refusing,
    patience: Patience,
    /// How much of a refused body was dropped, and when dropping ends.
    dropped: (usize, Option<Instant>),
}

/// The progress of a refusal by the protocol layer.
#[derive(Debug)]
enum Refusing {
    /// No refusal.
    No,
    /// The answer, and how much of it is written.
    Writing(Vec<u8>, usize),
    /// The answer is written. What the client still sends is read and dropped for a moment: closing a connection with
    /// unread data resets it, and the client might lose the answer.
    Lingering(Pin<Box<Sleep>>),
}

/// How long a client has kept the server waiting during an answer.
#[derive(Debug, Default)]
struct Patience {
    /// The number of the answer.
    answer: u64,
    /// The sum of the finished pauses.
    waited: Duration,
    /// The start of the current pause.
    since: Option<Instant>,
}

impl Patience {
    /// The client reads nothing of the answer with this number. Returns the time at which the connection is given up.
    fn waits(&mut self, answer: u64, now: Instant) -> Instant {
        if self.answer != answer {
            *self = Self {
                answer,
                ..Self::default()
            };
        }
        let since = *self.since.get_or_insert(now);
        since + TAKEN_IN_ALL.saturating_sub(self.waited)
    }

    /// The client has read a part of it.
    fn took(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.waited += now.saturating_duration_since(since);
        }
    }
}

/// Whether the server works on a request of a connection, and what happens to the request's body. A handler gets it
/// with `HttpRequest::conn_data`.
#[derive(Debug, Clone, Default)]
pub struct Answering(Rc<Cell<Turn>>);

#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    is_answering: bool,
    /// The number of answers so far.
    number: u64,
    body: Body,
}

/// What happens to a request's body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Body {
    /// There is none, or the handler does not read it.
    #[default]
    Ignored,
    /// The handler reads it and limits its time.
    Read,
    /// The handler answered without reading all of it. The connection is closed soon.
    Refused,
}

impl Answering {
    /// The server starts or ends its work on a request.
    pub(crate) fn set(&self, is_answering: bool) {
        let mut turn = self.0.get();
        turn.is_answering = is_answering;
        turn.number += u64::from(is_answering);
        turn.body = match turn.body {
            Body::Read if !is_answering => Body::Refused,
            Body::Refused if !is_answering => Body::Refused,
            Body::Ignored | Body::Read | Body::Refused => Body::Ignored,
        };
        self.0.set(turn);
    }

    /// The handler reads the body or refuses it. It says so before its first wait, and limits the time of the body
    /// itself. If it answers before [`body_is_read`](Self::body_is_read), the connection is closed after the answer.
    pub fn reads_body(&self) {
        self.set_body(Body::Read);
    }

    /// The handler has read the whole body.
    pub fn body_is_read(&self) {
        self.set_body(Body::Ignored);
    }

    /// The request is refused before its handler runs. The connection is closed soon.
    pub fn refuse_body(&self) {
        self.set_body(Body::Refused);
    }

    /// Whether the handler has not read the whole body yet.
    pub fn is_reading_body(&self) -> bool {
        self.body() == Body::Read
    }

    fn set_body(&self, body: Body) {
        let turn = self.0.get();
        self.0.set(Turn { body, ..turn });
    }

    fn body(&self) -> Body {
        self.0.get().body
    }

    fn is_answering(&self) -> bool {
        self.0.get().is_answering
    }

    /// The number of the current answer, or of the last one.
    fn number(&self) -> u64 {
        self.0.get().number
    }
}

/// What the client has to do, and until when.
#[derive(Debug, Clone, Copy)]
enum Due {
    /// Nothing: all requests are answered and all answers are read.
    Nothing,
    /// Send the rest of a request, while the server does not work on one.
    Rest(Instant),
    /// Read the rest of an answer.
    Taking(Instant),
}

impl<S> Connection<S> {
    /// Wraps `stream`, which writes to this socket.
    pub(crate) fn new(stream: S, socket: fn(&S) -> &TcpStream) -> Self {
        Self {
            stream,
            socket,
            answering: Answering::default(),
            due: Due::Nothing,
            alarm: None,
            ahead: 0,
            is_held: false,
            refusing: Refusing::No,
            patience: Patience::default(),
            dropped: (0, None),
        }
    }

    /// Where the server reports that it works on a request of this connection.
    pub(crate) fn answering(&self) -> Answering {
        self.answering.clone()
    }

    fn is_busy(&self) -> bool {
        self.answering.is_answering() || matches!(self.due, Due::Taking(_))
    }

    /// Whether a client whose body was refused had enough time to read the answer.
    fn has_dropped_enough(&mut self) -> bool {
        let now = Instant::now();
        let by = *self.dropped.1.get_or_insert(now + REFUSED_FOR);
        self.dropped.0 >= REFUSED_BYTES || now >= by
    }

    fn came(&mut self, bytes: usize) {
        self.ahead = self.ahead.saturating_add(bytes);
        if let Due::Nothing = self.due {
            self.due = Due::Rest(Instant::now() + HEAD_WITHIN);
        }
    }

    fn took(&mut self, bytes: usize) {
        let now = Instant::now();
        let by = match self.due {
            Due::Taking(by) => by,
            Due::Nothing | Due::Rest(_) => now + TAKEN_WITHIN,
        };
        self.patience.took(now);
        self.due = Due::Taking(by + PER_BYTE * u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// The client reads nothing at the moment.
    fn takes_nothing(&mut self) {
        let now = Instant::now();
        let by = match self.due {
            Due::Taking(by) => by,
            Due::Nothing | Due::Rest(_) => now + TAKEN_WITHIN,
        };
        self.due = Due::Taking(by.min(self.patience.waits(self.answering.number(), now)));
    }

    fn took_all(&mut self, cx: &Context<'_>) {
        if let Due::Taking(_) = self.due {
            self.patience.took(Instant::now());
            self.due = Due::Nothing;
        }
        if self.is_held && !self.is_busy() {
            self.is_held = false;
            cx.waker().wake_by_ref();
        }
    }

    /// The result of a pending operation: an error after the time limit, otherwise pending with a timer that wakes the
    /// task.
    fn pending<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let by = match self.due {
            Due::Nothing => return Poll::Pending,
            Due::Rest(_) if self.answering.is_answering() => return Poll::Pending,
            Due::Rest(by) | Due::Taking(by) => by,
        };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(by)));
        // Requests nearly always arrive long before: a timer that fires too early is cheaper than one for each request.
        if alarm.deadline() > by {
            alarm.as_mut().reset(by);
        }
        while alarm.as_mut().poll(cx).is_ready() {
            if Instant::now() >= by {
                return Poll::Ready(Err(self.too_late()));
            }
            alarm.as_mut().reset(by);
        }
        Poll::Pending
    }

    fn too_late(&self) -> io::Error {
        if let Due::Taking(_) = self.due
            // Otherwise the kernel would go on sending what it has buffered for this client.
            && let Err(error) = (self.socket)(&self.stream).set_zero_linger()
        {
            return error;
        }
        io::ErrorKind::TimedOut.into()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Writes the answer of a refusal and lets the client read it. Nothing is written after it.
    fn poll_refuse(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Refusing::Writing(answer, written) = &mut self.refusing {
            let rest = answer.get(*written..).unwrap_or_default();
            if rest.is_empty() {
                let ended = ready!(Pin::new(&mut self.stream).poll_shutdown(cx));
                self.refusing = Refusing::Lingering(Box::pin(sleep_until(Instant::now() + LINGER_FOR)));
                ended?;
                break;
            }
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(bytes)) => {
                    *written += bytes;
                    self.took(bytes);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.takes_nothing();
                    return self.pending(cx);
                }
            }
        }
        let Refusing::Lingering(end) = &mut self.refusing else {
            return Poll::Ready(Ok(()));
        };
        let mut dropped = [0; 4_096];
        while end.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut dropped);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(Ok(()) | Err(_)) => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        self.refusing = Refusing::No;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let body = self.answering.body();
        if body == Body::Refused && self.has_dropped_enough() {
            // Reads as if the client had closed the connection, which closes it on this side too.
            return Poll::Ready(Ok(()));
        }
        if !self.is_busy() || body == Body::Read {
            self.ahead = 0;
        } else if self.ahead >= AHEAD_BYTES {
            self.is_held = true;
            return self.pending(cx);
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_pending() {
            return self.pending(cx);
        }
        let bytes = buffer.filled().len().saturating_sub(before);
        if bytes > 0 {
            if body == Body::Refused {
                self.dropped.0 += bytes;
            }
            self.came(bytes);
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut bytes = bytes;
        if let Refusing::No = self.refusing
            && let Some(refusal) = Refusal::at_the_end_of(bytes)
        {
            match bytes.get(..refusal.place) {
                // What was written before the refusal goes first.
                Some(before) if !before.is_empty() => bytes = before,
                _ => self.refusing = Refusing::Writing(refusal.answer, 0),
            }
        }
        if !matches!(self.refusing, Refusing::No) {
            return self.poll_refuse(cx).map_ok(|()| bytes.len());
        }
        match Pin::new(&mut self.stream).poll_write(cx, bytes) {
            Poll::Ready(Ok(written)) => {
                self.took(written);
                Poll::Ready(Ok(written))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                self.takes_nothing();
                self.pending(cx)
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_pending() {
            self.takes_nothing();
            return self.pending(cx);
        }
        self.took_all(cx);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        if ended.is_pending() {
            self.takes_nothing();
            return self.pending(cx);
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_reads_very_slowly_is_disconnected_after_two_minutes_of_waiting() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut patience = Patience::default();
        assert_eq!(patience.waits(1, at(0)), at(120));
        assert_eq!(patience.waits(1, at(5)), at(120), "the same pause");
        patience.took(at(20));
        // The server worked in between.
        assert_eq!(patience.waits(1, at(100)), at(200));
        patience.took(at(199));
        assert_eq!(patience.waits(1, at(300)), at(301));
        // Each answer has its own count of pauses.
        assert_eq!(patience.waits(2, at(300)), at(420));
    }
}
