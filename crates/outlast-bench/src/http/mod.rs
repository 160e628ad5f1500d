//! The cost of our HTTP server, beside the least that one can cost and beside rmcp.
//!
//! Compared is the processor time of the server process for one operation, which a busy machine disturbs least. One load
//! generator calls all servers: keep-alive HTTP/1.1, one connection for each client, and each client does one operation
//! after the other. Servers are processes of their own, new for every row.

mod client;
pub(crate) mod dialect;
mod rows;
pub(crate) mod serve;
pub(crate) mod target;

pub(crate) use rows::{retained, v1, v1_bars, v2, v2_bars};
