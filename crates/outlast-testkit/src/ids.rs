//! Ids that are the same in every run.

use std::sync::atomic::{AtomicU64, Ordering};

use outlast_engine::laws::fixtures::{id, mix_bits};
use outlast_engine::{Ids, NodeId, TaskId};

/// Draws the ids that follow from its seed, one after the other.
#[derive(Debug)]
pub struct CountingIds {
    seed: u64,
    drawn: AtomicU64,
}

impl CountingIds {
    /// The ids of that seed. Different seeds have different ids.
    pub fn new(seed: u32) -> Self {
        Self {
            seed: u64::from(seed) << 32,
            drawn: AtomicU64::new(0),
        }
    }

    fn next(&self) -> u64 {
        self.seed | self.drawn.fetch_add(1, Ordering::Relaxed) & u64::from(u32::MAX)
    }
}

impl Ids for CountingIds {
    fn task(&self) -> TaskId {
        id(self.next())
    }

    fn node(&self) -> NodeId {
        // 63 bits, as random ones have.
        NodeId(mix_bits(self.next()) >> 1)
    }

    fn jitter(&self) -> u32 {
        mix_bits(self.next()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_ids() {
        let draw = |seed| {
            let ids = CountingIds::new(seed);
            [(); 3].map(|()| ids.task())
        };
        assert_eq!(draw(7), draw(7));
        let [one, two, three] = draw(7);
        assert!(one != two && two != three && one != three);
        assert!(!draw(8).contains(&one));
    }
}
