//! Lines that the user types. A separate thread reads them, because a blocking read cannot be
//! interrupted.

use std::io::BufRead;
use std::sync::OnceLock;

use tokio::sync::{Mutex, mpsc};

use crate::terminal::say;

/// Lines from standard input. Reading starts with the first call of `next`.
#[derive(Default)]
pub(crate) struct Lines(OnceLock<Mutex<mpsc::Receiver<String>>>);

impl Lines {
    /// Returns the next line, or `None` at the end of the input.
    pub(crate) async fn next(&self) -> Option<String> {
        self.0
            .get_or_init(|| Mutex::new(read()))
            .lock()
            .await
            .recv()
            .await
    }

    /// Asks until the answer begins with one of `choices`. Returns `None` at the end of the input.
    pub(crate) async fn choose<'a>(&self, question: &str, choices: &[&'a str]) -> Option<&'a str> {
        loop {
            say!("{question}");
            let line = self.next().await?.trim().to_lowercase();
            if let Some(choice) = choices.iter().find(|choice| line.starts_with(**choice)) {
                return Some(choice);
            }
        }
    }
}

fn read() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
