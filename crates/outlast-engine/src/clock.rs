//! The clock and the source of ids, as traits that tests replace. No other file of this crate reads
//! the clock.

use outlast_wire::Timestamp;

use crate::id::{NodeId, TaskId};
use crate::random;

/// A source of the current time. It may jump; the timestamps of a task never go back.
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// A source of ids that cannot be guessed.
pub trait Ids: Send + Sync + 'static {
    /// A fresh task id with 128 random bits.
    fn task(&self) -> TaskId;

    /// A fresh node id.
    fn node(&self) -> NodeId;

    /// A number that shortens the delay between two attempts at random.
    fn jitter(&self) -> u32 {
        u32::from_be_bytes(random::bytes())
    }
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that reads the clock"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock before 1970 was never set: report 1970.
        Timestamp(since.map_or(0, |since| since.as_millis() as u64))
    }
}

/// Ids from the secure random source of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn task(&self) -> TaskId {
        TaskId::from_bits(u128::from_ne_bytes(random::bytes()))
    }

    fn node(&self) -> NodeId {
        // 63 bits: stores write it as a signed number.
        NodeId(u64::from_ne_bytes(random::bytes()) >> 1)
    }
}
