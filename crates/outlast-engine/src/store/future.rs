//! The reply of a store: ready, or a boxed future.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::{Reason, StoreError};

/// The reply of a store to one operation. A write may take place whether or not its reply is
/// awaited.
#[must_use = "the reply says whether the operation took place"]
pub struct StoreFuture<'a, T>(FutureState<'a, T>);

enum FutureState<'a, T> {
    /// `None` once it was polled. No allocation and no wake-up is needed for it.
    Ready(Option<Result<T, StoreError>>),
    Boxed(Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>),
}

impl<'a, T> StoreFuture<'a, T> {
    /// A reply that is known already.
    pub fn ready(reply: Result<T, StoreError>) -> Self {
        Self(FutureState::Ready(Some(reply)))
    }

    /// A reply that this future computes.
    pub fn boxed(work: impl Future<Output = Result<T, StoreError>> + Send + 'a) -> Self {
        Self(FutureState::Boxed(Box::pin(work)))
    }
}

impl<T: Send + 'static> StoreFuture<'static, T> {
    /// A reply that another thread sends. A sender dropped without a reply means that the store was
    /// closed.
    pub fn channel(reply: oneshot::Receiver<Result<T, StoreError>>) -> Self {
        Self::boxed(async move { reply.await.unwrap_or_else(|_| Err(closed())) })
    }
}

impl<T: Unpin> Future for StoreFuture<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            FutureState::Ready(reply) => {
                Poll::Ready(reply.take().expect("`StoreFuture` polled after completion"))
            }
            FutureState::Boxed(work) => work.as_mut().poll(cx),
        }
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable(Reason::new("it was closed"))
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dropped_sender_means_a_closed_store() {
        let (sender, reply) = oneshot::channel();
        drop::<oneshot::Sender<Result<(), _>>>(sender);
        let reply = StoreFuture::channel(reply).await;
        assert_eq!(reply, Err(closed()));
    }

    #[tokio::test]
    #[should_panic(expected = "polled after completion")]
    async fn a_ready_reply_polled_again_panics() {
        let mut reply = StoreFuture::ready(Ok(()));
        assert_eq!((&mut reply).await, Ok(()));
        let _ = (&mut reply).await;
    }
}
