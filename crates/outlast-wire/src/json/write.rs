//! Writes JSON text directly into a `String`: objects member by member, values inserted unchanged.

use std::fmt::Display;
use std::fmt::Write as _;

use serde_json::Value;

use crate::json::scan::ordinary;
use crate::raw::RawRef;
use crate::time::Timestamp;

/// An object that is being written. [`ObjectWriter::end`] closes it.
pub(crate) struct ObjectWriter<'o> {
    out: &'o mut String,
    empty: bool,
}

impl<'o> ObjectWriter<'o> {
    /// Opens an object at the end of `out`.
    pub(crate) fn begin(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, empty: true }
    }

    /// A member whose value is the string `value`.
    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        quote(self.name(name), value);
    }

    /// A member whose value is already valid JSON.
    pub(crate) fn json(&mut self, name: &'static str, value: &str) {
        self.name(name).push_str(value);
    }

    /// A member whose value is displayed as JSON: a fraction, a boolean, an id.
    pub(crate) fn plain(&mut self, name: &'static str, value: impl Display) {
        let out = self.name(name);
        let _ = write!(out, "{value}");
    }

    /// A member whose value is a number.
    pub(crate) fn number(&mut self, name: &'static str, value: u64) {
        let mut digits = itoa::Buffer::new();
        self.name(name).push_str(digits.format(value));
    }

    /// A member whose value is a timestamp.
    pub(crate) fn timestamp(&mut self, name: &'static str, value: Timestamp) {
        let out = self.name(name);
        out.push('"');
        let _ = write!(out, "{value}");
        out.push('"');
    }

    /// A member whose value is what `write` appends, which must be one JSON value.
    pub(crate) fn nested(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        write(self.name(name));
    }

    /// The same with a name that a peer chose.
    pub(crate) fn keyed(&mut self, key: &str, write: impl FnOnce(&mut String)) {
        self.next();
        quote(self.out, key);
        self.out.push(':');
        write(self.out);
    }

    /// A member whose value is an array of strings.
    pub(crate) fn texts<T: AsRef<str>>(&mut self, name: &'static str, values: &[T]) {
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

    /// Closes the object with all members of another one, unchanged. None of them may have been
    /// written before.
    pub(crate) fn end_with(self, other: RawRef<'_>) {
        let rest = &other.as_str()[1..];
        if !self.empty && !rest.trim_start().starts_with('}') {
            self.out.push(',');
        }
        self.out.push_str(rest);
    }

    /// Our own names need no escapes.
    fn name(&mut self, name: &'static str) -> &mut String {
        debug_assert_eq!(quoted(name).len(), name.len() + 2, "{name}");
        self.next();
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        self.out
    }

    fn next(&mut self) {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
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

/// Appends a JSON value.
pub(crate) fn tree(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => {
            let _ = write!(out, "{number}");
        }
        Value::String(text) => quote(out, text),
        Value::Array(values) => {
            out.push('[');
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                tree(out, value);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut fields = ObjectWriter::begin(out);
            for (name, value) in members {
                fields.keyed(name, |out| tree(out, value));
            }
            fields.end();
        }
    }
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
    use crate::json::tests::any_json;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_quoted_so_that_it_reads_back(text: String) {
            prop_assert_eq!(serde_json::from_str::<String>(&quoted(&text)).unwrap(), text);
        }

        #[test]
        fn any_tree_reads_as_if_serde_json_had_written_it(value in any_json()) {
            let mut out = String::new();
            tree(&mut out, &value);
            let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            prop_assert_eq!(read(&out), read(&value.to_string()));
        }

        #[test]
        fn any_number_is_written_as_it_is_displayed(number: u64, shift in 0..64) {
            let number = number >> shift;
            let mut out = String::new();
            let mut fields = ObjectWriter::begin(&mut out);
            fields.number("n", number);
            fields.end();
            prop_assert_eq!(out, format!("{{\"n\":{number}}}"));
        }
    }
}
