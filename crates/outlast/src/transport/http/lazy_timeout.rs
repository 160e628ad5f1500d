//! A timeout that creates a timer only if the future is not ready on the first poll.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;

/// The output of `work`, or `None` if it takes longer than `limit`. Most futures are ready at
/// once and need no timer.
pub(super) async fn lazy_timeout<W: Future>(
    limit: Duration,
    mut work: Pin<&mut W>,
) -> Option<W::Output> {
    match poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
        Poll::Ready(done) => Some(done),
        Poll::Pending => Box::pin(timeout(limit, work)).await.ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_futures_within_the_limit_return_a_value() {
        let limit = Duration::from_millis(20);
        assert_eq!(lazy_timeout(limit, pin!(ready(1))).await, Some(1));
        let (quick, slow) = (sleep(limit / 2), sleep(limit * 2));
        assert_eq!(lazy_timeout(limit, pin!(quick)).await, Some(()));
        assert_eq!(lazy_timeout(limit, pin!(slow)).await, None);
        let never = pin!(pending::<()>());
        assert_eq!(lazy_timeout(Duration::ZERO, never).await, None);
    }
}
