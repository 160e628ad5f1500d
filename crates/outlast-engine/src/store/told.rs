//! What a store says to those who ask often: at once where it can, so that nobody pays for waiting.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use super::{Reason, StoreError};

/// The answer of a store, now or later. A write may take place whether or not anybody waits for its answer.
#[must_use = "an answer says whether the deed was done"]
pub struct Told<'a, T>(Kind<'a, T>);

enum Kind<'a, T> {
    /// Taken out when it is read.
    Now(Option<Result<T, StoreError>>),
    /// Somebody else sends it.
    Sent(oneshot::Receiver<Result<T, StoreError>>),
    Later(Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>),
}

impl<'a, T> Told<'a, T> {
    /// The answer is there.
    pub fn now(answer: Result<T, StoreError>) -> Self {
        Self(Kind::Now(Some(answer)))
    }

    /// The answer will come this way. A sender that goes away without a word has closed the store.
    pub fn sent(answer: oneshot::Receiver<Result<T, StoreError>>) -> Self {
        Self(Kind::Sent(answer))
    }

    /// The answer takes this work.
    pub fn later(work: impl Future<Output = Result<T, StoreError>> + Send + 'a) -> Self {
        Self(Kind::Later(Box::pin(work)))
    }

    /// The answer if it is there, or else the wait for it.
    pub(crate) fn at_once(self) -> Result<Result<T, StoreError>, Self> {
        match self.0 {
            Kind::Now(Some(answer)) => Ok(answer),
            other => Err(Self(other)),
        }
    }
}

impl<T: Unpin> Future for Told<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Kind::Now(answer) => match answer.take() {
                Some(answer) => Poll::Ready(answer),
                // It was read before: nothing more will come.
                None => Poll::Pending,
            },
            Kind::Sent(answer) => {
                let sent = ready!(Pin::new(answer).poll(cx));
                Poll::Ready(sent.unwrap_or_else(|_| Err(closed())))
            }
            Kind::Later(work) => work.as_mut().poll(cx),
        }
    }
}

/// The answer of a store that was closed.
fn closed() -> StoreError {
    StoreError::Unavailable(Reason::new("it was closed"))
}
