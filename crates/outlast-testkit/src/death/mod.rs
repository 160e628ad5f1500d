//! Death tests: a child works on a store and says what was acknowledged; it is killed; whatever it said
//! must still be true.
//!
//! | where | what |
//! |---|---|
//! | [`Ack`] | one acknowledged fact, a line on the child's stdout |
//! | [`work`] | the child: an engine under a random load |
//! | [`Life`] | the parent: one child process from its start to its kill |
//! | [`Journal`] | all that was acknowledged, and the check of it |

mod ack;
mod dice;
mod journal;
mod life;
mod tools;
mod work;

pub use ack::Ack;
pub use dice::Dice;
pub use journal::{Broken, Journal};
pub use life::{Death, Ended, Life};
pub use work::work;
