//! A node that works under load and reports every step, for tests that kill it.
//!
//! The program `node` runs [`work`]. It writes [`Line`]s to its standard output: an operation before it
//! begins and after its reply, and every start of a call. Lines of several processes are compared by the
//! monotonic clock of the machine.

mod line;
mod work;

pub use line::{Call, Ending, Line, Reply, Report, Seen, TaskKind};
pub use work::work;
