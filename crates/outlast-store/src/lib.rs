//! Durable homes for tasks: SQLite, and the URL that names a store.
//!
//! No fronts and no backs: this crate knows the engine's [`Store`](outlast_engine::Store) trait and
//! the files behind it, nothing of sessions or wires. What a task is and how it changes lives in
//! `outlast-engine`.

pub mod private_file;
pub mod sqlite;
mod url;

pub use sqlite::{Durability, OpenError, Sqlite, SqliteOptions};
pub use url::{BadUrl, StoreUrl, open_store};
