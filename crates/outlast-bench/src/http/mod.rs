//! The cost of our HTTP server, compared with a minimal server and with rmcp.
//!
//! The figure is the processor time of the server process per operation, which other programs
//! affect least. One load generator calls all servers: keep-alive HTTP/1.1, one connection per
//! client, and each client performs one operation after the other. Servers are separate processes,
//! new for every row.

mod client;
pub(crate) mod mcp_client;
mod rows;
pub(crate) mod serve;
pub(crate) mod target;

pub(crate) use rows::{retained, v1, v1_bars, v2, v2_bars};
