//! The outer world as the engine sees it: a clock and a source of ids. The only file that touches either.

use std::cell::RefCell;

use outlast_wire::Timestamp;

use crate::id::{NodeId, TaskId};

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

/// The secure random source of the operating system, drawn in blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn task(&self) -> TaskId {
        TaskId::from_bits(u128::from_ne_bytes(random()))
    }

    fn node(&self) -> NodeId {
        // 63 bits: stores keep it as a signed number.
        NodeId(u64::from_ne_bytes(random()) >> 1)
    }
}

/// Draws from a block that each thread fills anew: one call to the system for many ids.
fn random<const N: usize>() -> [u8; N] {
    thread_local! {
        static BLOCK: RefCell<Block> = const { RefCell::new(Block { bytes: [0; SIZE], left: 0 }) };
    }
    BLOCK.with_borrow_mut(Block::draw)
}

struct Block {
    bytes: [u8; SIZE],
    /// How many at the end are not drawn yet.
    left: usize,
}

impl Block {
    #[expect(clippy::disallowed_methods, reason = "this is where ids come from")]
    fn draw<const N: usize>(&mut self) -> [u8; N] {
        if self.left < N {
            getrandom::fill(&mut self.bytes).expect("the operating system has a random source");
            self.left = SIZE;
        }
        let mut drawn = [0; N];
        let at = SIZE - self.left;
        let part = &mut self.bytes[at..at + N];
        drawn.copy_from_slice(part);
        // What was drawn must not be found here again.
        part.fill(0);
        self.left -= N;
        drawn
    }
}

const SIZE: usize = 2_048;
