//! Request ids and progress tokens: a string or an integer, stored exactly as received.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::json::write::quoted;
use crate::raw::{Raw, RawRef};

/// The id of a request (V1-BASE-1, V2-BASE-1), or a progress token.
///
/// It is written with the bytes that were read, whatever the size of the integer or the spelling of
/// the string. Two ids are equal if they are the same JSON value: `1` is not `"1"`, and `"a"` is
/// `"\u0061"`.
#[derive(Clone)]
pub struct Id(Form);

#[derive(Clone)]
enum Form {
    Integer(i64),
    /// An integer that an `i64` cannot reproduce: out of range, or `-0`.
    Digits(Arc<str>),
    /// The JSON text of a string, quotes included.
    Quoted(Arc<str>),
}

/// The value is neither a string nor an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("id is neither a string nor an integer")]
pub struct InvalidId;

impl Id {
    /// A string id.
    pub fn text(text: &str) -> Self {
        Self(Form::Quoted(quoted(text).into()))
    }

    /// Reads an id. A number with a fraction or an exponent is not an id.
    pub fn read(value: RawRef<'_>) -> Result<Self, InvalidId> {
        let text = value.as_str();
        match text.as_bytes() {
            [b'"', ..] => Ok(Self(Form::Quoted(text.into()))),
            [b'-' | b'0'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {
                match text.parse() {
                    Ok(number) if text != "-0" => Ok(Self(Form::Integer(number))),
                    _ => Ok(Self(Form::Digits(text.into()))),
                }
            }
            _ => Err(InvalidId),
        }
    }

    /// The string, if this is a string id.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        let Form::Quoted(json) = &self.0 else {
            return None;
        };
        Some(RawRef::scanned(json).text_or_json())
    }

    /// The JSON value.
    pub fn to_raw(&self) -> Raw {
        Raw::written(|out| out.push_str(&self.to_string()))
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Self(Form::Integer(number))
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Form::Integer(one), Form::Integer(two)) => one == two,
            (Form::Digits(one), Form::Digits(two)) => one == two,
            (Form::Quoted(one), Form::Quoted(two)) => {
                one == two || self.as_text() == other.as_text()
            }
            _ => false,
        }
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Form::Integer(number) => number.hash(state),
            Form::Digits(digits) => digits.hash(state),
            Form::Quoted(_) => self.as_text().hash(state),
        }
    }
}

/// The JSON text.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Integer(number) => number.fmt(f),
            Form::Digits(text) | Form::Quoted(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_raw().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        Self::read(raw.borrow()).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_back_byte_for_byte() {
        for text in [
            "0",
            "-0",
            "-7",
            "9223372036854775807",
            "9223372036854775808",
            "123456789012345678901234567890",
            r#""""#,
            r#""a\u0062\/""#,
            r#""\ud800""#,
            "\"ü\"",
        ] {
            let id = Id::read(RawRef::parse(text).unwrap()).unwrap();
            assert_eq!(id.to_string(), text);
            let stored = serde_json::to_string(&id).unwrap();
            assert_eq!(stored, text);
            assert_eq!(serde_json::from_str::<Id>(&stored).unwrap(), id);
        }
    }

    #[test]
    fn only_strings_and_integers_are_ids() {
        for text in ["null", "true", "1.0", "1.5", "1e3", "{}", "[1]"] {
            assert_eq!(
                Id::read(RawRef::parse(text).unwrap()),
                Err(InvalidId),
                "{text}"
            );
        }
    }

    #[test]
    fn ids_are_equal_by_meaning() {
        let read = |text| Id::read(RawRef::parse(text).unwrap()).unwrap();
        assert_ne!(read("1"), read("\"1\""));
        assert_ne!(read("1"), read("2"));
        assert_eq!(read(r#""\u0061""#), Id::text("a"));
        assert_ne!(read(r#""\ud800""#), read(r#""\ud801""#));
        assert_eq!(read("1"), Id::from(1));
    }
}
