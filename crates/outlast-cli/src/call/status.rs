//! How a call stands, on standard error: one line that changes on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use console::Style;
use indicatif::{ProgressBar, ProgressStyle};
use outlast::back::View;
use outlast::wire::Status;

/// Shows how a call stands.
pub(crate) struct StatusLine {
    terminal: bool,
    paint: Paint,
    began: Instant,
    /// The line that changes, while there is one.
    line: Option<ProgressBar>,
    /// What was said last where lines stay.
    last: String,
    announced: bool,
    warned: bool,
    quiet: bool,
}

impl StatusLine {
    pub(crate) fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            terminal,
            paint: Paint::of_stderr(terminal),
            began: Instant::now(),
            line: None,
            last: String::new(),
            announced: false,
            warned: false,
            quiet: false,
        }
    }

    /// Gives way to a question, or comes back after it.
    pub(crate) fn give_way(&mut self, to_question: bool) {
        self.clear();
        self.quiet = to_question;
    }

    /// Shows `view` as it is now.
    pub(crate) fn show(&mut self, view: &View) {
        if self.quiet {
            return;
        }
        if let (Some(text), false) = (&view.immediate_response, self.announced) {
            self.clear();
            eprintln!("{text}");
            self.announced = true;
        }
        if view.expiring && !self.warned {
            self.clear();
            eprintln!(
                "The time of this task is nearly over; the server will forget it. Next time give a longer --ttl."
            );
            self.warned = true;
        }
        if !self.terminal {
            return self.say(indicator(view, self.paint));
        }
        let line = self.line.get_or_insert_with(|| moving_line(self.began));
        let waits = view
            .task
            .as_ref()
            .is_some_and(|task| task.status != Status::Working);
        line.set_style(style(if waits {
            "{wide_msg} {elapsed}"
        } else {
            WORKING
        }));
        line.set_message(indicator(view, self.paint));
    }

    /// Shows how the call ended, in a line that stays.
    pub(crate) fn finish(&mut self, view: &View) {
        self.clear();
        match (self.terminal, &view.task) {
            (true, _) => eprintln!("{}", indicator(view, self.paint)),
            (false, Some(_)) => self.say(indicator(view, self.paint)),
            (false, None) => {}
        }
    }

    /// Says what was not said last.
    fn say(&mut self, text: String) {
        if text != self.last {
            eprintln!("{text}");
            self.last = text;
        }
    }

    /// Takes the line away.
    fn clear(&mut self) {
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
    }
}

/// A line on a terminal that says that something goes on, until it is dropped. Elsewhere there is none.
pub(crate) struct Waiting(ProgressBar);

impl Waiting {
    pub(crate) fn on(what: String) -> Self {
        let line = moving_line(Instant::now());
        line.set_message(one_line(&what));
        Self(line)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A line that moves by itself and is cut to the width of the terminal.
fn moving_line(began: Instant) -> ProgressBar {
    let line = ProgressBar::new_spinner().with_elapsed(began.elapsed());
    line.set_style(style(WORKING));
    line.enable_steady_tick(BEAT);
    line
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    // The last one is shown when all is over.
    style.tick_strings(&["|", "/", "-", "\\", " "])
}

/// How a call stands: an icon unless it works, words, how far it is, and what it says of itself (S4-57, S4-68).
fn indicator(view: &View, paint: Paint) -> String {
    let status = view.task.as_ref().map(|task| task.status);
    let (icon, colour) = match status {
        None | Some(Status::Working) => ("", Style::new()),
        Some(Status::InputRequired) => ("⏸", Style::new().yellow()),
        Some(Status::Completed) => ("✔", Style::new().green()),
        Some(Status::Failed) => ("✘", Style::new().red()),
        Some(Status::Cancelled) => ("⊘", Style::new().dim()),
    };
    let mut text = match (icon, paint) {
        ("", _) | (_, Paint::Plain) => String::new(),
        (icon, _) => format!("{} ", paint.of(colour, icon)),
    };
    text += &match &view.task {
        Some(task) => format!("{}: task {}", words(task.status), one_line(&task.id)),
        None => format!("Calling {}", view.tool),
    };
    if view.cancelling {
        text += " · cancelling";
    }
    if let Some(progress) = &view.progress {
        text += &format!(" · {}", bar(progress.progress, progress.total));
    }
    let said = view
        .progress
        .as_ref()
        .and_then(|progress| progress.message.as_deref());
    let said = said.or_else(|| view.task.as_ref().and_then(|task| task.message.as_deref()));
    if let Some(said) = said {
        let said = format!("— {}", one_line(said));
        text += &format!(" {}", paint.of(Style::new().dim(), &said));
    }
    text
}

/// How much a line may be adorned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Paint {
    /// Words alone, for files and pipes.
    Plain,
    Icons,
    Colours,
}

impl Paint {
    /// `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE` count.
    fn of_stderr(terminal: bool) -> Self {
        match (console::colors_enabled_stderr(), terminal) {
            (true, _) => Self::Colours,
            (false, true) => Self::Icons,
            (false, false) => Self::Plain,
        }
    }

