//! A client's connection, closed when the client makes no progress.
//!
//! actix-http waits five seconds for the first head of a connection and for the start of each further head. It waits
//! without a limit for the rest of a further head, for the end of an unread body, and for a slow reader. A client that
//! keeps sending without reading answers makes it loop without waiting. This module bounds each of these.

use std::{
    cell::{Cell, RefCell},
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};

use actix_web::{HttpResponse, http::ConnectionType};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep_until},
};

use crate::refusal::{self, Refusal};

/// How long a request may take to arrive, from the first byte after the last answer.
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// How long a client may pause before its answer counts as not read.
const READ_WITHIN: Duration = Duration::from_secs(30);
/// The extra time for each byte that the client has read: ten kilobytes a second are fast enough.
const PER_BYTE: Duration = Duration::from_micros(100);
/// How long a refused client may take to read its answer before the connection is closed.
const LINGER_FOR: Duration = Duration::from_secs(1);
/// How long all pauses of a client during one answer may take together.
const READ_IN_TOTAL: Duration = Duration::from_secs(120);
/// How many bytes are read ahead while a request is being answered. From twice this number on, actix-http loops without
/// waiting.
const AHEAD_BYTES: usize = 64 * 1_024;
/// How much of a refused request's body is read and dropped, so that the client reads the answer.
const REFUSED_BYTES: usize = 1 << 20;
/// How long a refused request's body is read and dropped at most.
const REFUSED_FOR: Duration = Duration::from_secs(2);

/// A stream to a client. A pending operation fails with [`io::ErrorKind::TimedOut`] when the client exceeds a time
/// limit.
///
/// The stream does not parse HTTP. It records when bytes were read and written. [`Answering`] records whether the
/// server or the client has to act next. One task runs all operations.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    stream: Rc<RefCell<S>>,
    socket: fn(&S) -> &TcpStream,
    answering: Answering,
    deadline: Deadline,
    /// Fires when a limit ends, or earlier. Created when an operation first has to wait.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Bytes read since the last answer was complete.
    ahead: usize,
    /// Whether reading waits until an answer is written.
    is_held: bool,
    refusal: RefusalProgress,
    read_pauses: ReadPauses,
    /// How much of a refused body was dropped, and when dropping ends.
    dropped: (usize, Option<Instant>),
}

/// The progress of a refusal by the protocol layer.
#[derive(Debug)]
enum RefusalProgress {
    /// No refusal.
    No,
    /// The answer, and how much of it is written.
    Writing(Vec<u8>, usize),
    /// The answer is written. Bytes that the client still sends are dropped for a moment. Closing a connection with
    /// unread data would reset it, and the client might lose the answer.
    Lingering(Pin<Box<Sleep>>),
}

/// How long a client has kept the server waiting during an answer.
#[derive(Debug, Default)]
struct ReadPauses {
    /// The number of the answer.
    answer: u64,
    /// The sum of the finished pauses.
    waited: Duration,
    /// The start of the current pause.
    since: Option<Instant>,
}

impl ReadPauses {
    /// Starts or continues a pause in the answer with this number. Returns the time at which the connection is closed.
    fn pause(&mut self, answer: u64, now: Instant) -> Instant {
        if self.answer != answer {
            *self = Self {
                answer,
                ..Self::default()
            };
        }
        let since = *self.since.get_or_insert(now);
        since + READ_IN_TOTAL.saturating_sub(self.waited)
    }

    /// Ends the pause, because the client has read a part of the answer.
    fn resume(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.waited += now.saturating_duration_since(since);
        }
    }
}

/// Whether the server works on a request of a connection, and what happens to the request's body. A handler gets it
/// with `HttpRequest::conn_data`.
#[derive(Debug, Clone, Default)]
pub struct Answering(Rc<Cell<RequestState>>);

#[derive(Debug, Clone, Copy, Default)]
struct RequestState {
    is_answering: bool,
    /// The number of answers so far.
    number: u64,
    /// The number of the last answer of which bytes were sent.
    sent: u64,
    end: End,
    body: Body,
}

