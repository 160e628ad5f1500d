//! Text in PostgreSQL, which cannot store the character NUL.

use std::borrow::Cow;

/// Replaces NUL by an escape. [`decode`] reads it back.
pub(super) fn encode(text: &str) -> Cow<'_, str> {
    if text.contains([NUL, ESCAPE]) {
        let escaped = text.replace(ESCAPE, "\u{fdd0}1");
        escaped.replace(NUL, "\u{fdd0}0").into()
    } else {
        text.into()
    }
}

/// The text before [`encode`].
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    if text.contains(ESCAPE) {
        let nul = text.replace("\u{fdd0}0", "\0");
        nul.replace("\u{fdd0}1", "\u{fdd0}").into()
    } else {
        text.into()
    }
}

const NUL: char = '\0';

/// A code point that Unicode reserves for use inside a program.
const ESCAPE: char = '\u{fdd0}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_reads_back() {
        for text in [
            "",
            "plain",
            "a\0b",
            "\u{fdd0}",
            "\u{fdd0}0\0\u{fdd0}1",
            "\0\0",
        ] {
            let stored = encode(text);
            assert!(!stored.contains('\0'));
            assert_eq!(decode(&stored), text);
        }
    }
}
