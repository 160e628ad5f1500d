//! Tasks in PostgreSQL, for several nodes on one database.
//!
//! Writes of a store go to its writer, which executes many in one statement. Reads are one indexed
//! statement each. The tables are in `sql`; the views `overview` and `node_overview` show them to
//! people.
//!
//! | module | content |
//! |---|---|
//! | `options`, `tls` | from a URL and `PG…` variables to the parameters of a connection |
//! | `connection` | connections that are made again after they are lost |
//! | `schema` | the tables and their versions |
//! | `store` | the [`Store`](outlast_engine::Store) trait |
//! | `writer`, `batch`, `waves` | many operations in one transaction, and their replies |
//! | `columns`, `row`, `text` | tasks as JSON objects, and from rows |
//! | `read` | statements that read |
//! | `leases`, `renewals` | joined nodes, their leases, and the claim of tasks of lost nodes |
//! | `progress` | progress of tasks that waits for the writer |
//! | `nodes` | a list of the nodes for people |
//! | `copy` | a copy of a store in a file |
//! | `changes`, `listener` | what other nodes changed, and notifications of it |

mod batch;
mod changes;
mod columns;
mod connection;
#[cfg(feature = "sqlite")]
mod copy;
mod error;
mod leases;
mod listener;
mod nodes;
mod options;
mod progress;
mod read;
mod renewals;
mod row;
mod schema;
mod store;
mod text;
mod tls;
mod waves;
mod writer;

#[cfg(feature = "sqlite")]
pub use copy::{CopyCounts, CopyError, copy_from_sqlite};
pub use error::PostgresError;
pub use nodes::nodes;
pub use options::PostgresUrl;
pub use renewals::{HEARTBEAT, LEASE, Renewals, TRUST_WINDOW};
pub use store::Postgres;