/// How far the client's side of a connection is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum End {
    /// The client may send more.
    #[default]
    Open,
    /// The client closed its sending side.
    Closed,
    /// The client exceeded a time limit.
    Overdue,
}

/// The handling of a request's body.
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
    /// Marks the start or the end of the server's work on a request.
    pub(crate) fn set(&self, is_answering: bool) {
        let mut state = self.0.get();
        state.is_answering = is_answering;
        state.number += u64::from(is_answering);
        state.body = match state.body {
            Body::Read if !is_answering => Body::Refused,
            Body::Refused if !is_answering => Body::Refused,
            Body::Ignored | Body::Read | Body::Refused => Body::Ignored,
        };
        self.0.set(state);
    }

    /// Marks that the handler reads the body or refuses it. The handler must call this before its first wait, and must
    /// limit the time of the body itself. If it answers before it calls [`body_is_read`](Self::body_is_read), the
    /// connection is closed after the answer.
    pub fn reads_body(&self) {
        self.set_body(Body::Read);
    }

    /// Marks that the handler has read the whole body.
    pub fn body_is_read(&self) {
        self.set_body(Body::Ignored);
    }

    /// Marks that the request is refused before its handler runs. The connection is closed soon.
    pub fn refuse_body(&self) {
        self.set_body(Body::Refused);
    }

    /// Closes the connection after this response if the handler has not read the whole body.
    pub fn close_unless_read(&self, response: &mut HttpResponse) {
        if self.body() == Body::Read {
            response.head_mut().set_connection_type(ConnectionType::Close);
        }
    }

    fn set_body(&self, body: Body) {
        let state = self.0.get();
        self.0.set(RequestState { body, ..state });
    }

    fn body(&self) -> Body {
        self.0.get().body
    }

    fn is_answering(&self) -> bool {
        self.0.get().is_answering
    }

    /// Records that bytes of the current answer were sent.
    fn note_sent(&self) {
        let state = self.0.get();
        self.0.set(RequestState {
            sent: state.number,
            ..state
        });
    }

    /// Records that the connection ends by its client.
    fn note_end(&self, end: End) {
        self.0.set(RequestState { end, ..self.0.get() });
    }

    /// Whether the protocol layer dropped the connection for its request's body, before a byte of the answer was sent.
    fn has_broken_body(&self) -> bool {
        let state = self.0.get();
        let is_broken = match state.end {
            End::Open => true,
            End::Closed => state.body != Body::Ignored,
            End::Overdue => false,
        };
        is_broken && state.sent < state.number
    }

    /// The number of the current answer, or of the last one.
    fn number(&self) -> u64 {
        self.0.get().number
    }
}

/// The client's next step, and the time until which it must be taken.
#[derive(Debug, Clone, Copy)]
enum Deadline {
    /// No step is due: all requests are answered and all answers are read.
    None,
    /// Send the rest of a request, while the server does not work on one.
    Rest(Instant),
    /// Read the rest of an answer.
    ReadAnswer(Instant),
}

impl<S> Connection<S> {
    /// Wraps `stream`, which writes to this socket.
    pub(crate) fn new(stream: S, socket: fn(&S) -> &TcpStream) -> Self {
        Self {
            stream: Rc::new(RefCell::new(stream)),
            socket,
            answering: Answering::default(),
            deadline: Deadline::None,
            alarm: None,
            ahead: 0,
            is_held: false,
            refusal: RefusalProgress::No,
            read_pauses: ReadPauses::default(),
            dropped: (0, None),
        }
    }

    /// The stream, for an answer after the protocol layer has dropped the connection.
    pub(crate) fn unanswered(&self) -> Unanswered<S> {
        Unanswered {
            stream: Rc::clone(&self.stream),
            answering: self.answering.clone(),
        }
    }

