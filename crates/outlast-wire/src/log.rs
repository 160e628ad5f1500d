//! Log messages for a client, and their levels. Both generations have the same messages. They
//! differ in how a client sets its level (V1: `logging/setLevel`, V2: META/logLevel).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::codes::invalid_params;
use crate::envelope::ErrorObject;
use crate::json::write::ObjectWriter;
use crate::object::pick;
use crate::raw::{Raw, RawRef};

/// The method of a log message.
pub const MESSAGE: &str = "notifications/message";
/// V1: the method that sets the minimum level.
pub const SET_LEVEL: &str = "logging/setLevel";

/// The levels of syslog, the least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Details for debugging.
    Debug,
    /// Normal operation.
    Info,
    /// Normal, but significant.
    Notice,
    /// A problem that does not prevent the operation.
    Warning,
    /// An operation failed.
    Error,
    /// A component does not work.
    Critical,
    /// Immediate action is required.
    Alert,
    /// The whole system does not work.
    Emergency,
}

/// The name is not one of the eight levels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown log level `{0}`; there are debug, info, notice, warning, error, critical, alert, emergency"
)]
pub struct UnknownLevel(pub String);

/// One log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The level.
    pub level: Level,
    /// The component that logs.
    pub logger: Option<Arc<str>>,
    /// The content: any JSON, often a string.
    pub data: Raw,
}

impl Level {
    /// The name of the level.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Reads the `level` of the params of [`SET_LEVEL`].
    pub fn requested(params: Option<RawRef<'_>>) -> Result<Self, ErrorObject> {
        let level = params.and_then(|params| {
            let [level] = pick(params, ["level"]).ok()?;
            level?.text()
        });
        let level = level.ok_or_else(|| invalid_params("`level` must be a string"))?;
        level
            .parse()
            .map_err(|unknown: UnknownLevel| invalid_params(unknown.to_string()))
    }
}

impl Log {
    /// Reads the params of a log notification, or `None` if they are invalid.
    pub fn read(params: RawRef<'_>) -> Option<Self> {
        let [level, logger, data] = pick(params, ["level", "logger", "data"]).ok()?;
        Some(Self {
            level: level?.text()?.parse().ok()?,
            logger: logger.and_then(RawRef::text).map(|text| Arc::from(&*text)),
            data: data?.to_raw(),
        })
    }

    /// The params.
    pub fn to_raw(&self) -> Raw {
        Raw::written(|out| {
            let mut fields = ObjectWriter::begin(out);
            fields.text("level", self.level.as_str());
            if let Some(logger) = &self.logger {
                fields.text("logger", logger);
            }
            fields.json("data", self.data.as_str());
            fields.end();
        })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(word: &str) -> Result<Self, UnknownLevel> {
        ALL.into_iter()
            .find(|level| level.as_str() == word)
            .ok_or_else(|| UnknownLevel(word.to_owned()))
    }
}

const ALL: [Level; 8] = [
    Level::Debug,
    Level::Info,
    Level::Notice,
    Level::Warning,
    Level::Error,
    Level::Critical,
    Level::Alert,
    Level::Emergency,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back() {
        for level in ALL {
            let log = Log {
                level,
                logger: (level > Level::Notice).then(|| "a \"part\"".into()),
                data: Raw::parse(r#"{"n":1.50}"#.into()).unwrap(),
            };
            assert_eq!(Log::read(log.to_raw().borrow()), Some(log));
        }
        assert!(Level::Debug < Level::Info && Level::Alert < Level::Emergency);
    }

    #[test]
    fn an_unknown_level_is_refused_by_name() {
        let requested = |params: &str| Level::requested(Some(RawRef::parse(params).unwrap()));
        assert_eq!(requested(r#"{"level":"alert"}"#), Ok(Level::Alert));
        for odd in ["{}", r#"{"level":7}"#, r#"{"level":"loud"}"#, "[]"] {
            assert!(requested(odd).is_err(), "{odd}");
        }
        assert!(Level::requested(None).is_err());
    }
}
