//! Durable stores for tasks: SQLite (feature `sqlite`, on by default), PostgreSQL (feature
//! `postgres`), and the URL that names a store.
//!
//! This crate implements the engine's [`Store`](outlast_engine::Store) trait. It knows nothing of
//! sessions, transports or protocol revisions. Tasks and their transitions are in `outlast-engine`.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod encoding;
mod open_error;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod private_file;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod url;

pub use open_error::OpenError;
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresError, PostgresUrl};
#[cfg(feature = "sqlite")]
pub use sqlite::{Durability, Sqlite, SqliteOptions};
#[cfg(feature = "sqlite")]
pub use url::open_store;
pub use url::{StoreUrl, StoreUrlError, open};
