//! The output of a command that is not a valid message. It is quoted in the error if the command is
//! not an MCP server.

use std::collections::VecDeque;
use std::sync::Arc;

use outlast::transport::child::OnLine;
use parking_lot::Mutex;

/// The last lines that a command printed. Duplicates are dropped, because the command starts a
/// second time for the other era. Clones share the lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandOutput(Arc<Mutex<VecDeque<String>>>);

impl CommandOutput {
    /// Records each line before it goes to `next`.
    pub(super) fn before(&self, next: OnLine) -> OnLine {
        let lines = self.0.clone();
        Arc::new(move |line| {
            let mut kept = lines.lock();
            let text: String = line.chars().take(MAX_LINE_CHARS).collect();
            if !text.trim().is_empty() && !kept.contains(&text) {
                kept.push_back(text);
            }
            if kept.len() > MAX_LINES {
                kept.pop_front();
            }
            drop(kept);
            next(line);
        })
    }

    /// The lines, in the order of their output.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }
}

/// How many lines are kept.
const MAX_LINES: usize = 8;

/// How many characters of a line are kept.
const MAX_LINE_CHARS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_stored_up_to_a_limit() {
        let printed = CommandOutput::default();
        let passed = Arc::new(Mutex::new(0));
        let count = passed.clone();
        let on_line = printed.before(Arc::new(move |_| *count.lock() += 1));
        for number in 0..100 {
            on_line(&format!("{number} {}", "x".repeat(1_000)));
        }
        on_line("");
        on_line(&format!("99 {}", "x".repeat(1_000)));
        let lines = printed.lines();
        assert_eq!(lines.len(), MAX_LINES);
        assert!(lines[MAX_LINES - 1].starts_with("99 x"), "{lines:?}");
        assert!(lines.iter().all(|line| line.len() == MAX_LINE_CHARS));
        assert_eq!(*passed.lock(), 102);
    }
}
