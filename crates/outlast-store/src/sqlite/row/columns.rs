//! The columns of the view `tasks` in their order, and the statements that use them.
//!
//! The number of a column is also the number of its parameter in every statement.

macro_rules! columns {
    ($($column:ident $name:literal,)*) => {
        /// A column of `tasks`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Column { $($column,)* }

        const ALL: &[Column] = &[$(Column::$column,)*];

        /// The number of columns.
        pub(super) const COLUMNS: usize = ALL.len();

        const NAMES: &[&str] = &[$($name,)*];
    };
}

columns! {
    Row "row",
    Id "id",
    Owner "owner",
    RequestKey "request_key",
    Created "created",
    State "state",
    Message "message",
    Updated "updated",
    Ttl "ttl",
    PollInterval "poll_interval",
    Revision "revision",
    Attempt "attempt",
    Runner "runner",
    Tool "tool",
    Executor "executor",
    Timeline "timeline",
    Handle "handle",
    Details "details",
    Method "method",
    Accepts "accepts",
    Retry "retry",
    ProgressToken "progress_token",
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

/// The parameter with the old row of a task that moves.
pub(super) const PREVIOUS_ROW_INDEX: usize = NAMES.len() + 1;

/// Inserts a task.
pub(super) fn insert_opened_sql() -> String {
    insert_sql(
        "opened",
        ALL.iter().filter(|column| **column != Column::Body),
    )
}

/// Inserts the end of a task.
pub(super) fn insert_ended_sql() -> String {
    let (row, body) = ([Column::Row], [Column::Body]);
    insert_sql("ended", row.iter().chain(MUTABLE_COLUMNS).chain(&body))
}

/// Updates a task that has not ended.
pub(super) fn update_opened_sql() -> String {
    let (changes, row) = (mutable_assignments(), Column::Row.parameter());
    format!("UPDATE opened SET {changes} WHERE row = ?{row}")
}

/// Updates a task that has ended.
pub(super) fn update_ended_sql() -> String {
    let (changes, row) = (mutable_assignments(), Column::Row.parameter());
    let body = Column::Body.parameter();
    format!("UPDATE ended SET {changes}, body = coalesce(?{body}, body) WHERE row = ?{row}")
}

/// Moves a task that has not ended to another row.
pub(super) fn move_sql() -> String {
    let row = Column::Row.parameter();
    format!("UPDATE opened SET row = ?{row} WHERE row = ?{PREVIOUS_ROW_INDEX}")
}

/// Selects everything about one task except its body.
pub(in crate::sqlite) fn select_sql() -> String {
    let names = NAMES[..Column::Body as usize].join(", ");
    format!("SELECT {names} FROM tasks WHERE row = ?1")
}

/// Selects the summary of every task, in the order of rows.
pub(in crate::sqlite) fn select_summary_sql() -> String {
    let names = NAMES[..=Column::Tool as usize].join(", ");
    format!("SELECT {names} FROM tasks ORDER BY row")
}

fn insert_sql<'c>(table: &str, columns: impl Iterator<Item = &'c Column>) -> String {
    let columns = columns.map(|column| (column.name(), format!("?{}", column.parameter())));
    let (names, parameters): (Vec<_>, Vec<_>) = columns.unzip();
    let (names, parameters) = (names.join(", "), parameters.join(", "));
    format!("INSERT INTO {table} ({names}) VALUES ({parameters})")
}

fn mutable_assignments() -> String {
    let changes = MUTABLE_COLUMNS
        .iter()
        .map(|column| format!("{} = ?{}", column.name(), column.parameter()));
    changes.collect::<Vec<_>>().join(", ")
}

/// The columns that change. The request and the creation of a task never change.
const MUTABLE_COLUMNS: &[Column] = &[
    Column::State,
    Column::Message,
    Column::Updated,
    Column::Ttl,
    Column::PollInterval,
    Column::Revision,
    Column::Attempt,
    Column::Executor,
    Column::Timeline,
    Column::Handle,
    Column::Details,
];
