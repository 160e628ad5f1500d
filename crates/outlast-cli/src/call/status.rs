//! The status of a call on standard error: one line that is updated on a terminal, one line per
//! change elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use outlast::client::ExecutionStatus;
use outlast::task::Outcome;
use outlast::wire::Status;

use crate::terminal::{self, StyledLine, Tone, say};

/// Prints the status of a call.
pub(crate) struct StatusLine {
    terminal: bool,
    icons: bool,
    began: Instant,
    /// The line that is updated, while one is shown.
    line: Option<ProgressBar>,
    /// The line that was printed last where lines are not updated.
    last: StyledLine,
    announced: bool,
    warned: bool,
    quiet: bool,
}

impl StatusLine {
    pub(crate) fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            terminal,
            icons: terminal || console::colors_enabled_stderr(),
            began: Instant::now(),
            line: None,
            last: StyledLine::new(),
            announced: false,
            warned: false,
            quiet: false,
        }
    }

    /// How often a line that contains a duration is updated.
    pub(crate) fn refresh(&self) -> Duration {
        if self.terminal {
            Duration::from_secs(1)
        } else {
            Duration::from_secs(30)
        }
    }

    /// Hides the line during an input request, or shows it again.
    pub(crate) fn set_hidden(&mut self, to_question: bool) {
        self.clear();
        self.quiet = to_question;
    }

    /// Shows the current status.
    pub(crate) fn show(&mut self, view: &ExecutionStatus) {
        if self.quiet {
            return;
        }
        if let (Some(text), false) = (&view.immediate_response, self.announced) {
            self.clear();
            terminal::err(text.as_str());
            self.announced = true;
        }
        if view.expiring && !self.warned {
            self.clear();
            say!(
                "The TTL of this task is nearly over; the server will remove it. Use a longer --ttl next time."
            );
            self.warned = true;
        }
        if !self.terminal {
            return self.say(indicator(view, self.icons, DetailLevel::Full));
        }
        let line = self.line.get_or_insert_with(|| spinner_line(self.began));
        let waits = view
            .task
            .as_ref()
            .is_some_and(|task| task.status != Status::Working);
        line.set_style(spinner_style(if waits {
            "{wide_msg} {elapsed}"
        } else {
            RUNNING_TEMPLATE
        }));
        line.set_message(terminal::err_text(&line_that_fits(view, self.icons)));
    }

    /// Prints the final status in a line that stays.
    pub(crate) fn finish(&mut self, view: &ExecutionStatus) {
        self.clear();
        match (self.terminal, &view.task) {
            (true, _) => terminal::err(line_that_fits(view, self.icons)),
            (false, Some(_)) => self.say(indicator(view, self.icons, DetailLevel::Full)),
            // A call that ends before its first status prints the same line as a slow one.
            (false, None) if self.last == StyledLine::new() && !view.tool.is_empty() => {
                self.say(StyledLine::new().text(format_args!("Calling {}", view.tool)));
            }
            (false, None) => {}
        }
    }

    /// Prints the line unless it equals the last one.
    fn say(&mut self, line: StyledLine) {
        if line != self.last {
            terminal::err(line.clone());
            self.last = line;
        }
    }

    /// Removes the line.
    fn clear(&mut self) {
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
    }
}

/// A spinner line on a terminal, shown until this is dropped. Prints nothing elsewhere.
pub(crate) struct Spinner(ProgressBar);

impl Spinner {
    pub(crate) fn on(what: String) -> Self {
        let line = spinner_line(Instant::now());
        line.set_message(terminal::err_text(&what.into()));
        Self(line)
    }

