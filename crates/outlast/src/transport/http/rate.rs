//! Limits the requests per second of a caller: a principal, or an address without a token.
//!
//! Requests that are rejected because of their token, host or origin count for the address, so that
//! tokens cannot be guessed.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use outlast_engine::Owner;

use super::rejection::Rejection;

/// The request rate of each caller.
pub(super) struct RequestRate {
    /// `None`: no limit.
    limit: Option<Limit>,
}

struct Limit {
    per_second: NonZeroU32,
    callers: DefaultKeyedRateLimiter<Owner>,
    clock: DefaultClock,
}

impl RequestRate {
    pub(super) fn new(per_second: Option<NonZeroU32>) -> Self {
        let limit = per_second.map(|per_second| {
            let burst = per_second.saturating_mul(BURST_SECONDS);
            Limit {
                per_second,
                callers: RateLimiter::keyed(Quota::per_second(per_second).allow_burst(burst)),
                clock: DefaultClock::default(),
            }
        });
        Self { limit }
    }

    /// Counts a request of `caller`, or rejects it.
    pub(super) fn admit(&self, caller: &Owner) -> Result<(), Rejection> {
        let Some(limit) = &self.limit else {
            return Ok(());
        };
        limit.callers.check_key(caller).map_err(|until| {
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
                limit.callers.retain_recent();
                limit.callers.shrink_to_fit();
            }
        }
    }
}

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
    fn without_a_limit_every_request_is_admitted() {
        let rate = RequestRate::new(None);
        assert!((0..10_000).all(|_| rate.admit(&Owner::Local).is_ok()));
    }
}
