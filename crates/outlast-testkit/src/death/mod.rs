//! Death tests: a child process uses a store and prints what was acknowledged. It is killed. Then
//! everything that it printed must still be true.
//!
//! | where | what |
//! |---|---|
//! | [`Ack`] | one acknowledged fact: a line on the standard output of the child |
//! | [`work`] | the child: an engine with a random load |
//! | [`ChildProcess`] | the parent: one child process from its start to its kill |
//! | [`Journal`] | everything that was acknowledged, and its check |

mod ack;
mod child;
mod journal;
mod random;
mod tools;
mod work;

pub use ack::Ack;
pub use child::{ChildEnd, ChildProcess, Death};
pub use journal::{BrokenPromise, Journal};
pub use random::SeededRandom;
pub use work::work;
