//! Where tasks are kept: in memory, in an SQLite file, or in PostgreSQL.
//!
//! ```
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use outlast::prelude::*;
//!
//! let store = outlast::store::open("sqlite:tasks.db").await?;
//! let server = Server::builder("reports", "1.0").store(store).build();
//! # Ok(()) }
//! ```
//!
//! A store of your own implements `outlast_engine::Store`, which is [`Store`] here, and passes the
//! tests of `outlast_engine::store_laws!`.

pub use outlast_engine::store::{Committed, Reason, Snapshot};
pub use outlast_engine::{MemoryStore, Store, StoreError};
#[cfg(feature = "sqlite")]
pub use outlast_store::open_store;
#[cfg(feature = "sqlite")]
pub use outlast_store::sqlite::Holder;
#[cfg(feature = "sqlite")]
pub use outlast_store::{Durability, Sqlite, SqliteOptions};
pub use outlast_store::{OpenError, StoreUrl, StoreUrlError, open};
#[cfg(feature = "postgres")]
pub use outlast_store::{Postgres, PostgresError, PostgresUrl};
