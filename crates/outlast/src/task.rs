//! A task: its id, owner, state, outcome, input requests and limits.

pub use outlast_engine::engine::Progress;
pub use outlast_engine::task::{
    CancelIntent, InputHistory, Lifetime, ResumeState, State, Timeline, TimelineEntries,
    TimelineEntry, TimelineEvent, TtlPolicy,
};
pub use outlast_engine::{
    Attempt, Ending, ErrorCode, InputKey, InputKind, InputKinds, InputRequest, InputResponse,
    InputTiming, NodeId, Origin, Outcome, Outstanding, Owner, OwnerParseError, Policy, Quota,
    RetryClass, Revision, Scope, SizeLimits, StatusMessage, Task, TaskId, TaskIdParseError,
};
