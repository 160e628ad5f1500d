//! Tasks in one SQLite file that a person can read with `sqlite3`.
//!
//! One writer thread owns the only connection that writes and commits whatever has queued up in one
//! transaction; a change is published to the in-memory [index](outlast_engine::index) after its
//! commit and acknowledged after that. Bodies are read through a few read-only connections, all
//! else comes from memory.
//!
//! | where | what |
//! |---|---|
//! | `open` | from a path to a running store: lock, file, schema, scan |
//! | `store` | the [`Store`](outlast_engine::Store) trait: hands writes to the writer, reads to memory or readers |
//! | `writer` | batches, commits, failures and recovery |
//! | `row` | a task as a row, and back |
//! | `schema` | tables, versions, migrations |

mod body;
mod connect;
mod error;
mod fault;
mod file;
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
mod writer;

pub use error::OpenError;
pub use lock::Holder;
pub use look::Look;
pub use options::{Durability, SqliteOptions};
pub use probe::{FailAs, Moment, Probe, Verdict};
pub use store::Sqlite;
