//! Moments as MCP writes them: milliseconds inside, RFC 3339 in UTC on the wire.

use std::fmt;
use std::str::FromStr;

/// Milliseconds since the Unix epoch, supplied by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// The text is not a moment in RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 timestamp")]
pub struct BadTimestamp;

impl Timestamp {
    /// This moment plus `millis`, at the end of time if that is later than it.
    pub fn plus(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this moment, zero if it is not earlier.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_to(f)
    }
}

impl Timestamp {
    /// Appends what is displayed.
    pub(crate) fn write_to(self, out: &mut impl fmt::Write) -> fmt::Result {
        let (days, millis) = (self.0 / DAY, self.0 % DAY);
        let (year, month, day) = civil_from_days(days);
        // Every task carries two moments, so they are worth more than seven formatted integers.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut two = |at: usize, number: u64| {
            text[at] += (number / 10 % 10) as u8;
            text[at + 1] += (number % 10) as u8;
        };
        two(0, year / 100);
        two(2, year);
        two(5, month);
        two(8, day);
        two(11, millis / 3_600_000);
        two(14, millis / 60_000 % 60);
        two(17, millis / 1_000 % 60);
        two(20, millis / 10);
        text[22] += (millis % 10) as u8;
        if year > 9_999 {
            write!(out, "{}", year / 10_000)?;
        }
        out.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    /// Reads any RFC 3339 moment from 1970 on; fractions beyond milliseconds are cut off.
    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        let bytes = text.as_bytes();
        if bytes.len() < 20 || !text.is_ascii() {
            return Err(BadTimestamp);
        }
        let number = |from: usize, to: usize| digits(&bytes[from..to]);
        let mark =
            |at: usize, any: &[u8]| any.contains(&bytes[at]).then_some(()).ok_or(BadTimestamp);
        mark(4, b"-")?;
        mark(7, b"-")?;
        mark(10, b"Tt ")?;
        mark(13, b":")?;
        mark(16, b":")?;
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let in_range = year >= 1970
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second <= 60;
        if !in_range {
            return Err(BadTimestamp);
        }
        let (millis, rest) = fraction(&bytes[19..])?;
        let offset = offset_minutes(rest)?;
        let local = days_from_civil(year, month, day) * DAY
            + hour * 3_600_000
            + minute * 60_000
            + second * 1_000
            + millis;
        let utc = i64::try_from(local).map_err(|_| BadTimestamp)? - offset * 60_000;
        u64::try_from(utc).map(Self).map_err(|_| BadTimestamp)
    }
}

const DAY: u64 = 86_400_000;

/// Year, month and day of the day that is `days` after 1970-01-01 (proleptic Gregorian).
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    // Years are counted from 0000-03-01, so that the leap day is the last of its year.
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn digits(bytes: &[u8]) -> Result<u64, BadTimestamp> {
    bytes.iter().try_fold(0, |sum, byte| match byte {
        b'0'..=b'9' => Ok(sum * 10 + u64::from(byte - b'0')),
        _ => Err(BadTimestamp),
    })
}

/// Milliseconds of an optional fraction, and what follows it.
fn fraction(bytes: &[u8]) -> Result<(u64, &[u8]), BadTimestamp> {
    let Some(rest) = bytes.strip_prefix(b".") else {
        return Ok((0, bytes));
    };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return Err(BadTimestamp);
    }
    let kept = length.min(3);
    let millis = digits(&rest[..kept])? * [1, 100, 10, 1][kept];
    Ok((millis, &rest[length..]))
}

fn offset_minutes(bytes: &[u8]) -> Result<i64, BadTimestamp> {
    let sign = match bytes {
        b"Z" | b"z" => return Ok(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return Err(BadTimestamp),
    };
    let [_, h1, h2, b':', m1, m2] = bytes else {
        return Err(BadTimestamp);
    };
    let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
    if hours > 23 || minutes > 59 {
        return Err(BadTimestamp);
    }
    i64::try_from(hours * 60 + minutes)
        .map(|total| sign * total)
        .map_err(|_| BadTimestamp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments_read_and_write() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_785_196_799_999, "2026-07-27T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp(millis).to_string(), text);
            assert_eq!(text.parse(), Ok(Timestamp(millis)));
        }
        let late = Timestamp(253_402_300_800_000);
        assert_eq!(late.to_string(), "10000-01-01T00:00:00.000Z");
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
    fn nonsense_is_refused() {
        for text in [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00.Z",
            "1969-12-31T23:59:59Z",
            "2026-01-01T00:00:00+1:00",
            "２026-01-01T00:00:00Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(BadTimestamp), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(millis in 0u64..253_402_300_800_000) {
            prop_assert_eq!(Timestamp(millis).to_string().parse(), Ok(Timestamp(millis)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            let _ = text.parse::<Timestamp>();
        }
    }
}