    /// The handle by which the server marks that it works on a request of this connection.
    pub(crate) fn answering(&self) -> Answering {
        self.answering.clone()
    }

    fn is_busy(&self) -> bool {
        self.answering.is_answering() || matches!(self.deadline, Deadline::ReadAnswer(_))
    }

    /// Whether a client whose body was refused had enough time to read the answer.
    fn has_dropped_the_body(&mut self) -> bool {
        let now = Instant::now();
        let by = *self.dropped.1.get_or_insert(now + REFUSED_FOR);
        self.dropped.0 >= REFUSED_BYTES || now >= by
    }

    fn note_received(&mut self, bytes: usize) {
        self.ahead = self.ahead.saturating_add(bytes);
        if let Deadline::None = self.deadline {
            self.deadline = Deadline::Rest(Instant::now() + HEAD_WITHIN);
        }
    }

    fn note_sent(&mut self, bytes: usize) {
        let now = Instant::now();
        let by = match self.deadline {
            Deadline::ReadAnswer(by) => by,
            Deadline::None | Deadline::Rest(_) => now + READ_WITHIN,
        };
        self.read_pauses.resume(now);
        self.deadline = Deadline::ReadAnswer(by + PER_BYTE * u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Records that the client currently reads nothing.
    fn note_blocked(&mut self) {
        let now = Instant::now();
        let by = match self.deadline {
            Deadline::ReadAnswer(by) => by,
            Deadline::None | Deadline::Rest(_) => now + READ_WITHIN,
        };
        self.deadline = Deadline::ReadAnswer(by.min(self.read_pauses.pause(self.answering.number(), now)));
    }

    fn note_all_sent(&mut self, cx: &Context<'_>) {
        if let Deadline::ReadAnswer(_) = self.deadline {
            self.read_pauses.resume(Instant::now());
            self.deadline = Deadline::None;
        }
        if self.is_held && !self.is_busy() {
            self.is_held = false;
            cx.waker().wake_by_ref();
        }
    }

    /// The result of a pending operation: an error after the time limit, otherwise pending with a timer that wakes the
    /// task.
    fn pending<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let by = match self.deadline {
            Deadline::None => return Poll::Pending,
            Deadline::Rest(_) if self.answering.is_answering() => return Poll::Pending,
            Deadline::Rest(by) | Deadline::ReadAnswer(by) => by,
        };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(by)));
        // Requests nearly always arrive long before the limit. An early wake-up is cheaper than a new timer for each
        // request.
        if alarm.deadline() > by {
            alarm.as_mut().reset(by);
        }
        while alarm.as_mut().poll(cx).is_ready() {
            if Instant::now() >= by {
                return Poll::Ready(Err(self.time_out()));
            }
            alarm.as_mut().reset(by);
        }
        Poll::Pending
    }

    fn time_out(&self) -> io::Error {
        self.answering.note_end(End::Overdue);
        if let Deadline::ReadAnswer(_) = self.deadline
            // Otherwise the kernel would continue to send its buffered bytes to this client.
            && let Err(error) = (self.socket)(&self.stream.borrow()).set_zero_linger()
        {
            return error;
        }
        io::ErrorKind::TimedOut.into()
    }
}

