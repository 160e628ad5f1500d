//! What an engine does, seen from outside, on the memory store under paused time.

mod asks;
mod bad_input;
mod cancel;
mod expiry;
mod lifecycle;
mod nodes;
mod promotion;
mod recovery;
mod shutdown;
mod stage;
