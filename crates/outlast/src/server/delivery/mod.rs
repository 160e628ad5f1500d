//! The delivery of calls: what a caller is answered with, and when.

mod follow;
mod heartbeat;
mod policy;
mod source;
pub(super) mod tickets;

pub(super) use follow::{Caller, Delivered, follow};
pub use policy::{Delivery, Holding, Patience};
pub(super) use policy::{InputDelivery, Terms};
pub(super) use source::{Held, Key, Source};