/// The stream of a connection that may end without an answer.
pub(crate) struct Unanswered<S> {
    stream: Rc<RefCell<S>>,
    answering: Answering,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Unanswered<S> {
    /// Answers a request whose body broke off. actix-http takes a broken chunk for a lost connection and drops it.
    pub(crate) async fn refuse(self) {
        let Some(stream) = Rc::into_inner(self.stream).filter(|_| self.answering.has_broken_body()) else {
            return;
        };
        let mut stream = stream.into_inner();
        let exchange = async move {
            stream.write_all(&refusal::of_broken_body()).await?;
            stream.shutdown().await?;
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
        };
        // The client may be gone.
        let _answered = tokio::time::timeout(LINGER_FOR, exchange).await;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Writes the answer of a refusal as the last bytes of the connection, and leaves the client time to read it.
    fn poll_refuse(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let RefusalProgress::Writing(answer, written) = &mut self.refusal {
            let rest = answer.get(*written..).unwrap_or_default();
            if rest.is_empty() {
                let shutdown = ready!(Pin::new(&mut *self.stream.borrow_mut()).poll_shutdown(cx));
                self.refusal = RefusalProgress::Lingering(Box::pin(sleep_until(Instant::now() + LINGER_FOR)));
                shutdown?;
                break;
            }
            let sent = Pin::new(&mut *self.stream.borrow_mut()).poll_write(cx, rest);
            match sent {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(bytes)) => {
                    *written += bytes;
                    self.note_sent(bytes);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.note_blocked();
                    return self.pending(cx);
                }
            }
        }
        let RefusalProgress::Lingering(end) = &mut self.refusal else {
            return Poll::Ready(Ok(()));
        };
        let mut dropped = [0; 4_096];
        while end.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut dropped);
            match Pin::new(&mut *self.stream.borrow_mut()).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(Ok(()) | Err(_)) => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        self.refusal = RefusalProgress::No;
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
        if body == Body::Refused && self.has_dropped_the_body() {
            // Reads as if the client had closed the connection, which closes it on this side too.
            self.answering.note_end(End::Overdue);
            return Poll::Ready(Ok(()));
        }
        if !self.is_busy() || body == Body::Read {
            self.ahead = 0;
        } else if self.ahead >= AHEAD_BYTES {
            self.is_held = true;
            return self.pending(cx);
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut *self.stream.borrow_mut()).poll_read(cx, buffer);
        if read.is_pending() {
            return self.pending(cx);
        }
        let bytes = buffer.filled().len().saturating_sub(before);
        if bytes == 0 {
            self.answering.note_end(End::Closed);
        } else {
            if body == Body::Refused {
                self.dropped.0 += bytes;
            }
            self.note_received(bytes);
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut bytes = bytes;
        if let RefusalProgress::No = self.refusal
            && let Some(refusal) = Refusal::at_the_end_of(bytes)
        {
            match bytes.get(..refusal.place) {
                // Earlier answers are written before the refusal.
                Some(before) if !before.is_empty() => bytes = before,
                _ => self.refusal = RefusalProgress::Writing(refusal.answer, 0),
            }
        }
        if !matches!(self.refusal, RefusalProgress::No) {
            return self.poll_refuse(cx).map_ok(|()| bytes.len());
        }
        let sent = Pin::new(&mut *self.stream.borrow_mut()).poll_write(cx, bytes);
        match sent {
            Poll::Ready(Ok(written)) => {
                self.note_sent(written);
                if !bytes.starts_with(b"HTTP/1.1 100 ") {
                    self.answering.note_sent();
                }
                Poll::Ready(Ok(written))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                self.note_blocked();
                self.pending(cx)
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut *self.stream.borrow_mut()).poll_flush(cx);
        if flushed.is_pending() {
            self.note_blocked();
            return self.pending(cx);
        }
        self.note_all_sent(cx);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shutdown = Pin::new(&mut *self.stream.borrow_mut()).poll_shutdown(cx);
        if shutdown.is_pending() {
            self.note_blocked();
            return self.pending(cx);
        }
        shutdown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_reads_very_slowly_is_disconnected_after_two_minutes_of_waiting() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut read_pauses = ReadPauses::default();
        assert_eq!(read_pauses.pause(1, at(0)), at(120));
        assert_eq!(read_pauses.pause(1, at(5)), at(120), "the same pause");
        read_pauses.resume(at(20));
        // The time between two pauses, in which the server works, does not count.
        assert_eq!(read_pauses.pause(1, at(100)), at(200));
        read_pauses.resume(at(199));
        assert_eq!(read_pauses.pause(1, at(300)), at(301));
        // Pauses are summed for each answer separately.
        assert_eq!(read_pauses.pause(2, at(300)), at(420));
    }
}
