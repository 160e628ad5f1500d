//! Validates JSON text in one pass, without recursion and without building values.
//!
//! The scanner accepts exactly the JSON texts of RFC 8259 and records the nesting depth. It does
//! not limit the depth: callers compare [`Scanner::deepest`].

use std::borrow::Cow;
use std::ops::Range;

use crate::raw::RawRef;

/// A position in one JSON text.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    deepest: usize,
}

/// The position of a string, quotes included.
pub(crate) struct StringSpan {
    pub(crate) place: Range<usize>,
    /// Whether it contains an escape.
    pub(crate) escaped: bool,
}

impl StringSpan {
    /// The unescaped string in `text`, or its JSON text if that is not valid Unicode.
    pub(crate) fn unescaped<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Range { start, end } = self.place;
        if self.escaped {
            RawRef::scanned(&text[start..end]).text_or_json()
        } else {
            Cow::Borrowed(&text[start + 1..end - 1])
        }
    }
}

/// The text is invalid from this byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
}

/// Whether `text` is one JSON value with nothing but white space around it.
pub(crate) fn is_value(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.value().is_ok() && scanner.end().is_ok()
}

/// Returns a lower bound of the number of bytes at the start of `bytes` that are neither quotes,
/// backslashes nor control characters, in steps of eight.
pub(crate) fn ordinary(bytes: &[u8]) -> usize {
    const LOW_BITS: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH_BITS: u64 = LOW_BITS << 7;
    // The lowest flagged byte is exact. Higher ones may be flagged because of a carry.
    let below = |word: u64, least: u64| word.wrapping_sub(LOW_BITS * least) & !word & HIGH_BITS;
    let (eights, _) = bytes.as_chunks::<8>();
    for (number, eight) in eights.iter().enumerate() {
        let word = u64::from_le_bytes(*eight);
        let quote = below(word ^ (LOW_BITS * u64::from(b'"')), 1);
        let backslash = below(word ^ (LOW_BITS * u64::from(b'\\')), 1);
        let found = quote | backslash | below(word, 0x20);
        if found != 0 {
            return number * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    eights.len() * 8
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            deepest: 0,
        }
    }

    /// The maximum number of containers open at once so far, inside one call of [`Self::value`].
    pub(crate) fn deepest(&self) -> usize {
        self.deepest
    }

    /// Returns the next byte that is not white space, without consuming it.
    pub(crate) fn peek(&mut self) -> Result<u8, SyntaxError> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(self.syntax_error())
    }

    /// Consumes `byte`, after any white space.
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), SyntaxError> {
        if self.peek()? != byte {
            return Err(self.syntax_error());
        }
        self.at += 1;
        Ok(())
    }

    /// Checks that only white space is left.
    pub(crate) fn end(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            Err(_) => Ok(()),
            Ok(_) => Err(self.syntax_error()),
        }
    }

    /// Consumes one string.
    pub(crate) fn string(&mut self) -> Result<StringSpan, SyntaxError> {
        if self.peek()? != b'"' {
            return Err(self.syntax_error());
        }
        let start = self.at;
        let escaped = self.skip_string()?;
        let place = start..self.at;
        Ok(StringSpan { place, escaped })
    }

    /// Consumes one value of any type and returns its position.
    pub(crate) fn value(&mut self) -> Result<Range<usize>, SyntaxError> {
        self.peek()?;
        let start = self.at;
        let mut open = Nesting::default();
        loop {
            match self.peek()? {
                b'{' => {
                    self.at += 1;
                    self.deepest = self.deepest.max(open.depth + 1);
                    if self.peek()? != b'}' {
                        open.push(Container::Object);
                        self.skip_name()?;
                        continue;
                    }
                    self.at += 1;
                }
                b'[' => {
                    self.at += 1;
                    self.deepest = self.deepest.max(open.depth + 1);
                    if self.peek()? != b']' {
                        open.push(Container::Array);
                        continue;
                    }
                    self.at += 1;
                }
                b'"' => {
                    self.skip_string()?;
                }
                b'-' | b'0'..=b'9' => self.skip_number()?,
                b't' => self.skip_word("true")?,
                b'f' => self.skip_word("false")?,
                b'n' => self.skip_word("null")?,
                _ => return Err(self.syntax_error()),
            }
            loop {
                let Some(container) = open.innermost() else {
                    return Ok(start..self.at);
                };
                match (self.peek()?, container) {
                    (b',', Container::Array) => {
                        self.at += 1;
                        break;
                    }
                    (b',', Container::Object) => {
                        self.at += 1;
                        self.skip_name()?;
                        break;
                    }
                    (b']', Container::Array) | (b'}', Container::Object) => {
                        self.at += 1;
                        open.pop();
                    }
                    _ => return Err(self.syntax_error()),
                }
            }
        }
    }

    fn skip_name(&mut self) -> Result<(), SyntaxError> {
        if self.peek()? != b'"' {
            return Err(self.syntax_error());
        }
        self.skip_string()?;
        self.expect(b':')
    }

    /// Skips a string whose opening quote is the next byte. Returns whether it contains an escape.
    fn skip_string(&mut self) -> Result<bool, SyntaxError> {
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += ordinary(&bytes[self.at..]);
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.skip_escape()?;
                }
                Some(byte) if *byte >= 0x20 => self.at += 1,
                _ => return Err(self.syntax_error()),
            }
        }
    }

    fn skip_escape(&mut self) -> Result<(), SyntaxError> {
        let bytes = self.text.as_bytes();
        let length = match bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => {
                let digits = bytes.get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(self.syntax_error());
                }
                6
            }
            _ => return Err(self.syntax_error()),
        };
        self.at += length;
        Ok(())
    }

    fn skip_number(&mut self) -> Result<(), SyntaxError> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.skip_digits()?,
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if matches!(bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Ok(())
    }

    fn skip_digits(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        while self
            .text
            .as_bytes()
            .get(self.at)
            .is_some_and(u8::is_ascii_digit)
        {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.syntax_error());
        }
        Ok(())
    }

    fn skip_word(&mut self, word: &str) -> Result<(), SyntaxError> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.syntax_error());
        }
        self.at += word.len();
        Ok(())
    }

    fn syntax_error(&self) -> SyntaxError {
        SyntaxError { at: self.at }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

/// The containers around a position, with one bit each, so that depth needs no stack and little
/// memory.
#[derive(Default)]
struct Nesting {
    depth: usize,
    /// The innermost 64 levels. The lowest bit is the innermost one, set for an object.
    near: u64,
    /// The outer levels, 64 per word.
    far: Vec<u64>,
}

impl Nesting {
    fn push(&mut self, container: Container) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.far.push(self.near);
        }
        self.near = self.near << 1 | u64::from(container == Container::Object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.near >>= 1;
        self.depth -= 1;
        if self.depth.is_multiple_of(64)
            && let Some(word) = self.far.pop()
        {
            self.near = word;
        }
    }

    fn innermost(&self) -> Option<Container> {
        match (self.depth, self.near & 1) {
            (0, _) => None,
            (_, 1) => Some(Container::Object),
            _ => Some(Container::Array),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    #[test]
    fn depth_is_counted_and_never_overflows_the_stack() {
        for depth in [1, 63, 64, 65, 128, 129, 200_000] {
            let text = format!("{}0{}", "[{\"a\":".repeat(depth), "}]".repeat(depth));
            let mut scanner = Scanner::new(&text);
            assert_eq!(scanner.value(), Ok(0..text.len()), "{depth}");
            assert_eq!(scanner.deepest(), 2 * depth);
            let crossed = format!("{}{}", "[".repeat(depth), "}".repeat(depth));
            assert!(Scanner::new(&crossed).value().is_err());
        }
    }

    #[test]
    fn strings_end_at_their_closing_quote() {
        for length in 0..40 {
            for at in 0..length {
                for odd in [
                    "\"",
                    "\\",
                    "\\\\",
                    "\n",
                    "\u{1f}",
                    " ",
                    "!",
                    "\u{7f}",
                    "ä",
                    "\u{10ffff}",
                ] {
                    let text = format!("\"{}{odd}{}\"", "a".repeat(at), "b".repeat(length - at));
                    let theirs = serde_json::from_str::<&RawValue>(&text).is_ok();
                    assert_eq!(is_value(&text), theirs, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn hard_cases_agree_with_serde_json() {
        for text in [
            "",
            " ",
            "0",
            "-0",
            "-",
            "01",
            "1.",
            ".5",
            "1e",
            "1e+9",
            "1E-9",
            "tru",
            "truex",
            "nul",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"\n\"",
            "\"\u{7f}\"",
            "[,]",
            "[1,]",
            "{\"a\"}",
            "{\"a\":1,}",
            "{a:1}",
            "[]]",
            "[[]",
            "{}{}",
            " [ { } , [ ] ] ",
            "\u{feff}1",
            "\u{a0}1",
        ] {
            assert_eq!(is_value(text), by_serde(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_exactly_if_serde_json_accepts_it(text in "[\\[\\]{}\",:\\\\ \n0-9eE.+\\-truefalsn\\u{e9}]{0,24}") {
            prop_assert_eq!(is_value(&text), by_serde(&text));
        }

        #[test]
        fn any_json_is_accepted(value in crate::json::tests::any_json()) {
            let text = value.to_string();
            prop_assert!(is_value(&text));
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert!(is_value(&pretty));
        }
    }

    fn by_serde(text: &str) -> bool {
        serde_json::from_str::<&RawValue>(text).is_ok()
    }
}
