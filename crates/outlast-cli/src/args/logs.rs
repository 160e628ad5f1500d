//! What can be typed about logs.

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Args)]
pub(crate) struct Logs {
    /// What is logged: off, error, warn, info, debug or trace, or a list such as `info,outlast::back=debug` [default:
    /// $OUTLAST_LOG]. From debug on, what clients and servers say may be in it.
    #[arg(long = "log", value_name = "LEVEL")]
    pub(crate) level: Option<String>,
    /// How log lines are written.
    #[arg(long = "log-format", value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object for each line.
    Json,
}

impl Logs {
    /// The same as words, for another process.
    pub(crate) fn words(&self) -> Vec<String> {
        let format = match self.format {
            Format::Text => "text",
            Format::Json => "json",
        };
        let mut words = vec!["--log-format".to_owned(), format.to_owned()];
        if let Some(level) = &self.level {
            words.extend(["--log".to_owned(), level.clone()]);
        }
        words
    }
}
