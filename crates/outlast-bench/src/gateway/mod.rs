//! The cost that the gateway adds to a call and to a task, compared with the same upstream called
//! directly and with two other gateways.

mod pipe;
mod rows;
mod sides;

pub(crate) use rows::{calls, calls_to_a_url, tasks};
