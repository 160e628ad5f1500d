//! What the gateway adds to a call and to a task, beside the same upstream called directly and beside two other gateways.

mod pipe;
mod rows;
mod sides;

pub(crate) use rows::{calls, tasks};
