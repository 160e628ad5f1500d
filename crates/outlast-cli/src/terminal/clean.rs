//! Makes text of servers, clients and files safe for a terminal.
//!
//! Such text can contain escape sequences that move the cursor, set the window title or write to
//! the clipboard, direction marks that reorder the output, and line breaks that imitate our output.
//! [`clean`] replaces each of these characters by U+FFFD, so that it stays visible, and line breaks
//! and tabs by a space. Everything that is printed for users passes through this module.

/// Returns `text` as a single line. Line breaks and tabs become spaces.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        cleaned.push(match c {
            '\r' if chars.peek() == Some(&'\n') => continue,
            '\n' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            c if is_dangerous(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        });
    }
    cleaned
}

/// Returns JSON text in which every dangerous character is escaped. It has the same value as
/// `json`.
pub(crate) fn clean_json(json: &str) -> String {
    let mut cleaned = String::with_capacity(json.len());
    for c in json.chars() {
        // Line breaks and tabs occur only between values, where an escape would not be JSON.
        match c {
            '\n' | '\r' | '\t' => cleaned.push(' '),
            c if is_dangerous(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    cleaned.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => cleaned.push(c),
        }
    }
    cleaned
}

/// Whether a terminal may act on `c`, or a reader may be misled by it.
fn is_dangerous(c: char) -> bool {
    // C0, DEL and C1, which includes ESC, BEL, CSI and OSC.
    c.is_control()
        || matches!(c,
            // Marks, embeddings, overrides and isolates of the writing direction.
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line and paragraph separators.
            | '\u{2028}' | '\u{2029}'
            // Characters without a width, which can hide in names and addresses.
            | '\u{00ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_escape_sequence_direction_mark_or_line_break_stays() {
        for (text, expected) in [
            ("plain: déjà vu 漢字 👩‍💻", "plain: déjà vu 漢字 👩‍💻"),
            ("a\x1b[2Jb", "a\u{fffd}[2Jb"),
            ("\x1b]0;title\x07x", "\u{fffd}]0;title\u{fffd}x"),
            ("\u{9b}31mred", "\u{fffd}31mred"),
            ("\u{9d}52;c;aGk=\u{9c}", "\u{fffd}52;c;aGk=\u{fffd}"),
            ("a\rb\x08c\x7f", "a\u{fffd}b\u{fffd}c\u{fffd}"),
            ("one\ntwo\r\nthree\tfour", "one two three four"),
            ("one\u{2028}two\u{85}three", "one two\u{fffd}three"),
            ("gpj.\u{202e}exe", "gpj.\u{fffd}exe"),
            ("\u{2066}x\u{2069}\u{200f}", "\u{fffd}x\u{fffd}\u{fffd}"),
            ("bank\u{200b}.example", "bank\u{fffd}.example"),
            ("\u{e0041}", "\u{fffd}"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_its_value_and_loses_dangerous_characters() {
        let value = serde_json::json!({ "a\u{202e}": "\x1b[2J\u{9b}\n\u{e0041}é" });
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let cleaned = clean_json(&pretty);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&cleaned).unwrap(),
            value
        );
        assert_eq!(clean(&cleaned), cleaned);
        assert!(cleaned.contains('é'), "{cleaned}");
    }
}
