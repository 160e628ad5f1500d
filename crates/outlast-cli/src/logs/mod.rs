//! What happens, told to whoever operates us: on standard error, or in a file of bounded size.
//!
//! At the levels up to `info` nothing is told that a client or a server said, and no secret: what ran, for whom, how it
//! ended, and why something was refused.

mod bounded;

use std::sync::Mutex;

use outlast::logs::Line;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;

use crate::args::{Format, Logs};
use crate::exit::Failure;

pub(crate) use bounded::{Bounded, append};

/// What is logged where nothing is said.
#[derive(Clone, Copy)]
pub(crate) enum Usual {
    /// Every step in the life of a task and of a server.
    Steps,
    /// What went wrong.
    Warnings,
}

/// Logs to standard error from now on.
pub(crate) fn to_stderr(logs: &Logs, usual: Usual) -> Result<(), Failure> {
    begin(logs, usual, std::io::stderr)
}

/// Logs to a file from now on.
pub(crate) fn to_file(logs: &Logs, usual: Usual, file: Bounded) -> Result<(), Failure> {
    begin(logs, usual, Mutex::new(file))
}

/// Whether what is asked for can be logged.
pub(crate) fn check(logs: &Logs) -> Result<(), Failure> {
    targets(logs, Usual::Steps).map(drop)
}

fn begin<W>(logs: &Logs, usual: Usual, writer: W) -> Result<(), Failure>
where
    W: for<'a> tracing_subscriber::fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    // Without anybody who listens, an event costs next to nothing.
    let Some(targets) = targets(logs, usual)? else {
        return Ok(());
    };
    let text = tracing_subscriber::fmt::layer().with_ansi(false);
    match logs.format {
        Format::Text => {
            let lines = text.event_format(Line).with_writer(writer);
            install(registry().with(targets).with(lines))
        }
        Format::Json => {
            let json = text.json().flatten_event(true).with_writer(writer);
            install(registry().with(targets).with(json))
        }
    }
}

fn install(subscriber: impl Subscriber + Send + Sync) -> Result<(), Failure> {
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| std::io::Error::other(error).into())
}

/// What is let through; `None` if nothing is.
fn targets(logs: &Logs, usual: Usual) -> Result<Option<Targets>, Failure> {
    let said = logs.level.clone().or_else(|| std::env::var(SETTING).ok());
    let said = said.filter(|said| !said.trim().is_empty());
    let Some(said) = said else {
        return Ok(Some(ours(match usual {
            Usual::Steps => LevelFilter::INFO,
            Usual::Warnings => LevelFilter::WARN,
        })));
    };
    if let Ok(level) = said.trim().parse() {
        return Ok((level != LevelFilter::OFF).then(|| ours(level)));
    }
    let wrong = |why: &str| {
        Failure::Usage(format!(
            "`{said}` is no level of a log{why}\n  next: write off, error, warn, info, debug or trace, or a list of TARGET=LEVEL"
        ))
    };
    // A word alone would be the name of a target, of which everything is logged.
    let is_said = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    if !said.split(',').all(is_said) {
        return Err(wrong(""));
    }
    let listed = said.parse().map_err(|error| wrong(&format!(": {error}")))?;
    Ok(Some(listed))
}

/// What we say up to that level, and only warnings of others.
fn ours(level: LevelFilter) -> Targets {
    Targets::new()
        .with_target("outlast", level)
        .with_default(level.min(LevelFilter::WARN))
}

/// The environment variable that says what is logged.
const SETTING: &str = "OUTLAST_LOG";

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    fn said(level: &str) -> Result<Option<Targets>, Failure> {
        let logs = Logs {
            level: Some(level.into()),
            format: Format::Text,
        };
        targets(&logs, Usual::Steps)
    }

    #[test]
    fn a_level_is_about_us_and_others_only_warn() {
        let targets = said("debug").unwrap().unwrap();
        assert!(targets.would_enable("outlast_engine::engine", &Level::DEBUG));
        assert!(!targets.would_enable("hyper::proto", &Level::INFO));
        assert!(targets.would_enable("hyper::proto", &Level::WARN));
        assert!(said("off").unwrap().is_none());
        let listed = said("warn,outlast::back=trace").unwrap().unwrap();
        assert!(listed.would_enable("outlast::back::exchange", &Level::TRACE));
        assert!(!listed.would_enable("outlast::audit", &Level::INFO));
    }

    #[test]
    fn what_is_no_level_is_told_with_a_next_step() {
        for odd in ["loud", "outlast=loud", "info,loud"] {
            let told = said(odd).unwrap_err().to_string();
            assert!(told.contains(odd) && told.contains("next:"), "{told}");
        }
    }
}
