//! Limits the requests per second of a caller: a principal, or an address without a token.
//!
//! Requests that are rejected because of their token, host or origin count for the address, so that
//! tokens cannot be guessed.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use outlast_engine::Owner;
use parking_lot::RwLock;

use super::nodes::Nodes;
use super::rejection::Rejection;

/// The request rate of each caller.
pub(super) struct RequestRate {
    /// `None`: no limit.
    limit: Option<Limit>,
}

struct Limit {
    /// The limit of all nodes together.
    per_second: NonZeroU32,
    share: RwLock<Share>,
    clock: DefaultClock,
}

/// What this node admits: its part of the limit.
struct Share {
    nodes: NonZeroU32,
    callers: Arc<DefaultKeyedRateLimiter<Owner>>,
}

impl RequestRate {
    pub(super) fn new(per_second: Option<NonZeroU32>) -> Self {
        let limit = per_second.map(|per_second| Limit {
            per_second,
            share: RwLock::new(Share::new(per_second, NonZeroU32::MIN)),
            clock: DefaultClock::default(),
        });
        Self { limit }
    }

    /// Divides the limit by the number of nodes that share the store, until the future is dropped.
    pub(super) async fn follow_nodes(&self, nodes: &Nodes) {
        loop {
            tokio::time::sleep(NODE_COUNT_INTERVAL).await;
            // While the store does not answer, the last number counts.
            if let Ok(count) = nodes.count().await
                && let Some(count) = u32::try_from(count).ok().and_then(NonZeroU32::new)
            {
                self.set_nodes(count);
            }
        }
    }

    fn set_nodes(&self, nodes: NonZeroU32) {
        if let Some(limit) = &self.limit
            && limit.share.read().nodes != nodes
        {
            *limit.share.write() = Share::new(limit.per_second, nodes);
        }
    }

    /// Counts a request of `caller`, or rejects it.
    pub(super) fn admit(&self, caller: &Owner) -> Result<(), Rejection> {
        let Some(limit) = &self.limit else {
            return Ok(());
        };
        let callers = limit.share.read().callers.clone();
        callers.check_key(caller).map_err(|until| {
            let wait = until.wait_time_from(limit.clock.now());
            // Rounded up, because the header has whole seconds.
            let seconds = wait.as_secs() + 1;
            Rejection::Rate {
                per_second: limit.per_second,
                seconds,
            }
        })
    }

    /// Removes idle callers periodically.
    pub(super) async fn remove_idle_callers(&self) {
        loop {
            tokio::time::sleep(CLEANUP_INTERVAL).await;
            if let Some(limit) = &self.limit {
                let callers = limit.share.read().callers.clone();
                callers.retain_recent();
                callers.shrink_to_fit();
            }
        }
    }
}

impl Share {
    fn new(per_second: NonZeroU32, nodes: NonZeroU32) -> Self {
        // At least one, so that a node is never without requests.
        let own = NonZeroU32::new(per_second.get() / nodes).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(own).allow_burst(own.saturating_mul(BURST_SECONDS));
        Self {
            nodes,
            callers: Arc::new(RateLimiter::keyed(quota)),
        }
    }
}

/// How often the number of nodes is read.
const NODE_COUNT_INTERVAL: Duration = Duration::from_secs(5);

/// How many seconds' worth of requests an idle caller can send at once.
const BURST_SECONDS: NonZeroU32 = NonZeroU32::new(2).expect("two is not zero");

/// How often idle callers are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_at_its_limit_does_not_affect_another() {
        let rate = RequestRate::new(NonZeroU32::new(5));
        let [ada, bob] = ["ada", "bob"].map(Owner::principal);
        for _ in 0..10 {
            assert!(rate.admit(&ada).is_ok());
        }
        // On a slow machine a few more may be admitted meanwhile.
        let refused = (0..100).find_map(|_| rate.admit(&ada).err());
        let Some(Rejection::Rate {
            per_second,
            seconds,
        }) = refused
        else {
            panic!("{refused:?}");
        };
        assert_eq!((per_second.get(), seconds), (5, 1));
        assert!(rate.admit(&bob).is_ok());
    }

    #[test]
    fn nodes_divide_the_limit() {
        let rate = RequestRate::new(NonZeroU32::new(30));
        rate.set_nodes(NonZeroU32::new(3).unwrap());
        let admitted = (0..100).filter(|_| rate.admit(&Owner::Local).is_ok());
        // A third of the limit, for two seconds; on a slow machine a few more.
        assert!((20..40).contains(&admitted.count()));
    }

    #[test]
    fn without_a_limit_every_request_is_admitted() {
        let rate = RequestRate::new(None);
        assert!((0..10_000).all(|_| rate.admit(&Owner::Local).is_ok()));
    }
}
