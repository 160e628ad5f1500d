//! Lines that a person types. They are read by a thread of their own, since reading cannot be interrupted.

use std::io::BufRead;
use std::sync::OnceLock;

use tokio::sync::{Mutex, mpsc};

use crate::terminal::say;

/// Lines from standard input. Nothing is read before somebody wants a line.
#[derive(Default)]
pub(crate) struct Lines(OnceLock<Mutex<mpsc::Receiver<String>>>);

impl Lines {
    /// The next line; none at the end of the input.
    pub(crate) async fn next(&self) -> Option<String> {
        self.0
            .get_or_init(|| Mutex::new(read()))
            .lock()
            .await
            .recv()
            .await
    }

    /// Asks until the answer begins with one of `choices`; none at the end of the input.
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
    let (tell, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if tell.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
