//! A timeout that creates a timer only if the future is not ready on the first poll.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;

/// The output of `work`, or `None` if it takes longer than `patience`. Most futures are ready at
/// once and need no timer.
pub(super) async fn within<W: Future>(
    patience: Duration,
    mut work: Pin<&mut W>,
) -> Option<W::Output> {
    match poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
        Poll::Ready(done) => Some(done),
        Poll::Pending => Box::pin(timeout(patience, work)).await.ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_in_time_is_had_and_what_is_late_is_not() {
        let patience = Duration::from_millis(20);
        assert_eq!(within(patience, pin!(ready(1))).await, Some(1));
        let (quick, slow) = (sleep(patience / 2), sleep(patience * 2));
        assert_eq!(within(patience, pin!(quick)).await, Some(()));
        assert_eq!(within(patience, pin!(slow)).await, None);
        let never = pin!(pending::<()>());
        assert_eq!(within(Duration::ZERO, never).await, None);
    }
}
