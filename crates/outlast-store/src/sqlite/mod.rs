//! Tasks in one SQLite file that the `sqlite3` tool can read.
//!
//! One writer thread takes the queued operations, plans them with the in-memory
//! [index](outlast_engine::index), writes them in one transaction, syncs, publishes them to the
//! index and then replies. Bodies are read through a few read-only connections; everything else is
//! read from memory. Everything that was acknowledged is in the file or in SQLite's write-ahead log
//! (`-wal`) next to it.
//!
//! | module | content |
//! |---|---|
//! | `open` | from a path to a running store: lock, file, schema, scan |
//! | `store` | [`Store`](outlast_engine::Store): sends writes to the writer, reads to readers |
//! | `writer` | batches, commits, failures and recovery |
//! | `readers`, `body`, `body_cache` | bodies and whole tasks, from the file and from memory |
//! | `reader` | a read-only view of a file that another process may use |
//! | `backup` | a copy of a store that is in use |
//! | `health` | whether the store can be written |
//! | `damage`, `open_files`, `mark` | whether the files are complete and not replaced |
//! | `row` | a task as a row, and back |
//! | `schema` | tables and their version |

mod backup;
mod body;
mod body_cache;
mod connect;
mod damage;
mod failpoint;
mod file;
mod file_fault;
mod health;
mod lock;
mod mark;
mod open;
mod open_files;
mod options;
mod reader;
mod readers;
mod records;
mod row;
mod scan;
mod schema;
mod store;
mod writer;

pub use backup::{BackupError, Existing, backup};
pub use failpoint::{DiskFailure, FailPoint, FailPoints};
pub use lock::Holder;
pub use options::{Durability, SqliteOptions};
pub use reader::SqliteReader;
pub use store::Sqlite;
