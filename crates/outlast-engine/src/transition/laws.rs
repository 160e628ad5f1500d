//! The laws of a task, checked over random lives: any commands, in any order, under a clock that jumps.
//!
//! What a store must do with tasks is in [`crate::laws`].

mod input;
mod invariants;
mod scripts;
mod table;
mod time;
