//! How a call stands, on standard error: one line that changes on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use outlast::back::View;
use outlast::wire::Status;

/// Shows how a call stands.
pub(crate) struct StatusLine {
    terminal: bool,
    paint: Paint,
    began: Instant,
    beat: usize,
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
            paint: Paint::here(terminal),
            began: Instant::now(),
            beat: 0,
            last: String::new(),
            announced: false,
            warned: false,
            quiet: false,
        }
    }

    /// Whether the line moves by itself.
    pub(crate) fn is_alive(&self) -> bool {
        self.terminal
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
        match self.terminal {
            true => {
                self.beat += 1;
                let seconds = self.began.elapsed().as_secs();
                let text = indicator(view, SPINNER[self.beat % SPINNER.len()], self.paint);
                eprint!("\r\x1b[2K{text} · {seconds} s");
                let _ = std::io::stderr().flush();
            }
            false => self.say(indicator(view, "", Paint::Plain)),
        }
    }

    /// Shows how the call ended, in a line that stays.
    pub(crate) fn finish(&mut self, view: &View) {
        self.clear();
        match (self.terminal, &view.task) {
            (true, _) => eprintln!("{}", indicator(view, " ", self.paint)),
            (false, Some(_)) => self.say(indicator(view, "", Paint::Plain)),
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
    pub(crate) fn clear(&self) {
        if self.terminal {
            eprint!("\r\x1b[2K");
        }
    }
}

/// How a call stands: an icon, words, how far it is, and what it says of itself (S4-57, S4-68). `spinner` turns while
/// something works.
fn indicator(view: &View, spinner: &str, paint: Paint) -> String {
    let (icon, colour) = match view.task.as_ref().map(|task| task.status) {
        None | Some(Status::Working) => (spinner, Colour::None),
        Some(Status::InputRequired) => ("⏸", Colour::Yellow),
        Some(Status::Completed) => ("✔", Colour::Green),
        Some(Status::Failed) => ("✘", Colour::Red),
        Some(Status::Cancelled) => ("⊘", Colour::Muted),
    };
    let mut text = match paint {
        Paint::Plain => String::new(),
        Paint::Icons | Paint::Colours => format!("{} ", paint.of(colour, icon)),
    };
    text += &match &view.task {
        Some(task) => format!("{}: task {}", words(task.status), task.id),
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
        text += &format!(
            " {}",
            paint.of(Colour::Muted, &format!("— {}", one_line(said)))
        );
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    None,
    Yellow,
    Green,
    Red,
    Muted,
}

impl Paint {
    fn here(terminal: bool) -> Self {
        match (terminal, std::env::var_os("NO_COLOR")) {
            (false, _) => Self::Plain,
            (true, Some(_)) => Self::Icons,
            (true, None) => Self::Colours,
        }
    }

    fn of(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Yellow => 33,
            Colour::Green => 32,
            Colour::Red => 31,
            Colour::Muted => 2,
            Colour::None => return text.into(),
        };
        match self {
            Self::Colours => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Plain | Self::Icons => text.into(),
        }
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

const SPINNER: [&str; 4] = ["|", "/", "-", "\\"];

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
            (
                Status::Working,
                "| Working: task t1 \x1b[2m— reading\x1b[0m",
            ),
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
            assert_eq!(indicator(&view(status), "|", Paint::Colours), expected);
        }
    }

    #[test]
    fn without_colours_the_words_are_the_same() {
        let failed = view(Status::Failed);
        let icons = indicator(&failed, "|", Paint::Icons);
        assert_eq!(icons, "✘ Failed: task t1 — reading");
        let plain = indicator(&failed, "|", Paint::Plain);
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
            indicator(&view, "|", Paint::Plain),
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
