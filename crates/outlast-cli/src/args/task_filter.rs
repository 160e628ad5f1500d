//! The options that search the tasks of a store.

use std::str::FromStr;

use clap::Parser;
use outlast::task::Owner;
use outlast::wire::Timestamp;
use outlast_engine::store::{Filter, Status};

/// Which tasks to list. All given options must match.
#[derive(Debug, Parser)]
pub(crate) struct TaskFilter {
    /// Without TARGET: only tasks with one of these statuses: `working`, `input_required`,
    /// `completed`, `failed` or `cancelled`, separated by commas.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status)]
    status: Vec<Status>,
    /// Without TARGET: only calls of this tool.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Without TARGET: only calls to this server, by its name at the gateway.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Without TARGET: only tasks created since then: an age such as `90s`, `30m`, `2h` or `7d`, or
    /// a time such as `2026-07-28T09:00:00Z`.
    #[arg(long, value_name = "TIME")]
    since: Option<Since>,
    /// Without TARGET: only tasks whose id begins with this text, or whose tool or status message
    /// contains it.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

impl TaskFilter {
    pub(crate) fn is_given(&self) -> bool {
        !self.status.is_empty()
            || self.tool.is_some()
            || self.server.is_some()
            || self.since.is_some()
            || self.text.is_some()
    }

    /// The filter of a store at the time `now`.
    pub(crate) fn of(&self, owner: Option<Owner>, now: Timestamp) -> Filter {
        Filter {
            owner,
            runner: self.server.as_deref().map(Into::into),
            tool: self.tool.as_deref().map(Into::into),
            statuses: self.status.iter().copied().collect(),
            created_from: self.since.map(|since| since.before(now)),
            text: self.text.as_deref().map(Into::into),
        }
    }
}

fn status(word: &str) -> Result<Status, String> {
    Status::parse(word).ok_or_else(|| {
        let words = Status::ALL.map(Status::word);
        format!("expected one of {}", words.join(", "))
    })
}

/// A status in which a task has ended.
pub(super) fn ended_status(word: &str) -> Result<Status, String> {
    match Status::parse(word) {
        Some(ended @ (Status::Completed | Status::Failed | Status::Cancelled)) => Ok(ended),
        _ => Err("expected one of completed, failed, cancelled".into()),
    }
}

/// An age in milliseconds.
pub(super) fn age_ms(text: &str) -> Result<u64, String> {
    let expected = || "expected an age such as 90s, 30m, 2h or 7d".to_owned();
    let unit_ms = match text.as_bytes().last() {
        Some(b's') => 1_000,
        Some(b'm') => 60_000,
        Some(b'h') => 3_600_000,
        Some(b'd') => 86_400_000,
        _ => return Err(expected()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| expected())?;
    Ok(count.saturating_mul(unit_ms))
}

/// An age or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    AgeMs(u64),
    Time(Timestamp),
}

impl Since {
    fn before(self, now: Timestamp) -> Timestamp {
        match self {
            Self::AgeMs(age) => Timestamp(now.0.saturating_sub(age)),
            Self::Time(time) => time,
        }
    }
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            "expected an age such as 90s, 30m, 2h or 7d, or a time such as 2026-07-28T09:00:00Z"
                .to_owned()
        };
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            let ms = u64::try_from(time.as_millisecond()).map_err(|_| expected())?;
            return Ok(Self::Time(Timestamp(ms)));
        }
        age_ms(text).map(Self::AgeMs).map_err(|_| expected())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_or_a_time_is_accepted() {
        for (text, expected) in [
            ("90s", Since::AgeMs(90_000)),
            ("2h", Since::AgeMs(7_200_000)),
            ("7d", Since::AgeMs(604_800_000)),
            ("1970-01-01T00:00:01Z", Since::Time(Timestamp(1_000))),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "s",
            "2w",
            "-1h",
            "tomorrow",
            "1é",
            "1969-01-01T00:00:00Z",
        ] {
            assert!(text.parse::<Since>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_age_longer_than_all_time_lists_everything() {
        let since: Since = "18446744073709551615d".parse().expect("a number");
        assert_eq!(since.before(Timestamp(5)), Timestamp(0));
    }
}
