//! The neutral core of Outlast: what a task is, how it changes, and which subscribers are notified.
//!
//! No sockets, no SQL, no era and no generation. Time and ids come in through [`Clock`] and
//! [`Ids`]. A [`Store`] makes tasks durable. A reply that promises durability takes a [`Committed`]
//! value, which only stores make.

mod backoff;
mod clock;
mod id;
mod input;
mod option_setters;
mod origin;
mod outcome;
mod owner;
mod policy;
mod runtime;
mod shards;
mod view;

pub mod engine;
pub mod index;
#[cfg(any(test, doc, feature = "laws"))]
pub mod laws;
pub mod memory;
pub mod random;
pub mod store;
pub mod task;
pub mod transition;

pub use backoff::Backoff;
pub use clock::{Clock, Ids, RandomIds, SystemClock};
pub use engine::{Actor, Engine, EngineError};
pub use id::{
    Attempt, IdHasher, IdMap, InputKey, NodeId, Revision, Scope, TaskId, TaskIdParseError,
    TaskIdText,
};
pub use input::{InputKind, InputKinds, InputRequest, InputResponse, InputTiming, Outstanding};
pub use memory::MemoryStore;
pub use origin::{Origin, RetryClass};
pub use outcome::{Ending, ErrorCode, Outcome, StatusMessage};
pub use owner::{Owner, OwnerParseError};
pub use policy::{Policy, Quota, SizeLimits};
pub use store::{Committed, Store, StoreError};
pub use task::Task;
