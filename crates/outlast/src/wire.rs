//! Types of the messages: JSON that is not parsed, JSON-RPC errors and ids, and tasks as a peer
//! sends them.

pub use outlast_wire::envelope::{ErrorObject, Id};
pub use outlast_wire::headers::{HeaderParam, OnMissingName};
pub use outlast_wire::log::Log;
pub use outlast_wire::notice::Progress;
pub use outlast_wire::v1::{ServerTasks, TaskPage};
pub use outlast_wire::{NotATask, PeerTask, Raw, RawRef, Status, Timestamp, codes};
