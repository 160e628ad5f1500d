//! The laws of a task, checked over random histories: any commands in any order, with a clock that
//! jumps.
//!
//! The laws of stores are in [`crate::laws`].

mod input;
mod invariants;
mod scripts;
mod table;
mod time;
