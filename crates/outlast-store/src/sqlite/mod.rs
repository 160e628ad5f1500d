//! Tasks in one SQLite file that a person can read with `sqlite3`.
//!
//! One writer thread appends whatever has queued up to a ledger beside the file, in one piece with one sync; a change is
//! published to the in-memory [index](outlast_engine::index) after that, and acknowledged after that. A second thread
//! brings it into the tables a moment later, many tasks in one transaction. Bodies are read through a few read-only
//! connections, all else comes from memory.
//!
//! | where | what |
//! |---|---|
//! | `open` | from a path to a running store: lock, file, schema, scan |
//! | `store` | the [`Store`](outlast_engine::Store) trait: hands writes to the writer, reads to memory or readers |
//! | `writer` | batches and promises, failures and recovery |
//! | `ledger` | what is promised, on the disk |
//! | `unwritten` | what the ledger has and the tables do not, in memory |
//! | `filler` | from there into the tables |
//! | `condition` | whether the store can be written |
//! | `row` | a task as a row, and back |
//! | `schema` | tables, versions, migrations |

mod body;
mod condition;
mod connect;
mod error;
mod fault;
mod file;
mod filler;
mod ledger;
mod lock;
mod look;
mod open;
mod options;
mod probe;
mod readers;
mod recent;
mod records;
mod row;
mod scan;
mod schema;
mod spread;
mod store;
mod unwritten;
mod writer;

pub use error::OpenError;
pub use lock::Holder;
pub use look::Look;
pub use options::{Durability, SqliteOptions};
pub use probe::{FailAs, Moment, Probe, Verdict};
pub use store::Sqlite;
