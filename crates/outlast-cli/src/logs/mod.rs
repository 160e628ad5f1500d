//! The log: on standard error, or in a file of bounded size.
//!
//! Up to level `info` the log contains no secret and nothing that a client or a server sent. At the
//! default level, no request writes a line. The audit trail (`outlast::audit`, one line per
//! lifecycle event of a task and per refused request) is off by default. It can have its own file.

mod bounded_file;
mod clean_writer;

use std::sync::Mutex;

use outlast::engine::AUDIT;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;

use crate::args::{Format, Logs};
use crate::exit::Failure;

use clean_writer::CleanMakeWriter;

pub(crate) use bounded_file::{BoundedFile, append};

/// Starts to log to standard error, at `default` if no level is given.
pub(crate) fn to_stderr(logs: &Logs, default: LevelFilter) -> Result<(), Failure> {
    begin(logs, default, std::io::stderr)
}

/// As [`to_stderr`], and writes the audit trail to `audit`, as one object per line.
pub(crate) fn to_stderr_and_audit(
    logs: &Logs,
    default: LevelFilter,
    audit: Option<BoundedFile>,
) -> Result<(), Failure> {
    let Some(audit) = audit else {
        return to_stderr(logs, default);
    };
    let filter = filter(logs, default)?;
    let writer = CleanMakeWriter {
        writers: std::io::stderr,
        format: logs.format,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(writer);
    let trail = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_level(false)
        .with_target(false)
        .with_current_span(false)
        .with_span_list(false)
        .with_writer(Mutex::new(audit))
        .with_filter(Targets::new().with_target(AUDIT, LevelFilter::INFO));
    match logs.format {
        Format::Text => install(registry().with(trail).with(lines.with_filter(filter))),
        Format::Json => {
            let lines = lines.json().flatten_event(true);
            install(registry().with(trail).with(lines.with_filter(filter)))
        }
    }
}

/// Starts to log to a file, at `default` if no level is given.
pub(crate) fn to_file(logs: &Logs, default: LevelFilter, file: BoundedFile) -> Result<(), Failure> {
    begin(logs, default, Mutex::new(file))
}

pub(crate) fn check(logs: &Logs) -> Result<(), Failure> {
    filter(logs, LevelFilter::INFO).map(drop)
}

fn begin<W>(logs: &Logs, default: LevelFilter, writer: W) -> Result<(), Failure>
where
    W: for<'a> tracing_subscriber::fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = filter(logs, default)?;
    let writer = CleanMakeWriter {
        writers: writer,
        format: logs.format,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(writer);
    match logs.format {
        Format::Text => install(registry().with(filter).with(lines)),
        Format::Json => install(
            registry()
                .with(filter)
                .with(lines.json().flatten_event(true)),
        ),
    }
}

fn install(subscriber: impl Subscriber + Send + Sync) -> Result<(), Failure> {
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| std::io::Error::other(error).into())
}

/// The events that are written. A level applies to our own targets. Entries of the form
/// TARGET=LEVEL are added to it.
fn filter(logs: &Logs, default: LevelFilter) -> Result<Targets, Failure> {
    let given = logs
        .level
        .clone()
        .or_else(|| std::env::var(FILTER_VARIABLE).ok());
    let given = given.unwrap_or_default();
    let invalid = |why: &str| {
        Failure::Usage(format!(
            "`{given}` is not a valid log filter{why}\n  next: write off, error, warn, info, debug or trace, a list of TARGET=LEVEL, or both, such as `info,{AUDIT}=info`"
        ))
    };
    let (mut level, mut targets) = (default, Targets::new());
    let entries = given.split(',').map(str::trim);
    // An empty string would mean the level `error`.
    for entry in entries.filter(|entry| !entry.is_empty()) {
        if let Ok(of_all) = entry.parse() {
            level = of_all;
        } else if entry.contains('=') {
            let entry: Targets = entry
                .parse()
                .map_err(|error| invalid(&format!(": {error}")))?;
            targets = targets.with_targets(entry);
        } else {
            return Err(invalid(""));
        }
    }
    Ok(ours(level).with_targets(targets))
}

/// Our own events up to `level`, and only warnings of other crates. `debug` includes the audit
/// trail.
fn ours(level: LevelFilter) -> Targets {
    let audit = if level > LevelFilter::INFO {
        level
    } else {
        LevelFilter::OFF
    };
    Targets::new()
        .with_target("outlast", level)
        .with_target(AUDIT, audit)
        .with_default(level.min(LevelFilter::WARN))
}

/// The environment variable that sets the filter.
const FILTER_VARIABLE: &str = "OUTLAST_LOG";

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    fn given(level: &str) -> Result<Targets, Failure> {
        let logs = Logs {
            level: Some(level.into()),
            format: Format::Text,
        };
        filter(&logs, LevelFilter::INFO)
    }

    #[test]
    fn the_level_is_for_our_targets_and_others_only_warn() {
        let filter = given("debug").unwrap();
        assert!(filter.would_enable("outlast_engine::engine", &Level::DEBUG));
        assert!(!filter.would_enable("hyper::proto", &Level::INFO));
        assert!(filter.would_enable("hyper::proto", &Level::WARN));
        let filter = given("off").unwrap();
        assert!(!filter.would_enable("outlast::gateway", &Level::ERROR));
        assert!(!filter.would_enable("hyper::proto", &Level::ERROR));
    }

    #[test]
    fn a_list_of_targets_comes_on_top_of_the_level() {
        let filter = given("warn,outlast::client=trace").unwrap();
        assert!(filter.would_enable("outlast::client::exchange", &Level::TRACE));
        assert!(!filter.would_enable("outlast::gateway", &Level::INFO));
        for default in ["outlast::client=trace", "", " , "] {
            let filter = given(default).unwrap();
            assert!(filter.would_enable("outlast::gateway", &Level::INFO));
            assert!(!filter.would_enable("outlast::gateway", &Level::DEBUG));
        }
    }

    #[test]
    fn the_audit_trail_is_on_if_named_or_at_debug() {
        let is_on = |level: &str| given(level).unwrap().would_enable(AUDIT, &Level::INFO);
        for (level, expected) in [
            ("", false),
            ("warn", false),
            ("info", false),
            ("outlast=info", false),
            ("debug", true),
            ("outlast::audit=info", true),
            ("off,outlast::audit=info", true),
            ("outlast::audit=info,warn", true),
        ] {
            assert_eq!(is_on(level), expected, "{level}");
        }
    }

    #[test]
    fn an_invalid_filter_is_refused_with_a_next_step() {
        for invalid in ["loud", "outlast=loud", "info,loud"] {
            let error = given(invalid).unwrap_err().to_string();
            assert!(
                error.contains(invalid) && error.contains("next:"),
                "{error}"
            );
        }
    }
}
