//! JSON as people write it: with comments and with commas after the last member.

/// The same document as plain JSON. Lines stay where they are, so that errors name the right one.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.char_indices().peekable();
    // Where a comma stands that nothing has followed yet.
    let mut comma = None;
    while let Some((at, c)) = rest.next() {
        match c {
            '"' => {
                comma = None;
                plain.push('"');
                let mut escaped = false;
                for (_, c) in rest.by_ref() {
                    plain.push(c);
                    match c {
                        '"' if !escaped => break,
                        '\\' => escaped = !escaped,
                        _ => escaped = false,
                    }
                }
            }
            '/' if text[at..].starts_with("//") => {
                while rest.next_if(|(_, c)| *c != '\n').is_some() {}
            }
            '/' if text[at..].starts_with("/*") => {
                let end = text[at + 2..]
                    .find("*/")
                    .map_or(text.len(), |end| at + end + 4);
                while let Some((_, c)) = rest.next_if(|(at, _)| *at < end) {
                    if c == '\n' {
                        plain.push(c);
                    }
                }
            }
            '}' | ']' => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
                plain.push(c);
            }
            ',' => {
                comma = Some(plain.len());
                plain.push(c);
            }
            c => {
                if !c.is_whitespace() {
                    comma = None;
                }
                plain.push(c);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn comments_and_last_commas_go_and_texts_stay() {
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(&plain(text)).unwrap();
        let want = serde_json::json!({ "a": "// \"no\" /* comment */ ,]", "b": [1, 2], "c": {} });
        assert_eq!(
            read(
                "{ /* one\ntwo */ \"a\": \"// \\\"no\\\" /* comment */ ,]\", // three\n \"b\": [1, 2, /* x */ ], \"c\": {}, }"
            ),
            want
        );
        // What is broken stays broken, and nothing panics.
        for broken in ["{\"a", "/* never", "{\"\\", "//"] {
            assert!(
                serde_json::from_str::<serde_json::Value>(&plain(broken)).is_err(),
                "{broken}"
            );
        }
    }

    #[test]
    fn an_error_names_the_line_as_it_was() {
        let error = serde_json::from_str::<serde_json::Value>(&plain("{\n/* a\nb */\n// c\n?\n}"))
            .unwrap_err();
        assert_eq!(error.line(), 5);
    }
}
