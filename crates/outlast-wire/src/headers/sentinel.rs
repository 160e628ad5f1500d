//! The encoding `=?base64?…?=` of header values that HTTP cannot transport unchanged (V2-HH-5).

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine as _};

/// The value is marked as Base64 and is not valid Base64 of UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header value is not valid Base64 of UTF-8")]
pub struct InvalidEncoding;

/// Encodes `value` for a header. It is unchanged if it is printable ASCII without spaces at its
/// ends and does not look encoded itself.
pub fn encode(value: &str) -> Cow<'_, str> {
    let printable = value.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
    if printable && value.trim_ascii() == value && inside(value).is_none() {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(PREFIX.len() + value.len() * 4 / 3 + 4 + SUFFIX.len());
    out.push_str(PREFIX);
    BASE64_STANDARD.encode_string(value, &mut out);
    out.push_str(SUFFIX);
    Cow::Owned(out)
}

/// Decodes a header value, without the white space around it (V2-HH-4). A value without both
/// markers is returned unchanged.
pub fn decode(header: &str) -> Result<Cow<'_, str>, InvalidEncoding> {
    let value = header.trim_matches([' ', '\t']);
    let Some(encoded) = inside(value) else {
        return Ok(Cow::Borrowed(value));
    };
    let bytes = BASE64_STANDARD
        .decode(encoded)
        .map_err(|_| InvalidEncoding)?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| InvalidEncoding)
}

fn inside(value: &str) -> Option<&str> {
    value.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_values_that_http_cannot_transport_are_encoded() {
        for plain in [
            "",
            "render_map",
            "a b",
            "=?base64?SGVsbG8=",
            "SGVsbG8=",
            "=?BASE64?x?=",
        ] {
            assert_eq!(encode(plain), plain);
            assert_eq!(decode(plain).unwrap(), plain);
        }
        for (value, header) in [
            ("Grüße", "=?base64?R3LDvMOfZQ==?="),
            (" a", "=?base64?IGE=?="),
            ("a\tb", "=?base64?YQli?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            assert_eq!(encode(value), header);
            assert_eq!(decode(header).unwrap(), value);
        }
    }

    #[test]
    fn an_invalid_encoding_is_an_error() {
        for header in [
            "=?base64?SGVsbG8?=",
            "=?base64?Zg=?=",
            "=?base64?Zh==?=",
            "=?base64?====?=",
            "=?base64?Zm-_?=",
            "=?base64?SGVs!!!bG8=?=",
            "=?base64?/w==?=",
        ] {
            assert_eq!(decode(header), Err(InvalidEncoding), "{header}");
        }
    }

    proptest! {
        #[test]
        fn any_value_survives_a_header(value: String) {
            let header = format!(" {}\t", encode(&value));
            prop_assert!(header.trim_ascii().bytes().all(|byte| matches!(byte, 0x20..=0x7e)));
            prop_assert_eq!(decode(&header).unwrap(), value);
        }

        #[test]
        fn any_header_is_read_or_refused(header: String) {
            let _ = decode(&header);
        }
    }
}
