//! Durable stores for tasks: SQLite, PostgreSQL (with the feature `postgres`), and the URL that names
//! a store.
//!
//! This crate implements the engine's [`Store`](outlast_engine::Store) trait. It knows nothing of
//! sessions, transports or protocol revisions. Tasks and their transitions are in `outlast-engine`.

mod encoding;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod private_file;
pub mod sqlite;
mod url;

#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresError, PostgresUrl};
pub use sqlite::{Durability, OpenError, Sqlite, SqliteOptions};
pub use url::{StoreUrl, StoreUrlError, open_store};
