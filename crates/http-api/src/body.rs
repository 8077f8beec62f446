//! Bodies of responses. A body reserves memory until the client has received it.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use actix_web::{
    body::{BodySize, MessageBody},
    web::Bytes,
};

use crate::{answer::RestOfBody, error::ApiError, memory::Reservation};

/// Bytes that are passed to the connection at a time. The reservation ends with the last piece, so only this piece and
/// the connection's buffer are not counted.
const PIECE: usize = 32 << 10;

/// A whole body.
pub(crate) struct WholeBody {
    rest: Bytes,
    _memory: Reservation,
}

impl WholeBody {
    pub(crate) fn new(bytes: Vec<u8>, memory: Reservation) -> Self {
        Self {
            rest: bytes.into(),
            _memory: memory,
        }
    }
}

impl MessageBody for WholeBody {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(u64::try_from(self.rest.len()).unwrap_or(u64::MAX))
    }

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = PIECE.min(self.rest.len());
        Poll::Ready(Some(Ok(self.rest.split_to(piece))))
    }
}

/// A built part of a body, and the rest.
pub(crate) type BuiltPart = Result<(Vec<u8>, Option<RestOfBody>), ApiError>;

/// A body that is built in parts, each after the client has received the previous one. If building a part fails, the
/// connection closes, so that a client cannot mistake half an answer for a whole one.
pub(crate) struct BodyInParts<F> {
    piece: Bytes,
    state: State,
    build: F,
    _memory: Reservation,
}

enum State {
    /// No part was requested yet.
    Waiting(RestOfBody),
    Building(Pin<Box<dyn Future<Output = BuiltPart>>>),
    Over,
}

impl<F: Fn(RestOfBody) -> Pin<Box<dyn Future<Output = BuiltPart>>>> BodyInParts<F> {
    /// A body with this first part. `build` builds the rest.
    pub(crate) fn new(first: Vec<u8>, rest: Option<RestOfBody>, build: F, memory: Reservation) -> Self {
        Self {
            piece: first.into(),
            state: rest.map_or(State::Over, State::Waiting),
            build,
            _memory: memory,
        }
    }
}

impl<F: Fn(RestOfBody) -> Pin<Box<dyn Future<Output = BuiltPart>>> + Unpin> MessageBody for BodyInParts<F> {
    type Error = ApiError;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ApiError>>> {
        loop {
            if !self.piece.is_empty() {
                let piece = PIECE.min(self.piece.len());
                return Poll::Ready(Some(Ok(self.piece.split_to(piece))));
            }
            match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return Poll::Ready(None),
                State::Waiting(rest) => self.state = State::Building((self.build)(rest)),
                State::Building(mut building) => match building.as_mut().poll(cx) {
                    Poll::Pending => {
                        self.state = State::Building(building);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Ok((piece, rest))) => {
                        self.piece = piece.into();
                        self.state = rest.map_or(State::Over, State::Waiting);
                    }
                },
            }
        }
    }
}
