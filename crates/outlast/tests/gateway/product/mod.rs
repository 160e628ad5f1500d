//! Client × server × transport on either side of the gateway × every event, in real
//! time.
//!
//! The default run covers every pair of these; `cargo xtask soak gateway` runs all combinations.

mod deployment;
mod run;
mod scenarios;
