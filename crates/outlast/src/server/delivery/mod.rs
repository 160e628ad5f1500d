//! The delivery of calls: what a caller is answered with, and when.

mod follow;
mod heartbeat;
mod policy;
pub(super) mod tickets;
mod wait;

pub(super) use follow::{Caller, Delivered, follow};
pub use policy::{Delivery, Holding, Patience};
pub(super) use policy::{InputDelivery, Terms};
pub(super) use wait::{Held, Key, Source};
