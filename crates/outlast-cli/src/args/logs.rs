//! The options of the log.

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Args)]
pub(crate) struct Logs {
    /// What to log: off, error, warn, info, debug or trace; a list of TARGET=LEVEL; or both
    /// [default: $OUTLAST_LOG]. `outlast::audit=info` adds one line per lifecycle event of a task.
    /// From debug on, the log can contain what clients and servers send.
    #[arg(long = "log", value_name = "LEVEL")]
    pub(crate) level: Option<String>,
    /// The format of log lines.
    #[arg(long = "log-format", value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl Logs {
    /// The options as command-line arguments for another process.
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
