//! The text formats of the specification: email, uri, date, date-time.

/// A format of a text field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An email address.
    Email,
    /// A URI.
    Uri,
    /// A date.
    Date,
    /// A date and a time with its zone.
    DateTime,
}

impl Format {
    /// Returns the format with this name. An unknown name restricts nothing.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "email" => Some(Self::Email),
            "uri" => Some(Self::Uri),
            "date" => Some(Self::Date),
            "date-time" => Some(Self::DateTime),
            _ => None,
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Email => "email address",
            Self::Uri => "URI",
            Self::Date => "date, such as 2026-07-28",
            Self::DateTime => "date and time, such as 2026-07-28T09:30:00Z",
        }
    }

    /// Checks the text, or says what to type instead.
    pub(super) fn check(self, text: &str) -> Result<(), String> {
        let fits = match self {
            Self::Email => is_email(text),
            Self::Uri => url::Url::parse(text).is_ok(),
            Self::Date => is_date(text),
            Self::DateTime => text.parse::<jiff::Timestamp>().is_ok(),
        };
        if fits {
            return Ok(());
        }
        Err(match self {
            Self::Email => "type an email address, such as ada@example.org".into(),
            Self::Uri => "type a URI, such as https://example.org".into(),
            Self::Date | Self::DateTime => format!("type a {}", self.describe()),
        })
    }
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    !local.is_empty() && !domain.is_empty() && !text.contains(char::is_whitespace)
}

/// Whether the text is a full date of RFC 3339. `jiff` alone also accepts a date with a time.
fn is_date(text: &str) -> bool {
    text.len() == "2026-07-28".len() && text.parse::<jiff::civil::Date>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_checked() {
        for (name, good, bad) in [
            ("email", "ada@example.org", "ada"),
            ("email", "a@b", "a b@c"),
            ("uri", "https://example.org/x", "example"),
            ("date", "2026-07-28", "Ada"),
            ("date", "2024-02-29", "2026-02-29"),
            ("date", "2026-07-28", "2026-07-28T01:00:00Z"),
            ("date-time", "2026-07-28T09:30:00Z", "2026-07-28"),
            ("date-time", "2026-07-28T09:30:00+02:00", "09:30"),
        ] {
            let format = Format::named(name).expect("the name is known");
            assert_eq!(format.check(good), Ok(()), "{name} {good}");
            assert!(format.check(bad).is_err(), "{name} {bad}");
        }
        assert_eq!(Format::named("hostname"), None);
    }
}