    fn of(self, style: Style, text: &str) -> String {
        let colours = self == Self::Colours;
        style.force_styling(colours).apply_to(text).to_string()
    }
}

/// A status in words (S4-63).
fn words(status: Status) -> &'static str {
    match status {
        Status::Working => "Working",
        Status::InputRequired => "Input Required",
        Status::Completed => "Completed",
        Status::Failed => "Failed",
        Status::Cancelled => "Cancelled",
    }
}

/// `[#####-----] 3/6`.
fn bar(done: f64, total: Option<f64>) -> String {
    let Some(total) = total.filter(|total| *total > 0.0) else {
        return format!("{done}");
    };
    let full = ((done / total).clamp(0.0, 1.0) * WIDTH as f64) as usize;
    format!(
        "[{}{}] {done}/{total}",
        "#".repeat(full),
        "-".repeat(WIDTH - full)
    )
}

/// Text of a server: no line breaks, nothing that moves the cursor, not too long.
fn one_line(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(LONGEST).collect()
}

const WIDTH: usize = 20;

const LONGEST: usize = 200;

/// How a line looks while something works.
const WORKING: &str = "{spinner} {wide_msg} {elapsed}";

/// How often a line on a terminal moves.
const BEAT: Duration = Duration::from_millis(120);

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::wire::PeerTask;
    use outlast::wire::notice::Progress;

    fn view(status: Status) -> View {
        let task = PeerTask {
            id: "t1".into(),
            status,
            message: Some("reading".into()),
            created: None,
            updated: None,
            ttl_ms: None,
            poll_interval_ms: None,
        };
        View {
            server: "s".into(),
            tool: "render".into(),
            task: Some(task),
            progress: None,
            immediate_response: None,
            reference: None,
            cancelling: false,
            expiring: false,
            ended: None,
        }
    }

    #[test]
    fn every_status_has_its_icon_its_colour_and_its_words() {
        // S4-58 to S4-64.
        for (status, expected) in [
            (Status::Working, "Working: task t1 \x1b[2m— reading\x1b[0m"),
            (
                Status::InputRequired,
                "\x1b[33m⏸\x1b[0m Input Required: task t1 \x1b[2m— reading\x1b[0m",
            ),
            (
                Status::Completed,
                "\x1b[32m✔\x1b[0m Completed: task t1 \x1b[2m— reading\x1b[0m",
            ),
            (
                Status::Failed,
                "\x1b[31m✘\x1b[0m Failed: task t1 \x1b[2m— reading\x1b[0m",
            ),
            (
                Status::Cancelled,
                "\x1b[2m⊘\x1b[0m Cancelled: task t1 \x1b[2m— reading\x1b[0m",
            ),
        ] {
            assert_eq!(indicator(&view(status), Paint::Colours), expected);
        }
    }

    #[test]
    fn without_colours_the_words_are_the_same() {
        let failed = view(Status::Failed);
        let icons = indicator(&failed, Paint::Icons);
        assert_eq!(icons, "✘ Failed: task t1 — reading");
        let plain = indicator(&failed, Paint::Plain);
        assert_eq!(plain, "Failed: task t1 — reading");
    }

    #[test]
    fn progress_stands_before_what_is_said_and_its_own_words_count_more() {
        // S4-68.
        let progress = Progress {
            token: 1.into(),
            progress: 3.0,
            total: Some(6.0),
            message: Some("page 3".into()),
        };
        let view = View {
            progress: Some(progress),
            ..view(Status::Working)
        };
        assert_eq!(
            indicator(&view, Paint::Plain),
            "Working: task t1 · [##########----------] 3/6 — page 3"
        );
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
        assert_eq!(one_line("a\x1b[2Jb\nc"), "a [2Jb c");
    }
}
