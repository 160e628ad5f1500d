//! Hands: futures of the runtime that see to one call after the other.
//!
//! A future that is spawned takes memory with an alignment that allocators are slow to find, and takes it again for the
//! next call. A hand that is done rests until there is a next call, and needs none of that. Every call still has a future of
//! its own in the runtime while it goes on.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Waker};

use super::cell::Cell;
use super::create::Following;
use super::drive::Begin;
use super::{Inner, Runner};
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
    work: Work,
    along: Option<Following>,
    /// Where the hand rests when it is done.
    hands: Arc<Hands>,
}

/// What a hand is there for.
pub(crate) enum Work {
    /// A call, from its start to its end: its future is a part of the hand's own and takes no other memory.
    Call(Arc<Inner>, Arc<Cell>, Arc<dyn Runner>),
    Other(Following),
    Nothing,
}

impl Work {
    async fn done(self) {
        match self {
            Self::Call(inner, cell, runner) => inner.drive(cell, runner, Begin::Run).await,
            Self::Other(work) => work.await,
            Self::Nothing => {}
        }
    }
}

impl Hands {
    /// Lets somebody see to `work`, and to what goes `along` with it.
    pub(crate) fn give(self: Arc<Self>, work: Work, along: Option<Following>) {
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
                spawn(serve(Serving(hand), job));
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

/// A hand as long as the runtime moves it.
struct Serving(Arc<Hand>);

impl Drop for Serving {
    /// A runtime that ends takes its hands along.
    fn drop(&mut self) {
        self.0.gone.store(true, Ordering::Release);
    }
}

/// Sees to one job after the other, until there is no place to rest.
async fn serve(serving: Serving, first: Job) {
    let mut next = Some(first);
    while let Some(Job { work, along, hands }) = next {
        done(work, along).await;
        next = serving.0.next(hands).await;
    }
}

impl Hand {
    /// Rests among `hands`, if there is a place, and takes the next job.
    async fn next(self: &Arc<Self>, hands: Arc<Hands>) -> Option<Job> {
        let mut before = Some(hands);
        poll_fn(|cx| {
            if let Some(hands) = before.take() {
                return match hands.rest(self, cx.waker()) {
                    true => Poll::Pending,
                    false => Poll::Ready(None),
                };
            }
            match self.desk().take() {
                Some(job) => Poll::Ready(Some(job)),
                None if self.gone.load(Ordering::Acquire) => Poll::Ready(None),
                // Woken for nothing.
                None => Poll::Pending,
            }
        })
        .await
    }
}

async fn done(work: Work, mut along: Option<Following>) {
    let mut work = pin!(work.done());
    let mut worked = false;
    poll_fn(|cx| {
        worked = worked || work.as_mut().poll(cx).is_ready();
        if along
            .as_mut()
            .is_some_and(|along| along.as_mut().poll(cx).is_ready())
        {
            along = None;
        }
        match worked && along.is_none() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
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
    fn counting(done: &Arc<AtomicUsize>) -> Work {
        Work::Other(following(done))
    }

    fn following(done: &Arc<AtomicUsize>) -> Following {
        let done = done.clone();
        Box::pin(async move {
            yield_now().await;
            done.fetch_add(1, Ordering::SeqCst);
        })
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
            hands.clone().give(counting(&done), Some(following(&done)));
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
