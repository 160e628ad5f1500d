//! Hands: futures of the runtime that see to one call after the other.
//!
//! A future that is spawned takes memory with an alignment that allocators are slow to find, and takes it again for the
//! next call. A hand that is done rests until there is a next call, and needs none of that. Every call still has a future of
//! its own in the runtime while it goes on.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use super::create::Following;
use crate::runtime::atomic::{AtomicBool, Ordering};
use crate::runtime::{Mutex, MutexGuard, Place, place, spawn};

/// The hands of an engine that rest. Those that work are known to the runtime only.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    resting: Mutex<Vec<Resting>>,
}

/// A hand that rests, and how it is woken.
#[derive(Debug)]
struct Resting {
    hand: Arc<Hand>,
    waker: Waker,
}

/// Where the next job is put down for a hand.
#[derive(Debug)]
struct Hand {
    /// The runtime that moves it.
    place: Place,
    desk: Mutex<Option<Job>>,
    /// It is not there any more, or shall go.
    gone: AtomicBool,
}

/// What a hand does: the work of a call and what goes along with it, in this order. What the work says is told before
/// anybody else has a turn.
struct Job {
    work: Option<Following>,
    along: Option<Following>,
    /// Where the hand rests when it is done.
    hands: Arc<Hands>,
}

impl Hands {
    /// Lets somebody see to `work`, and to what goes `along` with it.
    pub(crate) fn give(self: Arc<Self>, work: Option<Following>, along: Option<Following>) {
        let here = place();
        let rested = self.rested(&here);
        let job = Job {
            work,
            along,
            hands: self,
        };
        match rested {
            Some(Resting { hand, waker }) => {
                *hand.desk() = Some(job);
                waker.wake();
            }
            None => {
                let hand = Arc::new(Hand {
                    place: here,
                    desk: Mutex::default(),
                    gone: AtomicBool::new(false),
                });
                let job = Some(job);
                spawn(Serving { hand, job });
            }
        }
    }

    /// The hand that began to rest last, unless another runtime moves it.
    fn rested(&self, here: &Place) -> Option<Resting> {
        let mut resting = self.resting();
        loop {
            let last = resting.pop_if(|last| last.hand.place == *here)?;
            // Those of a runtime that ends take what they have along, as it does with all that is spawned.
            if !last.hand.gone.load(Ordering::Acquire) {
                return Some(last);
            }
        }
    }

    /// Lets a hand rest, unless enough of them do.
    fn rest(&self, hand: &Arc<Hand>, waker: &Waker) -> bool {
        let mut resting = self.resting();
        let room = resting.len() < RESTING;
        if room {
            let (hand, waker) = (hand.clone(), waker.clone());
            resting.push(Resting { hand, waker });
        }
        room
    }

    fn resting(&self) -> MutexGuard<'_, Vec<Resting>> {
        // Nothing in a critical section panics.
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hands {
    /// Sends those home that rest.
    fn drop(&mut self) {
        let resting = self.resting.get_mut();
        for Resting { hand, waker } in resting.unwrap_or_else(PoisonError::into_inner).drain(..) {
            hand.gone.store(true, Ordering::Release);
            waker.wake();
        }
    }
}

impl Hand {
    fn desk(&self) -> MutexGuard<'_, Option<Job>> {
        // Nothing in a critical section panics.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A hand as the runtime moves it.
struct Serving {
    hand: Arc<Hand>,
    job: Option<Job>,
}

impl Future for Serving {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { hand, job } = &mut *self;
        if job.is_none() {
            *job = hand.desk().take();
        }
        match job {
            Some(at_work) => ready!(at_work.poll(cx)),
            None if hand.gone.load(Ordering::Acquire) => return Poll::Ready(()),
            // Woken for nothing.
            None => return Poll::Pending,
        }
        let done = job.take();
        match done.is_some_and(|done| done.hands.rest(hand, cx.waker())) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }
}

impl Drop for Serving {
    /// A runtime that ends takes its hands along.
    fn drop(&mut self) {
        self.hand.gone.store(true, Ordering::Release);
    }
}

impl Job {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut all = Poll::Ready(());
        for part in [&mut self.work, &mut self.along] {
            match part.as_mut().map(|part| part.as_mut().poll(cx)) {
                Some(Poll::Pending) => all = Poll::Pending,
                Some(Poll::Ready(())) => *part = None,
                None => {}
            }
        }
        all
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

/// How many hands rest at most. More calls than these at once spawn and end futures as they come and go.
const RESTING: usize = 256;

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::runtime::{Builder, Handle, Runtime};
    use tokio::task::yield_now;

    use super::*;

    /// Work that counts itself after a moment.
    fn counting(done: &Arc<AtomicUsize>) -> Option<Following> {
        let done = done.clone();
        Some(Box::pin(async move {
            yield_now().await;
            done.fetch_add(1, Ordering::SeqCst);
        }))
    }

    fn alive() -> usize {
        Handle::current().metrics().num_alive_tasks()
    }

    async fn settled() {
        for _ in 0..100 {
            yield_now().await;
        }
    }

    fn runtime() -> Runtime {
        let runtime = Builder::new_current_thread().build();
        runtime.expect("a runtime without threads starts")
    }

    #[tokio::test]
    async fn a_hand_that_is_done_takes_the_next_call() {
        let (hands, done) = (Arc::new(Hands::default()), Arc::default());
        for n in 1..=100 {
            hands.clone().give(counting(&done), counting(&done));
            settled().await;
            assert_eq!((done.load(Ordering::SeqCst), alive()), (2 * n, 1));
        }
    }

    #[tokio::test]
    async fn calls_at_the_same_time_have_a_hand_each_and_not_all_stay() {
        let (hands, done) = (Arc::new(Hands::default()), Arc::default());
        for _ in 0..2 * RESTING {
            hands.clone().give(counting(&done), None);
        }
        assert_eq!(alive(), 2 * RESTING);
        settled().await;
        assert_eq!(done.load(Ordering::SeqCst), 2 * RESTING);
        assert_eq!(alive(), RESTING);
        drop(hands);
        settled().await;
        assert_eq!(alive(), 0, "they go with their engine");
    }

    #[test]
    fn a_call_is_seen_to_where_it_is_made() {
        let (hands, done) = (Arc::new(Hands::default()), Arc::default());
        let (one, other) = (runtime(), runtime());
        one.block_on(async {
            hands.clone().give(counting(&done), None);
            settled().await;
        });
        // A hand rests in a runtime that nobody moves.
        other.block_on(async {
            hands.clone().give(counting(&done), None);
            settled().await;
        });
        assert_eq!(done.load(Ordering::SeqCst), 2);
        // The hands of a runtime that has ended take nothing.
        drop(other);
        one.block_on(async {
            for _ in 0..3 {
                hands.clone().give(counting(&done), None);
                settled().await;
            }
        });
        assert_eq!(done.load(Ordering::SeqCst), 5);
    }
}
