//! Durable stores for tasks: SQLite, and the URL that names a store.
//!
//! This crate implements the engine's [`Store`](outlast_engine::Store) trait. It knows nothing of
//! sessions, transports or protocol revisions. Tasks and their transitions are in `outlast-engine`.

pub mod private_file;
pub mod sqlite;
mod url;

pub use sqlite::{Durability, OpenError, Sqlite, SqliteOptions};
pub use url::{StoreUrl, StoreUrlError, open_store};
