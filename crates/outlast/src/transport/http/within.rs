//! Patience that costs nothing where it is not needed.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// What comes of `work`, or `None` if it takes longer than `patience`. Most work is done at once, and then there is no
/// timer.
pub(super) async fn within<T>(patience: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let at_once = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
    match at_once {
        Poll::Ready(done) => Some(done),
        Poll::Pending => tokio::time::timeout(patience, work).await.ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_in_time_is_had_and_what_is_late_is_not() {
        let patience = Duration::from_millis(20);
        assert_eq!(within(patience, ready(1)).await, Some(1));
        assert_eq!(within(patience, sleep(patience / 2)).await, Some(()));
        assert_eq!(within(patience, sleep(patience * 2)).await, None);
        assert_eq!(within(Duration::ZERO, pending::<()>()).await, None);
    }
}