    /// Prints a line above the spinner.
    pub(crate) fn say(&self, text: String) {
        self.0.suspend(|| terminal::err(text));
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A line that is updated by a timer and cut to the width of the terminal.
fn spinner_line(began: Instant) -> ProgressBar {
    let line = ProgressBar::new_spinner().with_elapsed(began.elapsed());
    line.set_style(spinner_style(RUNNING_TEMPLATE));
    line.enable_steady_tick(REDRAW_INTERVAL);
    line
}

/// The style of a spinner with our characters, with this template.
pub(crate) fn spinner_style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    // The last character is shown when the spinner stops.
    style.tick_strings(&["|", "/", "-", "\\", " "])
}

/// The status line of a call on a terminal, with the details that fit its width.
fn line_that_fits(view: &ExecutionStatus, icons: bool) -> StyledLine {
    let Some(width) = terminal::err_width() else {
        return indicator(view, icons, DetailLevel::Full);
    };
    for room in [DetailLevel::Full, DetailLevel::ShortId] {
        let line = indicator(view, icons, room);
        if line.width() + RESERVED_COLUMNS <= width {
            return line;
        }
    }
    indicator(view, icons, DetailLevel::Minimal).cut(width)
}

/// How much detail fits into the line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DetailLevel {
    Full,
    /// The id is shortened. `outlast tasks` takes the beginning of an id.
    ShortId,
    /// The id is shortened and there is no progress bar.
    Minimal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallStatus {
    Runs,
    WaitsForInput,
    Completed,
    Failed,
    Cancelled,
    Unknown,
}

impl CallStatus {
    /// Uses the outcome once there is one: a server may report a task as completed although its
    /// tool returned an error.
    pub(crate) fn of(view: &ExecutionStatus) -> Self {
        match (&view.ended, view.task.as_ref().map(|task| task.status)) {
            (Some(Ok(Outcome::Result(_))), _) => Self::Completed,
            (Some(Ok(outcome)), _) if outcome.is_unknown() => Self::Unknown,
            (Some(Ok(Outcome::ToolError(..) | Outcome::Error(..))), _) => Self::Failed,
            (Some(Ok(Outcome::Cancelled)), _) => Self::Cancelled,
            (Some(Err(_)), _) => Self::Unknown,
            (None, None | Some(Status::Working)) => Self::Runs,
            (None, Some(Status::InputRequired)) => Self::WaitsForInput,
            // The outcome is not known yet, so the line does not show a success.
            (None, Some(Status::Completed)) => Self::Runs,
            (None, Some(Status::Failed)) => Self::Failed,
            (None, Some(Status::Cancelled)) => Self::Cancelled,
        }
    }

    /// The icon and its colour (S4-58 to S4-62). The icon is empty where the spinner is shown.
    pub(crate) fn icon(self) -> (&'static str, Tone) {
        match self {
            Self::Runs => ("", Tone::Plain),
            Self::WaitsForInput => ("⏸", Tone::Warning),
            Self::Completed => ("✔", Tone::Success),
            Self::Failed => ("✘", Tone::Failure),
            Self::Cancelled => ("⊘", Tone::Muted),
            Self::Unknown => ("?", Tone::Warning),
        }
    }

    /// The status as text (S4-63).
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Runs => "Working",
            Self::WaitsForInput => "Input Required",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
            Self::Unknown => "Outcome Unknown",
        }
    }
}

/// The status of a call: an icon unless it runs, the status text, its progress and its message
/// (S4-57, S4-68).
fn indicator(view: &ExecutionStatus, icons: bool, room: DetailLevel) -> StyledLine {
    let standing = CallStatus::of(view);
    let mut line = StyledLine::new();
    if let (true, (icon, tone)) = (icons, standing.icon())
        && !icon.is_empty()
    {
        line = line.tone(tone, icon).text(" ");
    }
    line = match &view.task {
        Some(task) => line.text(format_args!(
            "{}: task {}",
            standing.words(),
            displayed_id(&task.id, room)
        )),
        None if view.ended.is_some() => {
            line.text(format_args!("{}: {}", standing.words(), view.tool))
        }
        None if view.tool.is_empty() => line.text("Asking for the task"),
        None => line.text(format_args!("Calling {}", view.tool)),
    };
    if view.ended.is_none() && view.cancelling {
        line = line.text(" · cancelling");
    }
    if let Some(outage) = view.outage.as_ref().filter(|_| view.ended.is_none()) {
        let since = seconds(outage.since.elapsed());
        return line
            .tone(
                Tone::Warning,
                format_args!(" · server unreachable for {since}, trying again"),
            )
            .tone(Tone::Muted, format_args!(" — {}", outage.why));
    }
    if let Some(progress) = &view.progress {
        let is_full = progress
            .total
            .is_none_or(|total| progress.progress >= total);
        // The last progress report before the end may be missing.
        if view.ended.is_none() || is_full {
            line = line.text(format_args!(
                " · {}",
                progress_in(room, progress.progress, progress.total)
            ));
        }
    }
    let message = view
        .progress
        .as_ref()
        .and_then(|progress| progress.message.as_deref());
    let message = message.or_else(|| view.task.as_ref().and_then(|task| task.message.as_deref()));
    if let Some(message) = message {
        let message: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
        line = line
            .text(" ")
            .tone(Tone::Muted, format_args!("— {message}"));
    }
    line
}

