//! Finds the ends of values in text that is known to be valid JSON, without validating it again.
//!
//! Every lookup of a member skips all the others, so most reading happens here. For invalid JSON
//! the search ends early without harm.

use std::ops::Range;

use memchr::memchr2;

use crate::json::scan::StringSpan;

/// A position in one JSON text.
pub(crate) struct Skimmer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Skimmer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next byte that is not white space, without consuming it.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            let byte = *bytes.get(self.at)?;
            if !is_space(byte) {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Consumes `byte`, after any white space.
    pub(crate) fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Consumes one string.
    pub(crate) fn string(&mut self) -> Option<StringSpan> {
        (self.peek()? == b'"').then_some(())?;
        let start = self.at;
        let escaped = self.skip_string()?;
        Some(StringSpan {
            place: start..self.at,
            escaped,
        })
    }

    /// Consumes one value of any type and returns its position.
    pub(crate) fn value(&mut self) -> Option<Range<usize>> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => {
                self.skip_string()?;
            }
            b'{' | b'[' => self.skip_container()?,
            _ => {
                let rest = &self.text.as_bytes()[start..];
                let ends = |byte: &u8| is_space(*byte) || matches!(byte, b',' | b'}' | b']');
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
            }
        }
        Some(start..self.at)
    }

    /// Skips a container whose opening bracket is the next byte.
    fn skip_container(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let mut open = 0_usize;
        loop {
            match *bytes.get(self.at)? {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open = open.checked_sub(1)?,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return Some(());
            }
        }
    }

    /// Skips a string whose opening quote is the next byte. Returns whether it contains an escape.
    fn skip_string(&mut self) -> Option<bool> {
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += without_quotes_and_backslashes(bytes.get(self.at..)?);
            match *bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(escaped);
                }
                b'\\' => {
                    escaped = true;
                    // The escaped character has no other meaning here.
                    self.at += 2;
                }
                _ => self.at += 1,
            }
        }
    }
}

/// Returns a lower bound of the number of bytes at the start of `bytes` that are neither quotes nor
/// backslashes. Most strings are short names, so a search function is called only after a few
/// bytes.
fn without_quotes_and_backslashes(bytes: &[u8]) -> usize {
    const LOW_BITS: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH_BITS: u64 = LOW_BITS << 7;
    let zero = |word: u64| word.wrapping_sub(LOW_BITS) & !word & HIGH_BITS;
    let (eights, _) = bytes.as_chunks::<8>();
    for (number, eight) in eights.iter().take(INLINE_BYTES / 8).enumerate() {
        let word = u64::from_le_bytes(*eight);
        let found =
            zero(word ^ (LOW_BITS * u64::from(b'"'))) | zero(word ^ (LOW_BITS * u64::from(b'\\')));
        // The lowest flagged byte is exact. Higher ones may be flagged because of a carry.
        if found != 0 {
            return number * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    match bytes.get(INLINE_BYTES..) {
        Some(far) => INLINE_BYTES + memchr2(b'"', b'\\', far).unwrap_or(far.len()),
        None => eights.len() * 8,
    }
}

/// The number of bytes that are checked inline, in steps of eight.
const INLINE_BYTES: usize = 16;

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::scan::Scanner;
    use crate::json::tests::any_json;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_end_where_the_scanner_ends_them(value in any_json(), pretty: bool, tail in "[ ,}\\]]?[a-z0-9\"{\\[]{0,9}") {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            // Only characters that can follow a value.
            let follows = tail.is_empty() || tail.starts_with([' ', ',', '}', ']']);
            prop_assume!(follows);
            let text = format!(" {text}{tail}");
            prop_assert_eq!(Skimmer::new(&text).value(), Scanner::new(&text).value().ok());
        }

        #[test]
        fn skimming_any_text_terminates(text in "[\\[\\]{}\",:\\\\ \n0-9a-z\\u{e9}]{0,40}") {
            let mut skimmer = Skimmer::new(&text);
            while let Some(place) = skimmer.value() {
                prop_assert!(text.get(place.clone()).is_some());
                if place.is_empty() {
                    break;
                }
            }
        }
    }

    #[test]
    fn strings_end_at_their_closing_quote() {
        for length in 0..20 {
            for at in 0..length {
                for odd in ["\\\"", "\\\\", "\\u0022", "\\n", "ä", "\u{10ffff}", "!"] {
                    let inner = format!("{}{odd}{}", "a".repeat(at), "b".repeat(length - at));
                    let text = format!("\"{inner}\",\"");
                    let found = Skimmer::new(&text).string().expect("a string");
                    assert_eq!(found.place, 0..inner.len() + 2, "{text}");
                    assert_eq!(found.escaped, odd.starts_with('\\'), "{text}");
                }
            }
        }
    }
}
