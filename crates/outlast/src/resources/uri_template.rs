//! URI templates: the part of RFC 6570 that can be matched unambiguously.

use super::Variables;

/// A URI template. Braces without a valid variable name are literal text.
pub(super) struct UriTemplate {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// `{name}`: up to the next part, without `/`, `?` and `#`.
    Segment(String),
    /// `{+name}`: up to the next part.
    Rest(String),
}

impl UriTemplate {
    pub(super) fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, name, after)) = next_variable(rest) {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(match name.strip_prefix('+') {
                Some(name) => Part::Rest(name.to_owned()),
                None => Part::Segment(name.to_owned()),
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Self {
            text: text.to_owned(),
            parts,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The values of the variables if `uri` matches. Each value has at least one character and ends
    /// at the first occurrence of the text after it.
    pub(super) fn read(&self, uri: &str) -> Option<Variables> {
        let mut variables = Variables::new();
        let mut rest = uri;
        for (at, part) in self.parts.iter().enumerate() {
            let (name, whole) = match part {
                Part::Text(text) => {
                    rest = rest.strip_prefix(text.as_str())?;
                    continue;
                }
                Part::Segment(name) => (name, false),
                Part::Rest(name) => (name, true),
            };
            let end = match self.parts.get(at + 1) {
                None => rest.len(),
                Some(Part::Text(next)) => rest.find(next.as_str())?,
                // The end of the first of two adjacent variables is ambiguous.
                Some(_) => return None,
            };
            let (value, after) = rest.split_at(end);
            if value.is_empty() || !whole && value.contains(['/', '?', '#']) {
                return None;
            }
            variables.insert(name.clone(), decoded(value)?);
            rest = after;
        }
        rest.is_empty().then_some(variables)
    }
}

/// The first variable of `text`: the text before it, its name, the text after it.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let open = from + text[from..].find('{')?;
        let close = open + text[open..].find('}')?;
        let name = &text[open + 1..close];
        let plain = name.strip_prefix('+').unwrap_or(name);
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if !plain.is_empty() && plain.chars().all(fits) {
            return Some((&text[..open], name, &text[close + 1..]));
        }
        from = open + 1;
    }
}

/// `text` with percent-encoding decoded.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &str, uri: &str) -> Option<Vec<(String, String)>> {
        let found = UriTemplate::new(pattern).read(uri)?;
        Some(found.into_iter().collect())
    }

    fn single_variable(name: &str, value: &str) -> Option<Vec<(String, String)>> {
        Some(vec![(name.into(), value.into())])
    }

    #[test]
    fn a_matching_uri_sets_the_variables() {
        let data = "test://template/{id}/data";
        assert_eq!(
            read(data, "test://template/123/data"),
            single_variable("id", "123")
        );
        assert_eq!(
            read(data, "test://template/a%20b/data"),
            single_variable("id", "a b")
        );
        assert_eq!(
            read("file:///{+path}", "file:///a/b"),
            single_variable("path", "a/b")
        );
        assert_eq!(read("x:plain", "x:plain"), Some(Vec::new()));
        assert_eq!(read("x:{}{a b}", "x:{}{a b}"), Some(Vec::new()));
    }

    #[test]
    fn another_uri_does_not_match() {
        let data = "test://template/{id}/data";
        for other in [
            "test://template//data",
            "test://template/1/2/data",
            "test://template/1/data/",
            "test://template/1",
            "test://template/%zz/data",
            "test://template/%ff/data",
            "test://template/%4",
            "",
        ] {
            assert_eq!(read(data, other), None, "{other}");
        }
        assert_eq!(read("x:{a}{b}", "x:12"), None);
    }
}
