//! How a call stands, on standard error: one line that changes on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use outlast::back::View;
use outlast::wire::Status;

/// Shows how a call stands.
pub(crate) struct StatusLine {
    terminal: bool,
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
        Self {
            terminal: std::io::stderr().is_terminal(),
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
        let text = sentence(view);
        match self.terminal {
            true => {
                self.beat += 1;
                let spinner = SPINNER[self.beat % SPINNER.len()];
                let seconds = self.began.elapsed().as_secs();
                eprint!("\r\x1b[2K{spinner} {text} · {seconds} s");
                let _ = std::io::stderr().flush();
            }
            false if text != self.last => {
                eprintln!("{text}");
                self.last = text;
            }
            false => {}
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.terminal {
            eprint!("\r\x1b[2K");
        }
    }
}

/// How a call stands, in words.
pub(crate) fn sentence(view: &View) -> String {
    let mut parts = vec![match &view.task {
        Some(task) => format!("{} task {}", word(task.status), task.id),
        None => format!("calling {}", view.tool),
    }];
    if view.cancelling {
        parts.push("cancelling".into());
    }
    let said = view
        .progress
        .as_ref()
        .and_then(|progress| progress.message.as_deref());
    let said = said.or_else(|| view.task.as_ref().and_then(|task| task.message.as_deref()));
    parts.extend(
        view.progress
            .as_ref()
            .map(|progress| bar(progress.progress, progress.total)),
    );
    parts.extend(said.map(one_line));
    parts.join(" · ")
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Working => "working:",
        Status::InputRequired => "waiting for input:",
        Status::Completed => "completed:",
        Status::Failed => "failed:",
        Status::Cancelled => "cancelled:",
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
