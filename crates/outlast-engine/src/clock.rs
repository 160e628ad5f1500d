//! A clock and a source of ids, as traits that tests replace. The only file that reads the clock.

use outlast_wire::Timestamp;

use crate::id::{NodeId, TaskId};
use crate::random;

/// Tells the time. May jump; tasks never go back with it.
pub trait Clock: Send + Sync + 'static {
    /// The moment it is.
    fn now(&self) -> Timestamp;
}

/// Draws names that nobody can guess.
pub trait Ids: Send + Sync + 'static {
    /// A fresh task id with 128 random bits.
    fn task(&self) -> TaskId;

    /// A fresh node id.
    fn node(&self) -> NodeId;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock before 1970 is a clock that was never set.
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
        // 63 bits: stores keep it as a signed number.
        NodeId(u64::from_ne_bytes(random::bytes()) >> 1)
    }
}
