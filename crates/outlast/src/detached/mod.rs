//! Work that another program does: a queue, a batch system, a person.
//!
//! A tool calls [`ToolContext::detach`](crate::ToolContext::detach), gives the [`CompletionHandle`]
//! to the other program and returns. From then on the task has no executor: a restart does not run
//! it again, and a shutdown does not wait for it. The other program reports by the handle, in this
//! process with [`RunningServer::completion`](crate::RunningServer::completion), from a process
//! that shares the store with [`complete`](crate::complete), or from anywhere over HTTP
//! (`CallbackService`). Exactly one end is stored. Without an end or a
//! heartbeat, the task fails at its limit.
//!
//! | report | JSON of the HTTP callback |
//! |---|---|
//! | status text | `{"status": "page 3"}` |
//! | progress | `{"progress": {"done": 3, "total": 10}}` |
//! | alive | `{"heartbeat": {"seconds": 60}}` |
//! | input request | `{"input": {"key": "who", "kind": "elicitForm", "params": {…}}}` |
//! | input response was used | `{"confirm": "who"}` |
//! | result | `{"result": {"content": […]}}` |
//! | failure, for the model | `{"failure": "the printer is out of paper"}` |
//!
//! A POST sends one report, a GET returns the state with the input responses. Both need the header
//! `Authorization: Bearer HANDLE`.

mod completion;
mod handle;
mod report;

pub use completion::{Completion, CompletionError, DetachedState};
pub(crate) use handle::Secret;
pub use handle::{CompletionHandle, InvalidHandle};
pub use report::{Report, ReportedInputKind};
