//! How much is measured.

use std::time::Duration;

pub(crate) struct Scale {
    /// Few, many and most tasks retained.
    pub(crate) few: usize,
    pub(crate) many: usize,
    pub(crate) most: usize,
    /// Tasks that the peer retains: it takes time to get there that grows with the square.
    pub(crate) peer: usize,
    pub(crate) rounds: usize,
    /// How long each side runs in a round.
    pub(crate) turn: Duration,
    pub(crate) full: bool,
    /// How much memory is touched before anything is measured, at most.
    pub(crate) memory: u64,
}

impl Scale {
    pub(crate) fn new(quick: bool) -> Self {
        if quick {
            return Self {
                few: 1_000,
                many: 10_000,
                most: 100_000,
                peer: 20_000,
                rounds: 3,
                turn: Duration::from_millis(400),
                full: false,
                memory: 4 << 30,
            };
        }
        Self {
            few: 1_000,
            many: 100_000,
            most: 1_000_000,
            peer: 100_000,
            rounds: 7,
            turn: Duration::from_millis(1_000),
            full: true,
            memory: 16 << 30,
        }
    }
}

/// `1000000` as `1 M`, `100000` as `100 k`.
pub(crate) fn count(n: usize) -> String {
    match n {
        n if n >= 1_000_000 && n.is_multiple_of(1_000_000) => format!("{} M", n / 1_000_000),
        n if n >= 1_000 && n.is_multiple_of(1_000) => format!("{} k", n / 1_000),
        n => crate::table::whole(n as f64),
    }
}
