//! One row per call of the demo: updated on a terminal, one line per change elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar};
use outlast::client::ExecutionStatus;
use outlast::task::Outcome;
use outlast::wire::Raw;
use outlast_wire::tool::first_text;

use crate::call::{CallStatus, SHORT_ID_CHARS, bar, spinner_style};
use crate::terminal::{self, StyledLine, Tone, say};

/// The rows of all calls. Cheap to clone.
#[derive(Clone)]
pub(super) struct Board {
    /// `None` if standard error is not a terminal.
    rows: Option<MultiProgress>,
}

pub(super) struct CallRow {
    board: Board,
    /// The spinner on a terminal, until the call ends.
    spinner: Option<ProgressBar>,
    /// The newest line.
    last: StyledLine,
}

impl Board {
    pub(super) fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self {
            rows: is_terminal.then(MultiProgress::new),
        }
    }

    /// Adds a row below the others.
    pub(super) fn row(&self) -> CallRow {
        let spinner = self.rows.as_ref().map(|rows| {
            let row = rows.add(ProgressBar::new_spinner());
            row.set_style(spinner_style("{spinner} {wide_msg}"));
            row.enable_steady_tick(REDRAW_INTERVAL);
            row
        });
        CallRow {
            board: self.clone(),
            spinner,
            last: StyledLine::new(),
        }
    }

    /// Ends the last row, which has no line break on a terminal.
    pub(super) fn end_rows(&self) {
        if self.rows.is_some() {
            say!("");
        }
    }

    /// Prints a line above the rows.
    pub(super) fn note(&self, text: &str) {
        let line = StyledLine::new().tone(Tone::Muted, format_args!("  {text}"));
        match &self.rows {
            // An error means that the terminal is closed.
            Some(rows) => drop(rows.println(terminal::err_text(&line))),
            None => terminal::err(line),
        }
    }
}

impl CallRow {
    /// Shows the status of the call if it changed.
    pub(super) fn show(&mut self, view: &ExecutionStatus) {
        let Some(task) = &view.task else {
            return;
        };
        let status = CallStatus::of(view);
        let line = match &self.board.rows {
            Some(_) => on_terminal(view, &task.id, status),
            None => StyledLine::new()
                .text(format_args!("{:<10} {}  ", view.tool, task.id))
                .tone(status.icon().1, format_args!("{:<15} ", status.words()))
                .text(detail(view)),
        };
        if line == self.last {
            return;
        }
        match &self.spinner {
            Some(row) => {
                if status != CallStatus::Runs {
                    row.set_style(spinner_style("{wide_msg}"));
                }
                row.set_message(terminal::err_text(&line));
                if view.ended.is_some() {
                    row.disable_steady_tick();
                    row.abandon();
                }
            }
            None => terminal::err(line.clone()),
        }
        self.last = line;
    }
}

/// The text of a row after its icon. The icon is a spinner while the call runs.
fn on_terminal(view: &ExecutionStatus, id: &str, status: CallStatus) -> StyledLine {
    let (icon, tone) = status.icon();
    let line = match status {
        CallStatus::Runs => StyledLine::new(),
        _ => StyledLine::new().tone(tone, icon).text(" "),
    };
    let detail_tone = match (status, &view.ended) {
        (CallStatus::Completed, _) => Tone::Plain,
        (_, Some(_)) => tone,
        (_, None) => Tone::Muted,
    };
    line.tone(Tone::Strong, format_args!("{:<10}", view.tool))
        .tone(Tone::Muted, format_args!(" {}  ", short(id)))
        .tone(detail_tone, detail(view))
}

/// The progress of a call, or its outcome.
fn detail(view: &ExecutionStatus) -> String {
    let text = |result: &Raw| first_text(result.borrow()).unwrap_or_default();
    match (&view.ended, &view.progress, &view.task) {
        (Some(Ok(Outcome::Result(result) | Outcome::ToolError(result, _))), ..) => text(result),
        (Some(Ok(outcome)), ..) if outcome.is_unknown() => {
            "outcome unknown: the server stopped during the call".into()
        }
        (Some(Ok(Outcome::Error(_, _, message))), ..) => {
            message.as_deref().unwrap_or("").to_owned()
        }
        (Some(Ok(Outcome::Cancelled)), ..) => "cancelled".into(),
        (Some(Err(why)), ..) => why.to_string(),
        (None, _, Some(task)) if CallStatus::of(view) == CallStatus::WaitsForInput => task
            .message
            .clone()
            .unwrap_or_else(|| "waits for input".into()),
        (None, Some(progress), _) => bar(progress.progress, progress.total),
        (None, None, Some(task)) => task.message.clone().unwrap_or_default(),
        (None, None, None) => String::new(),
    }
}

/// Shortens an id to a length that `outlast tasks` accepts.
pub(super) fn short(id: &str) -> String {
    id.chars().take(SHORT_ID_CHARS).collect()
}

/// How often rows on a terminal are redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_millis(120);
