//! Writes JSON text straight into a `String`: objects field by field, values spliced in unchanged.

use std::fmt::Display;
use std::fmt::Write as _;

use crate::json::scan::ordinary;
use crate::time::Timestamp;

/// An object being written. [`Fields::end`] closes it.
pub(crate) struct Fields<'o> {
    out: &'o mut String,
    empty: bool,
}

impl<'o> Fields<'o> {
    /// Opens an object at the end of `out`.
    pub(crate) fn begin(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, empty: true }
    }

    /// A member whose value is the string `value`.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        quote(self.name(name), value);
    }

    /// A member whose value is valid JSON already.
    pub(crate) fn json(&mut self, name: &str, value: &str) {
        self.name(name).push_str(value);
    }

    /// A member whose value prints as JSON: a number, a truth value, an id.
    pub(crate) fn plain(&mut self, name: &str, value: impl Display) {
        let out = self.name(name);
        let _ = write!(out, "{value}");
    }

    /// A member whose value is a moment.
    pub(crate) fn moment(&mut self, name: &str, value: Timestamp) {
        let out = self.name(name);
        out.push('"');
        let _ = value.write_to(out);
        out.push('"');
    }

    /// A member whose value is whatever `write` appends, which must be one JSON value.
    pub(crate) fn nested(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        write(self.name(name));
    }

    /// A member whose value is an array of strings.
    pub(crate) fn texts<T: AsRef<str>>(&mut self, name: &str, values: &[T]) {
        let out = self.name(name);
        out.push('[');
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            quote(out, value.as_ref());
        }
        out.push(']');
    }

    /// Closes the object.
    pub(crate) fn end(self) {
        self.out.push('}');
    }

    fn name(&mut self, name: &str) -> &mut String {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
        quote(self.out, name);
        self.out.push(':');
        self.out
    }
}

/// Appends `text` as a JSON string.
pub(crate) fn quote(out: &mut String, text: &str) {
    out.push('"');
    let mut kept = 0;
    let plain = ordinary(text.as_bytes());
    for (at, byte) in text.bytes().enumerate().skip(plain) {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[kept..at]);
        kept = at + 1;
        if escape.is_empty() {
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[kept..]);
    out.push('"');
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote(&mut out, text);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_quoted_so_that_it_reads_back(text: String) {
            prop_assert_eq!(serde_json::from_str::<String>(&quoted(&text)).unwrap(), text);
        }
    }
}
