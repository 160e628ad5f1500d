//! The engine that runs calls and stores tasks, for a [`Backend`](crate::server::Backend) of your
//! own. [`Server`](crate::Server) makes one for your tools.

pub use outlast_engine::engine::{
    AUDIT, Actor, CallContext, Change, Changes, CreatedTask, EndedTask, EngineBuilder, EngineError,
    Event, ExcessTasks, FnRunner, InputError, NewCall, RecoveryCounts, Retention, RetentionLimits,
    Runner, ShutdownReport, StatusRecorder, TaskPage, UnconfirmedResponse, Watch, Work,
};
pub use outlast_engine::transition::Refused;
pub use outlast_engine::{Clock, Engine, Ids, RandomIds, SystemClock};
