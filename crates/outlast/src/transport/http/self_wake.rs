//! Handles a future that wakes itself while it is polled.
//!
//! hyper wakes its own task in every request, when the reader of a body is ready for more. The
//! runtime then schedules the task on another thread, and the connection moves there. Here such a
//! wake-up only causes another poll at once.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Polls a future again when it wakes itself.
#[derive(Default)]
pub(super) struct SelfWakePoller(Option<Arc<PollWaker>>);

/// The waker that the future gets.
struct PollWaker {
    state: AtomicU8,
    /// The task that polls.
    task: Waker,
}

impl SelfWakePoller {
    pub(super) fn poll<F: Future>(
        &mut self,
        mut future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        let poll_waker = self.poll_waker(cx.waker());
        let waker = Waker::from(poll_waker.clone());
        let mut inner = Context::from_waker(&waker);
        for _ in 0..MAX_POLLS {
            poll_waker.state.store(POLLING, Ordering::Release);
            let polled = future.as_mut().poll(&mut inner);
            let was = poll_waker.state.swap(IDLE, Ordering::AcqRel);
            if polled.is_ready() || was == POLLING {
                return polled;
            }
        }
        // Yield to other tasks.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The waker that forwards to `task`.
    fn poll_waker(&mut self, task: &Waker) -> Arc<PollWaker> {
        match &self.0 {
            Some(poll_waker) if poll_waker.task.will_wake(task) => poll_waker.clone(),
            _ => {
                let poll_waker = Arc::new(PollWaker {
                    state: AtomicU8::new(IDLE),
                    task: task.clone(),
                });
                self.0.insert(poll_waker).clone()
            }
        }
    }
}

impl Wake for PollWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let taken =
            self.state
                .compare_exchange(POLLING, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if taken == Err(IDLE) {
            self.task.wake_by_ref();
        }
    }
}

/// The future is not being polled: a wake-up goes to the task.
const IDLE: u8 = 0;
/// The future is being polled: a wake-up causes another poll.
const POLLING: u8 = 1;
/// The future woke itself while it was polled.
const WOKEN: u8 = 2;

/// The maximum of consecutive polls.
const MAX_POLLS: u32 = 8;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Counter {
        fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_self_waking_future_is_polled_again_directly() {
        let task = Arc::new(Counter::default());
        let mut polls = 0;
        let future = pin!(poll_fn(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            match polls {
                3 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        }));
        let waker = Waker::from(task.clone());
        let polled = SelfWakePoller::default().poll(future, &mut Context::from_waker(&waker));
        assert!(polled.is_ready());
        assert_eq!((polls, task.count()), (3, 0));
    }

    #[test]
    fn a_future_that_always_wakes_itself_yields() {
        let task = Arc::new(Counter::default());
        let future = pin!(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let waker = Waker::from(task.clone());
        let polled = SelfWakePoller::default().poll(future, &mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        assert_eq!(task.count(), 1);
    }

    #[test]
    fn a_wake_up_reaches_the_task_that_polled_last() {
        let (first, second) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
        let mut last_waker = None;
        let mut poller = SelfWakePoller::default();
        let mut future = pin!(poll_fn(|cx| {
            last_waker = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        for task in [&first, &second] {
            let waker = Waker::from(task.clone());
            let polled = poller.poll(future.as_mut(), &mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        last_waker.expect("it was polled").wake();
        assert_eq!((first.count(), second.count()), (0, 1));
    }
}
