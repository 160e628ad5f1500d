//! The output of a process, line by line. Every wait has a limit.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The lines of one output of a process.
pub struct OutputLines {
    lines: Receiver<String>,
    /// Every line so far.
    text: String,
}

impl OutputLines {
    /// Reads `output` to its end in a thread of its own, so that a full pipe never stops the
    /// process.
    pub fn read(output: impl Read + Send + 'static) -> Self {
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The test may have ended.
                let _ = send.send(line);
            }
        });
        Self {
            lines,
            text: String::new(),
        }
    }

    /// The next line, or none at the end.
    ///
    /// # Panics
    ///
    /// If neither comes within two minutes.
    #[expect(
        clippy::should_implement_trait,
        reason = "a test waits for a line; it does not iterate"
    )]
    pub fn next(&mut self) -> Option<String> {
        match self.lines.recv_timeout(WAIT_LIMIT) {
            Ok(line) => {
                self.text.push_str(&line);
                self.text.push('\n');
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                let seconds = WAIT_LIMIT.as_secs();
                panic!("no line within {seconds} s after {:?}", self.text);
            }
        }
    }

    /// Waits for a line that is `wanted`, and passes the others over.
    ///
    /// # Panics
    ///
    /// If the output ends without one, or none comes within two minutes.
    pub fn find(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        loop {
            match self.next() {
                Some(line) if wanted(&line) => return line,
                Some(_) => {}
                None => panic!("{what} was not printed: {:?}", self.text),
            }
        }
    }

    /// Waits for a line that contains `text`.
    ///
    /// # Panics
    ///
    /// As [`OutputLines::find`].
    pub fn until(&mut self, text: &str) -> String {
        self.find(text, |line| line.contains(text))
    }

    /// Waits until the output is closed and returns all that was printed.
    pub fn finish(&mut self) -> String {
        while self.next().is_some() {}
        std::mem::take(&mut self.text)
    }
}

/// Longer than any step takes on a busy machine.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(120);
