//! The neutral core of Outlast: what a task is, how it changes, and who is told.
//!
//! No sockets, no SQL, no era and no generation. Time and ids come in through [`Clock`] and [`Ids`];
//! durability is the business of a [`Store`], and a reply that promises anything takes a
//! [`Committed`] value, which only stores make.

mod input;
mod backoff;
mod id;
mod origin;
mod outcome;
mod owner;
mod policy;
mod runtime;
mod shards;
mod view;
mod clock;

pub mod engine;
pub mod index;
#[cfg(any(test, doc, feature = "laws"))]
pub mod laws;
pub mod memory;
pub mod random;
pub mod store;
pub mod task;
pub mod transition;

pub use input::{Accepts, Answer, AskKind, Outstanding, Question, Timing};
pub use backoff::Backoff;
pub use engine::{Engine, EngineError};
pub use id::{
    AskKey, Attempt, BadTaskId, IdHasher, IdMap, IdText, NodeId, Revision, Scope, TaskId,
};
pub use memory::MemoryStore;
pub use origin::{Origin, Retry};
pub use outcome::{Ending, ErrorCode, Message, Outcome};
pub use owner::{Owner, OwnerParseError};
pub use policy::{Policy, Quota, Sizes};
pub use store::{Committed, Store, StoreError};
pub use task::Task;
pub use clock::{Clock, Ids, RandomIds, SystemClock};
