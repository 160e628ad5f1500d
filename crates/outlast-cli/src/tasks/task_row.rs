//! How tasks are printed, the same for a store and a server.

use outlast::task::Task;
use outlast::wire::{PeerTask, Status, Timestamp};
use outlast_wire::v1;

use crate::terminal::{self, Column, StyledLine, Tone, say, table};

/// The printed facts about a task.
pub(crate) struct TaskRow {
    id: String,
    status: Status,
    tool: Option<String>,
    message: Option<String>,
    created: Option<Timestamp>,
    expires: Option<Timestamp>,
    /// Whether it has not ended although no process runs it.
    is_stopped: bool,
}

impl TaskRow {
    /// A task in a store. `is_open`: whether a process has the store open.
    pub(super) fn stored(task: &Task, is_open: bool) -> Self {
        Self {
            id: task.id.to_string(),
            status: v1::status(task.phase()),
            tool: task.origin.tool.as_deref().map(str::to_owned),
            message: task.message.as_deref().map(str::to_owned),
            created: Some(task.created),
            expires: Some(task.expires()),
            is_stopped: !is_open && task.state.ending().is_none(),
        }
    }

    /// A task at a server.
    pub(crate) fn remote(task: &PeerTask) -> Self {
        let expires = task.created.zip(task.ttl_ms);
        Self {
            id: task.id.clone(),
            status: task.status,
            tool: None,
            message: task.message.clone(),
            created: task.created,
            expires: expires.map(|(created, ttl)| Timestamp(created.0.saturating_add(ttl))),
            is_stopped: false,
        }
    }

    /// The status, with its colour.
    pub(crate) fn status(&self) -> StyledLine {
        let tone = match self.status {
            _ if self.is_stopped => Tone::Warning,
            Status::Working => Tone::Active,
            Status::InputRequired => Tone::Warning,
            Status::Completed => Tone::Success,
            Status::Failed => Tone::Failure,
            Status::Cancelled => Tone::Muted,
        };
        let status = StyledLine::new().tone(tone, self.status);
        if self.is_stopped {
            status.tone(Tone::Warning, " (stopped)")
        } else {
            status
        }
    }

    /// One line about the task.
    pub(crate) fn line(&self) -> StyledLine {
        let line = StyledLine::from(format!("{}  ", self.id)).line(&self.status());
        match &self.message {
            Some(message) => line.text("  ").tone(Tone::Muted, message),
            None => line,
        }
    }
}

/// Prints a table of tasks that fits into the terminal.
pub(crate) fn print_table(tasks: &[TaskRow], now: Timestamp) {
    let has_tools = tasks.iter().any(|task| task.tool.is_some());
    let width = terminal::out_width();
    let ids = match width {
        Some(_) => shortened(tasks),
        None => tasks.iter().map(|task| task.id.clone()).collect(),
    };
    let mut columns = vec![Column::new("TASK"), Column::new("STATUS")];
    if has_tools {
        columns.push(Column::new("TOOL").cuts());
    }
    columns.extend([
        Column::new("AGE").right().optional(2),
        Column::new("LEFT").right().optional(1),
        Column::new("MESSAGE").cuts().optional(3),
    ]);
    let rows: Vec<Vec<StyledLine>> = tasks
        .iter()
        .zip(ids)
        .map(|(task, id)| {
            let mut row = vec![StyledLine::from(id), task.status()];
            if has_tools {
                row.push(task.tool.as_deref().unwrap_or("-").into());
            }
            let age = task.created.map(|created| length(now.since(created)));
            let left = task.expires.map(|expires| length(expires.since(now)));
            row.push(age.unwrap_or_default().into());
            row.push(left.unwrap_or_default().into());
            row.push(
                StyledLine::new().tone(Tone::Muted, task.message.as_deref().unwrap_or_default()),
            );
            row
        })
        .collect();
    table(&columns, &rows, width)
        .into_iter()
        .for_each(terminal::out);
    say_stopped(tasks.iter().filter(|task| task.is_stopped).count());
}

/// Prints that no process runs this number of tasks.
pub(super) fn say_stopped(count: usize) {
    let tasks = match count {
        0 => return,
        1 => "1 task has not ended, and no process runs it".to_owned(),
        count => format!("{count} tasks have not ended, and no process runs them"),
    };
    say!("{tasks}: no process has the store open.");
    say!(
        "  next: start the server on this store; it runs them again if that is safe, and ends the others"
    );
}

/// Shortens ids to the length at which they all differ, which commands accept.
fn shortened(tasks: &[TaskRow]) -> Vec<String> {
    let cut = |length: usize| -> Vec<String> {
        let ids = tasks
            .iter()
            .map(|task| task.id.chars().take(length).collect());
        ids.collect()
    };
    let longest = tasks.iter().map(|task| task.id.chars().count()).max();
    let differ = |length: &usize| {
        let mut ids = cut(*length);
        ids.sort();
        ids.windows(2).all(|pair| pair[0] != pair[1])
    };
    let lengths = MIN_ID_CHARS..=longest.unwrap_or_default();
    cut(lengths.into_iter().find(differ).unwrap_or(usize::MAX))
}

/// Prints a name and a value.
pub(crate) fn row(name: &str, value: impl Into<StyledLine>) {
    let name = StyledLine::new().tone(Tone::Muted, name).pad(11, false);
    terminal::out(name.line(&value.into()));
}

fn length(millis: u64) -> String {
    match millis / 1_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

/// The shortest id in a table.
const MIN_ID_CHARS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str) -> TaskRow {
        TaskRow {
            id: id.into(),
            status: Status::Working,
            tool: None,
            message: None,
            created: None,
            expires: None,
            is_stopped: false,
        }
    }

    #[test]
    fn shortened_ids_still_differ() {
        let tasks = ["0123456789abc", "0123456789xyz", "zzz"].map(task);
        assert_eq!(shortened(&tasks), ["0123456789a", "0123456789x", "zzz"]);
        let tasks = ["0123456789abc", "9876543210abc"].map(task);
        assert_eq!(shortened(&tasks), ["01234567", "98765432"]);
        assert_eq!(shortened(&[]), [""; 0]);
    }

    #[test]
    fn a_task_that_no_process_runs_is_marked() {
        let mut stopped = task("t");
        assert_eq!(stopped.line().render(false), "t  working");
        stopped.is_stopped = true;
        stopped.message = Some("10 of 60".into());
        assert_eq!(
            stopped.line().render(false),
            "t  working (stopped)  10 of 60"
        );
    }
}
