//! Client × server × the way on either side of the gateway × every event of bridge §17, in real time.
//!
//! Each cell has a row in the default run, so that every pair of these is met; `cargo xtask soak gateway` runs them all.

mod place;
mod run;
mod scenes;
