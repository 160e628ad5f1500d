//! The delivery of calls: what response a caller gets, and when.

mod follow;
mod heartbeat;
mod policy;
mod source;
pub(super) mod tickets;

pub(super) use follow::{DeliveryChannel, DeliveryOutcome, follow};
pub(super) use policy::{DeliveryPlan, InputDelivery};
pub use policy::{TaskPolicy, WaitBudget, WaitPolicy};
pub(super) use source::{CallKey, CallSource, PendingCalls};
pub(super) use tickets::CANCEL as CANCEL_TOOL;
