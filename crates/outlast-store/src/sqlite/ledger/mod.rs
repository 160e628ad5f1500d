//! The ledger: what is promised is written here first, in one piece, and synced once. The tables follow.
//!
//! Two files take turns. Each holds frames with numbers that follow one another; one frame is one batch. A file is
//! written anew from its beginning when the tables have all that it says.
//!
//! | where | what |
//! |---|---|
//! | `append` | the two files, and one frame more |
//! | `segment` | one of the files |
//! | `frame` | a batch with its number and its checksum |
//! | `entry` | a change of a task or a record as bytes, and back |
//! | `recover` | what both files say beyond what the tables have |

mod append;
mod entry;
mod frame;
mod recover;
mod segment;

pub(super) use append::Ledger;
pub(super) use entry::{Blocks, Entries};
pub(super) use recover::{Files, Trouble, read};
