//! Unparsed JSON: parameters, results and errors that are only passed on.
//!
//! A [`Raw`] (shared) or [`RawRef`] (borrowed) is one valid JSON value without white space around
//! it. It is not parsed, so unknown members keep their bytes and a large payload costs one pointer.
//! [`crate::object`] reads and changes single members.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{scan, write};

/// One valid JSON value, shared and not parsed.
#[derive(Clone)]
pub struct Raw(Arc<str>);

impl Raw {
    /// `{}`.
    pub fn empty_object() -> Self {
        RawRef::EMPTY_OBJECT.to_raw()
    }

    /// Checks that `text` is one JSON value.
    pub fn parse(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(Self::from)
    }

    /// Encodes `value`. Fails if it cannot be JSON, such as a map with keys that are not strings.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::from)
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same value, borrowed.
    pub fn borrow(&self) -> RawRef<'_> {
        RawRef(&self.0)
    }

    /// The length of the text in bytes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Parses the value as a `T`.
    pub fn open<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    /// Wraps what `write` appends to an empty string. The writers of this crate append one valid
    /// value.
    pub(crate) fn written(write: impl FnOnce(&mut String)) -> Self {
        Self::written_with_capacity(0, write)
    }

    /// The same with capacity for a payload of this size.
    pub(crate) fn written_with_capacity(payload: usize, write: impl FnOnce(&mut String)) -> Self {
        let mut text = String::with_capacity(256 + payload);
        write(&mut text);
        debug_assert!(scan::is_value(&text), "a writer made invalid JSON: {text}");
        Self(text.into())
    }
}

/// One valid JSON value, borrowed and not parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawRef<'a>(&'a str);

impl<'a> RawRef<'a> {
    /// `{}`.
    pub const EMPTY_OBJECT: Self = Self("{}");

    /// Checks that `text` is one JSON value, and removes the white space around it.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<&RawValue>(text).map(|value| Self(value.get()))
    }

    /// A value that the scanner has just accepted.
    pub(crate) const fn scanned(text: &'a str) -> Self {
        Self(text)
    }

    /// The JSON text.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// The same value, shared. Copies the text.
    pub fn to_raw(self) -> Raw {
        Raw(self.0.into())
    }

    /// Parses the value as a `T`.
    pub fn open<T: Deserialize<'a>>(self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0)
    }

    /// Whether this is an object.
    pub fn is_object(self) -> bool {
        self.first() == b'{'
    }

    /// Whether this is a string.
    pub fn is_text(self) -> bool {
        self.first() == b'"'
    }

    /// Whether this is `null`.
    pub fn is_null(self) -> bool {
        self.first() == b'n'
    }

    /// The string, if the value is a string of valid Unicode.
    pub fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            self.open().ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// The string, or the JSON text if the value is not a string or not valid Unicode (a lone
    /// surrogate).
    pub(crate) fn text_or_json(self) -> Cow<'a, str> {
        self.text().unwrap_or(Cow::Borrowed(self.0))
    }

    /// The boolean, if the value is one.
    pub fn boolean(self) -> Option<bool> {
        match self.first() {
            b't' => Some(true),
            b'f' => Some(false),
            _ => None,
        }
    }

    /// The integer, if the value is one in range without fraction or exponent.
    pub fn integer(self) -> Option<i64> {
        self.0.parse().ok()
    }

    /// The number, if the value is one.
    pub fn number(self) -> Option<f64> {
        matches!(self.first(), b'-' | b'0'..=b'9')
            .then(|| self.0.parse().ok())
            .flatten()
    }

    /// The first byte, which shows the type, because there is no white space around a value.
    fn first(self) -> u8 {
        self.0.as_bytes().first().copied().unwrap_or_default()
    }
}

impl From<&Value> for Raw {
    fn from(value: &Value) -> Self {
        Self::written(|out| write::tree(out, value))
    }
}

impl From<Box<RawValue>> for Raw {
    fn from(value: Box<RawValue>) -> Self {
        Self(Arc::from(Box::<str>::from(value)))
    }
}

impl<'a> From<&'a Raw> for RawRef<'a> {
    fn from(raw: &'a Raw) -> Self {
        raw.borrow()
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Raw {}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({})", self.as_str())
    }
}

impl fmt::Debug for RawRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawRef({})", self.as_str())
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.borrow().serialize(serializer)
    }
}

impl Serialize for RawRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Only `RawValue` makes serde_json insert text, and it is created by parsing the text.
        serde_json::from_str::<&RawValue>(self.0)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Record {
        before: u8,
        body: Raw,
    }

    #[test]
    fn a_record_carries_its_body_byte_for_byte() {
        let text = r#"{"before":1,"body":{ "n" : 1.0e2,"s":"\u0041","n":-0 }}"#;
        let record: Record = serde_json::from_str(text).unwrap();
        assert_eq!(
            record.body.as_str(),
            r#"{ "n" : 1.0e2,"s":"\u0041","n":-0 }"#
        );
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
    }

    #[test]
    fn one_value_is_accepted_and_surrounding_space_removed() {
        assert_eq!(Raw::parse(" [1] \n".into()).unwrap().as_str(), "[1]");
        assert_eq!(RawRef::parse(" [1] ").unwrap().as_str(), "[1]");
        for text in ["", "1 2", "{", "\u{feff}1"] {
            assert!(Raw::parse(text.into()).is_err(), "{text}");
            assert!(RawRef::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_is_read_by_its_type() {
        let raw = |text| RawRef::parse(text).unwrap();
        assert_eq!(raw(r#""a\u0062""#).text().as_deref(), Some("ab"));
        assert_eq!(raw(r#""\ud800""#).text(), None);
        assert_eq!(raw("7").text(), None);
        assert_eq!(
            (raw("true").boolean(), raw("\"true\"").boolean()),
            (Some(true), None)
        );
        assert_eq!(
            (raw("-7").integer(), raw("7.0").integer()),
            (Some(-7), None)
        );
        assert_eq!(
            (raw("7.5e1").number(), raw("\"7\"").number()),
            (Some(75.0), None)
        );
        assert_eq!(raw("99999999999999999999").integer(), None);
        assert!(raw("{}").is_object() && raw("null").is_null() && raw("\"\"").is_text());
    }
}