fn displayed_id(task: &str, room: DetailLevel) -> String {
    match (room, task.chars().count() > SHORT_ID_CHARS) {
        (DetailLevel::ShortId | DetailLevel::Minimal, true) => {
            format!("{}…", task.chars().take(SHORT_ID_CHARS).collect::<String>())
        }
        _ => task.to_owned(),
    }
}

/// Formats a duration in whole seconds or minutes.
fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

fn progress_in(room: DetailLevel, done: f64, total: Option<f64>) -> String {
    match room {
        DetailLevel::Full | DetailLevel::ShortId => bar(done, total),
        DetailLevel::Minimal => count(done, total),
    }
}

/// `[#####-----] 3/6`.
pub(crate) fn bar(done: f64, total: Option<f64>) -> String {
    let count = count(done, total);
    let Some(total) = total.filter(|total| *total > 0.0) else {
        return count;
    };
    let full = ((done / total).clamp(0.0, 1.0) * BAR_COLUMNS as f64) as usize;
    format!(
        "[{}{}] {count}",
        "#".repeat(full),
        "-".repeat(BAR_COLUMNS - full)
    )
}

/// `3/6`.
fn count(done: f64, total: Option<f64>) -> String {
    match total.filter(|total| *total > 0.0) {
        Some(total) => format!("{done}/{total}"),
        None => format!("{done}"),
    }
}

const BAR_COLUMNS: usize = 20;

/// The length at which a status message is cut.
const MAX_MESSAGE_CHARS: usize = 200;

/// The length of a shortened id.
pub(crate) const SHORT_ID_CHARS: usize = 8;

/// The columns that the spinner and the elapsed time use next to the message.
const RESERVED_COLUMNS: usize = 10;

/// The template of a line while a call runs.
const RUNNING_TEMPLATE: &str = "{spinner} {wide_msg} {elapsed}";

