//! Timestamps: milliseconds in memory, RFC 3339 in UTC on the wire.

use std::fmt;
use std::str::FromStr;

use jiff::fmt::StdFmtWrite;
use jiff::fmt::temporal::{DateTimeParser, DateTimePrinter};

/// Milliseconds since the Unix epoch, supplied by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// The text is not a timestamp of RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 timestamp")]
pub struct InvalidTimestamp;

impl Timestamp {
    /// Adds `millis`, up to the largest timestamp.
    pub fn plus(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// The milliseconds from `earlier` to this timestamp, or zero if it is not earlier.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 has years of four digits. A later timestamp is displayed as the last possible one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = i64::try_from(self.0).ok();
        let moment = moment.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
        PRINTER
            .print_timestamp(&moment.unwrap_or(jiff::Timestamp::MAX), StdFmtWrite(f))
            .map_err(|_| fmt::Error)
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Reads any RFC 3339 timestamp from 1970 on. Fractions beyond milliseconds are cut off.
    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let moment = PARSER.parse_timestamp(text).map_err(|_| InvalidTimestamp)?;
        let millis = u64::try_from(moment.as_millisecond()).map_err(|_| InvalidTimestamp)?;
        // The last second before 1970 is rounded towards zero.
        if moment.as_nanosecond() >= 0 {
            Ok(Self(millis))
        } else {
            Err(InvalidTimestamp)
        }
    }
}

const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
const PARSER: DateTimeParser = DateTimeParser::new();

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_timestamps_are_parsed_and_written() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_785_196_799_999, "2026-07-27T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp(millis).to_string(), text);
            assert_eq!(text.parse(), Ok(Timestamp(millis)));
        }
        for late in [253_402_300_800_000, u64::MAX] {
            assert_eq!(Timestamp(late).to_string(), "9999-12-30T22:00:00.999Z");
        }
    }

    #[test]
    fn field_variants_are_read() {
        let noon = Ok(Timestamp(1_767_225_600_000 + 43_200_000));
        for text in [
            "2026-01-01T12:00:00Z",
            "2026-01-01T14:00:00+02:00",
            "2026-01-01t12:00:00.0000009z",
        ] {
            assert_eq!(text.parse(), noon, "{text}");
        }
    }

    #[test]
    fn invalid_timestamps_are_refused() {
        for text in [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00.Z",
            "1969-12-31T23:59:59Z",
            "1969-12-31T23:59:59.9999Z",
            "2026-01-01T00:00:00+1:00",
            "２026-01-01T00:00:00Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_written_timestamp_is_read_back(millis in 0u64..253_402_207_200_000) {
            prop_assert_eq!(Timestamp(millis).to_string().parse(), Ok(Timestamp(millis)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            let _ = text.parse::<Timestamp>();
        }
    }
}
