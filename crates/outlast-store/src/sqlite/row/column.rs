//! The columns of `tasks` in their order, and the statements made from them.
//!
//! A column's number is also the number of its parameter, in every statement.

macro_rules! columns {
    ($($column:ident $name:literal,)*) => {
        /// A column of `tasks`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Column { $($column,)* }

        const NAMES: &[&str] = &[$($name,)*];
    };
}

columns! {
    Row "row",
    Id "id",
    Owner "owner",
    State "state",
    ErrorCode "error_code",
    Message "message",
    Created "created",
    Updated "updated",
    Ttl "ttl",
    PollInterval "poll_interval",
    Revision "revision",
    Attempt "attempt",
    RequestKey "request_key",
    Method "method",
    Tool "tool",
    Runner "runner",
    Retry "retry",
    Accepts "accepts",
    Executor "executor",
    TtlGranted "ttl_granted",
    Keep "keep",
    RunLimit "run_limit",
    Waited "waited",
    WaitingSince "waiting_since",
    CancelRequested "cancel_requested",
    CancelDeadline "cancel_deadline",
    ProgressToken "progress_token",
    Timeline "timeline",
    TimelineDropped "timeline_dropped",
    Asked "asked",
    Asks "asks",
    Answers "answers",
    Handle "handle",
    Params "params",
    Body "body",
}

impl Column {
    /// The name in the file.
    pub(super) fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The number of its parameter.
    pub(super) fn parameter(self) -> usize {
        self as usize + 1
    }
}

/// The parameter that names the row to be changed.
pub(super) const OLD_ROW: usize = NAMES.len() + 1;

/// Adds a task.
pub(in crate::sqlite) fn insert_sql() -> String {
    let parameters: Vec<_> = (1..=NAMES.len()).map(|n| format!("?{n}")).collect();
    let (names, parameters) = (NAMES.join(", "), parameters.join(", "));
    format!("INSERT INTO tasks ({names}) VALUES ({parameters})")
}

/// Changes a task; with a body if it has just got one, with another row if it moves.
pub(in crate::sqlite) fn update_sql(body: bool, moves: bool) -> String {
    let changes = CHANGING
        .iter()
        .chain(body.then_some(&Column::Body))
        .chain(moves.then_some(&Column::Row))
        .map(|column| format!("{} = ?{}", column.name(), column.parameter()));
    let changes: Vec<_> = changes.collect();
    let changes = changes.join(", ");
    format!("UPDATE tasks SET {changes} WHERE row = ?{OLD_ROW}")
}

/// Removes a task.
pub(in crate::sqlite) fn delete_sql() -> &'static str {
    "DELETE FROM tasks WHERE row = ?1"
}

/// Everything about one task but its body.
pub(in crate::sqlite) fn select_sql() -> String {
    let names = NAMES[..Column::Body as usize].join(", ");
    format!("SELECT {names} FROM tasks WHERE row = ?1")
}

/// What is kept at hand of every task, in the order of rows.
pub(in crate::sqlite) fn select_brief_sql() -> String {
    let names = NAMES[..=Column::RequestKey as usize].join(", ");
    format!("SELECT {names} FROM tasks ORDER BY row")
}

/// What a change may change. The request and the beginning of a task stay as they are.
const CHANGING: &[Column] = &[
    Column::State,
    Column::ErrorCode,
    Column::Message,
    Column::Updated,
    Column::Ttl,
    Column::PollInterval,
    Column::Revision,
    Column::Attempt,
    Column::Executor,
    Column::TtlGranted,
    Column::Keep,
    Column::RunLimit,
    Column::Waited,
    Column::WaitingSince,
    Column::CancelRequested,
    Column::CancelDeadline,
    Column::Timeline,
    Column::TimelineDropped,
    Column::Asked,
    Column::Asks,
    Column::Answers,
    Column::Handle,
];