/// How often a line on a terminal is redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_millis(120);

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::client::{self, Outage, OutcomeError};
    use outlast::task::ErrorCode;
    use outlast::wire::Progress;
    use outlast::wire::{PeerTask, Raw};

    fn view(status: Status) -> ExecutionStatus {
        let task = PeerTask {
            id: "t1".into(),
            status,
            message: Some("reading".into()),
            created: None,
            updated: None,
            ttl_ms: None,
            poll_interval_ms: None,
        };
        let mut view = ExecutionStatus::new("s".into(), "render".into());
        view.task = Some(task);
        view
    }

    /// The status of the same call after its end.
    fn ended(status: Status, ended: Result<Outcome, OutcomeError>) -> ExecutionStatus {
        let mut view = view(status);
        view.ended = Some(ended);
        view
    }

    fn result() -> Raw {
        Raw::parse(r#"{"content":[]}"#.into()).unwrap()
    }

    #[test]
    fn every_status_has_an_icon_a_colour_and_a_text() {
        // S4-58 to S4-64.
        let completed = Ok(Outcome::Result(result()));
        for (view, expected) in [
            (
                view(Status::Working),
                "Working: task t1 \x1b[2m— reading\x1b[0m",
            ),
            (
                view(Status::InputRequired),
                "\x1b[33m⏸\x1b[0m Input Required: task t1 \x1b[2m— reading\x1b[0m",
            ),
            (
                ended(Status::Completed, completed),
                "\x1b[32m✔\x1b[0m Completed: task t1 \x1b[2m— reading\x1b[0m",
            ),
            (
                view(Status::Failed),
                "\x1b[31m✘\x1b[0m Failed: task t1 \x1b[2m— reading\x1b[0m",
            ),
            (
                view(Status::Cancelled),
                "\x1b[2m⊘\x1b[0m Cancelled: task t1 \x1b[2m— reading\x1b[0m",
            ),
        ] {
            assert_eq!(
                indicator(&view, true, DetailLevel::Full).render(true),
                expected
            );
        }
    }

    #[test]
    fn without_colours_the_text_is_the_same() {
        let failed = view(Status::Failed);
        let icons = indicator(&failed, true, DetailLevel::Full).render(false);
        assert_eq!(icons, "✘ Failed: task t1 — reading");
        assert_eq!(plain(&failed), "Failed: task t1 — reading");
    }

    #[test]
    fn only_a_result_without_an_error_gets_a_check_mark() {
        // V2 reports a task as completed although its result has `isError`.
        let error = ErrorCode(-32000);
        for (outcome, expected) in [
            (Ok(Outcome::ToolError(result(), None)), "✘ Failed"),
            (Ok(Outcome::error(error, "no")), "✘ Failed"),
            (Ok(Outcome::unknown("stopped")), "? Outcome Unknown"),
            (Ok(Outcome::Cancelled), "⊘ Cancelled"),
            (Err(OutcomeError::Detached), "? Outcome Unknown"),
        ] {
            let line = indicator(&ended(Status::Completed, outcome), true, DetailLevel::Full);
            let line = line.render(false);
            assert_eq!(line, format!("{expected}: task t1 — reading"));
        }
        assert!(plain(&view(Status::Completed)).starts_with("Working"));
    }

    #[test]
    fn a_plain_call_ends_with_its_tool() {
        let mut call = ended(Status::Completed, Ok(Outcome::Result(result())));
        call.task = None;
        let line = indicator(&call, true, DetailLevel::Full).render(false);
        assert_eq!(line, "✔ Completed: render");
    }

    #[test]
    fn an_unreachable_server_is_named_with_how_long() {
        let mut view = view(Status::Working);
        let why = client::Error::Malformed("refused".into());
        view.outage = Some(Outage {
            since: tokio::time::Instant::now(),
            why,
        });
        assert_eq!(
            plain(&view),
            "Working: task t1 · server unreachable for 0 s, trying again — the server's response is invalid: refused"
        );
        view.ended = Some(Ok(Outcome::Result(result())));
        assert_eq!(plain(&view), "Completed: task t1 — reading");
    }

    #[test]
    fn progress_comes_before_the_message_and_its_message_takes_precedence() {
        // S4-68.
        let progress = Progress {
            token: 1.into(),
            progress: 3.0,
            total: Some(6.0),
            message: Some("page 3".into()),
        };
        let mut view = view(Status::Working);
        view.progress = Some(progress);
        assert_eq!(
            plain(&view),
            "Working: task t1 · [##########----------] 3/6 — page 3"
        );
        view.ended = Some(Ok(Outcome::Result(result())));
        assert_eq!(plain(&view), "Completed: task t1 — page 3");
    }

    #[test]
    fn progress_is_a_bar_where_it_has_an_end() {
        assert_eq!(bar(3.0, Some(6.0)), "[##########----------] 3/6");
        assert_eq!(bar(7.0, Some(6.0)), "[####################] 7/6");
        assert_eq!(bar(7.0, None), "7");
        assert_eq!(bar(0.0, Some(0.0)), "0");
    }

    #[test]
    fn a_server_cannot_move_the_cursor() {
        let mut view = view(Status::Working);
        let task = view.task.as_mut().unwrap();
        task.id = "t\x1b[2J".into();
        task.message = Some("a\nb".into());
        assert_eq!(plain(&view), "Working: task t\u{fffd}[2J — a b");
    }

    fn plain(view: &ExecutionStatus) -> String {
        indicator(view, false, DetailLevel::Full).render(false)
    }
}
