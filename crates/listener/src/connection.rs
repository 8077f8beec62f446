//! A client's connection that ends where the client does not move on.
//!
//! actix-http waits five seconds for the first head of a connection and for the begin of every further one. It waits without end
//! for the rest of a further head, for the end of a body that nobody reads, and for a client to take its answer; and a client that
//! sends more and more without taking an answer keeps it running in circles. Here each of them has a bound.

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

/// How long a request may take to arrive, counted from the first byte that came after the last answer.
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// How long a client may take none of its answer.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// What each byte that it took adds to that: ten kilobytes a second are quick enough.
const PER_BYTE: Duration = Duration::from_micros(100);
/// How long a client that was refused may take to read its answer before the connection is closed.
const LINGER_FOR: Duration = Duration::from_secs(1);
/// How long a client may keep the server waiting to take one answer, all pauses together.
const TAKEN_IN_ALL: Duration = Duration::from_secs(120);
/// How much is read beyond a request that is being answered, in bytes. actix-http runs in circles from twice as much on.
const AHEAD_BYTES: usize = 64 * 1_024;
/// How much of a body is read and dropped after the request was refused, so that the client reads the answer.
const REFUSED_BYTES: usize = 1 << 20;
/// For how long.
const REFUSED_FOR: Duration = Duration::from_secs(2);

/// A stream to a client, of which a pending operation fails with [`io::ErrorKind::TimedOut`] once the client is too late.
///
/// It knows nothing of HTTP: only what was read and written, and when, and from [`Answering`] whose turn it is. All its operations
/// belong to one task.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    stream: S,
    socket: fn(&S) -> &TcpStream,
    answering: Answering,
    due: Due,
    /// Rings when something is due, or before; made when something is waited for.
    alarm: Option<Pin<Box<Sleep>>>,
    /// How many bytes were read since there was nothing to answer.
    ahead: usize,
    /// Whether reading waits for an answer to be given.
    is_held: bool,
    refusing: Refusing,
    patience: Patience,
    /// How much of a refused body was dropped, and until when more of it is.
    dropped: (usize, Option<Instant>),
}

/// How far a refusal of the protocol layer has come.
#[derive(Debug)]
enum Refusing {
    /// There is none.
    No,
    /// The answer, and how much of it is written.
    Writing(Vec<u8>, usize),
    /// The answer is written. What the client still sends is read and dropped for a moment: a connection that is closed with
    /// unread data is reset, and the client might lose the answer.
    Lingering(Pin<Box<Sleep>>),
}

/// How long a client has kept the server waiting to take an answer.
#[derive(Debug, Default)]
struct Patience {
    /// The number of the answer.
    answer: u64,
    /// In pauses that are over.
    waited: Duration,
    /// When the present pause began.
    since: Option<Instant>,
}

impl Patience {
    /// The client does not take more of the answer of this number now. Returns when it is given up.
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

    /// The client took some of it.
    fn took(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.waited += now.saturating_duration_since(since);
        }
    }
}

/// Whether the server is at work on a request of a connection, and what becomes of the request's body. A handler finds it
/// with `HttpRequest::conn_data`.
#[derive(Debug, Clone, Default)]
pub struct Answering(Rc<Cell<Turn>>);

#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    is_answering: bool,
    /// Counts the answers.
    number: u64,
    body: Body,
}

/// What becomes of a request's body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Body {
    /// The request has none, or its handler does not read it.
    #[default]
    Ignored,
    /// The handler reads it and bounds its time.
    Read,
    /// The handler answered without reading all of it. The connection ends soon.
    Refused,
}

impl Answering {
    /// The server begins its work, or ends it.
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

    /// The handler reads the body, or refuses it. It says so before its first wait, and bounds the time of the body itself.
    /// Where it answers before [`body_is_read`](Self::body_is_read), the connection is closed after the answer.
    pub fn reads_body(&self) {
        self.set_body(Body::Read);
    }

    /// The handler has read the whole body.
    pub fn body_is_read(&self) {
        self.set_body(Body::Ignored);
    }

    /// The request is refused before its handler is called. The connection ends soon.
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

    /// The number of the present answer, or of the last one.
    fn number(&self) -> u64 {
        self.0.get().number
    }
}

/// What the client owes, and until when.
#[derive(Debug, Clone, Copy)]
enum Due {
    /// Nothing: all that came is answered, and the answers are taken.
    Nothing,
    /// The rest of what it began to send, while the server is not at work on it.
    Rest(Instant),
    /// To take the rest of an answer.
    Taking(Instant),
}

impl<S> Connection<S> {
    /// A connection of which nothing is due, over a stream that ends in this socket.
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

    /// Where the server says that it is at work on a request of this connection.
    pub(crate) fn answering(&self) -> Answering {
        self.answering.clone()
    }

    fn is_busy(&self) -> bool {
        self.answering.is_answering() || matches!(self.due, Due::Taking(_))
    }

    /// Whether a client whose body was refused had its chance to read the answer.
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

    /// The client takes nothing at the moment.
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

    /// What a pending operation answers: an error once the client is too late, of which the task is told.
    fn pending<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let by = match self.due {
            Due::Nothing => return Poll::Pending,
            Due::Rest(_) if self.answering.is_answering() => return Poll::Pending,
            Due::Rest(by) | Due::Taking(by) => by,
        };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(by)));
        // Nearly always all is there long before: an alarm that rings too early is cheaper than one set for each request.
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
            // Else the system would go on for this client with what it took over.
            && let Err(error) = (self.socket)(&self.stream).set_zero_linger()
        {
            return error;
        }
        io::ErrorKind::TimedOut.into()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Writes the answer of a refusal, and lets the client read it. Nothing is written after it.
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
            // As if the client had ended the connection, which ends it here too.
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
                // What comes before it first.
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
    fn a_client_that_takes_an_answer_drop_by_drop_is_given_up_after_two_minutes_of_waiting() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut patience = Patience::default();
        assert_eq!(patience.waits(1, at(0)), at(120));
        assert_eq!(patience.waits(1, at(5)), at(120), "the same pause");
        patience.took(at(20));
        // The server was at work in between.
        assert_eq!(patience.waits(1, at(100)), at(200));
        patience.took(at(199));
        assert_eq!(patience.waits(1, at(300)), at(301));
        // Each answer begins anew.
        assert_eq!(patience.waits(2, at(300)), at(420));
    }
}
