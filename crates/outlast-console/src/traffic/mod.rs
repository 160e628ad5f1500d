//! The messages of connections: direction, time, duration, pairing, era. Bounded in number and
//! bytes, with secrets redacted.

mod call_command;
mod entry;
mod filter;
mod log;
mod redact;

pub use call_command::call_command;
pub use entry::{TrafficEntry, TrafficKind};
pub use filter::TrafficFilter;
pub use log::{TrafficLimits, TrafficLog, TrafficObserver};
