//! Support for the tests of Outlast: a simple store, a store that fails on demand, simulated time,
//! clients and servers whose messages the test writes, processes, and a limit for every wait.
//!
//! Other crates use it only as a development dependency.

#[cfg(unix)]
mod balancer;
mod clock;
#[cfg(unix)]
mod command;
#[cfg(unix)]
mod daemon;
pub mod death;
mod example;
mod faulty;
mod ids;
mod limit;
pub mod mcp;
mod model;
#[cfg(unix)]
pub mod nodes;
mod output;
#[cfg(unix)]
mod pgbouncer;
#[cfg(unix)]
mod postgres;
mod process;
#[cfg(unix)]
mod pty;
mod until;

#[cfg(unix)]
pub use balancer::{LoadBalancer, packaged};
pub use clock::SimClock;
#[cfg(unix)]
pub use command::{CommandOutput, RunCommand, RunningCommand, output_of, wait_for_end};
pub use example::example;
pub use faulty::{BeforeNotify, Faults, FaultyStore, WriteFault};
pub use ids::CountingIds;
pub use limit::{eventually, wait_for, within};
pub use model::ModelStore;
pub use output::OutputLines;
#[cfg(unix)]
pub use pgbouncer::PgBouncer;
#[cfg(unix)]
pub use postgres::{PostgresServer, Sync as PostgresSync, free_port};
pub use process::ServerProcess;
#[cfg(unix)]
pub use pty::{Pty, TerminalProcess};
pub use until::until;
