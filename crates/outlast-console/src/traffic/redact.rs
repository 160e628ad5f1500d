//! Removes secrets from a message before it is kept: members with the names of secrets, bearer
//! tokens, and tokens in the query of a URL. Everything else keeps its bytes.

use std::borrow::Cow;

use outlast::wire::{Raw, RawRef};
use outlast_wire::object::{self, Edit};

/// The message without secrets; `None` if it has none.
pub(super) fn redacted(message: RawRef<'_>) -> Option<Raw> {
    value(message, MAX_DEPTH)
}

fn value(given: RawRef<'_>, depth: usize) -> Option<Raw> {
    if depth == 0 {
        return Some(text(REDACTED));
    }
    if given.is_object() {
        let edit = |name: &str, member: RawRef<'_>| {
            let is_container = member.is_object() || member.as_str().starts_with('[');
            if member.text().as_deref() == Some(REDACTED) {
                return Edit::Keep;
            }
            if is_secret(name) && !is_container && !member.is_null() && member.boolean().is_none() {
                return Edit::Replace(text(REDACTED));
            }
            value(member, depth - 1).map_or(Edit::Keep, Edit::Replace)
        };
        return object::edited(given, edit).ok().flatten();
    }
    if given.as_str().starts_with('[') {
        let items = object::elements(given)?;
        let changed: Vec<_> = items.iter().map(|item| value(*item, depth - 1)).collect();
        if changed.iter().all(Option::is_none) {
            return None;
        }
        let items = items.iter().zip(&changed);
        let items: Vec<_> = items
            .map(|(item, changed)| changed.as_ref().map_or(item.as_str(), Raw::as_str))
            .collect();
        return Raw::parse(format!("[{}]", items.join(","))).ok();
    }
    if !given.is_text() {
        return None;
    }
    let given = given.text()?;
    match without_tokens(&given) {
        Cow::Borrowed(_) => None,
        Cow::Owned(clean) => Some(text(&clean)),
    }
}

/// Whether a member with this name is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    SECRET_NAMES.contains(&letters.as_str())
}

/// The text without bearer tokens and tokens in the queries of URLs.
fn without_tokens(given: &str) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(given);
    for (before, end) in TOKEN_MARKS {
        let mut from = 0;
        while let Some(found) = find_ignoring_case(&clean[from..], before) {
            let start = from + found + before.len();
            let rest = &clean[start..];
            let length = rest.find(end).unwrap_or(rest.len());
            from = start;
            if length == 0 || rest.starts_with(REDACTED) {
                continue;
            }
            let mut text = clean.into_owned();
            text.replace_range(start..start + length, REDACTED);
            from = start + REDACTED.len();
            clean = Cow::Owned(text);
        }
    }
    clean
}

fn find_ignoring_case(text: &str, wanted: &str) -> Option<usize> {
    let (text, wanted) = (text.as_bytes(), wanted.as_bytes());
    text.windows(wanted.len())
        .position(|window| window.eq_ignore_ascii_case(wanted))
}

fn text(text: &str) -> Raw {
    Raw::encode(text).expect("a text is JSON")
}

/// What is shown instead of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// The names of secrets, in lower case and without separators.
const SECRET_NAMES: [&str; 19] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authorization",
    "authtoken",
    "bearertoken",
    "clientsecret",
    "cookie",
    "idtoken",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "proxyauthorization",
    "refreshtoken",
    "secret",
    "setcookie",
    "token",
];

/// What precedes a token in a text, and which characters end the token.
const TOKEN_MARKS: [(&str, &[char]); 5] = [
    ("bearer ", &[' ', '"', '\'', ',', ';', '\n', '\r', '\t']),
    ("access_token=", &['&', '#', ' ', '"', '\'', '\n']),
    ("?token=", &['&', '#', ' ', '"', '\'', '\n']),
    ("&token=", &['&', '#', ' ', '"', '\'', '\n']),
    ("api_key=", &['&', '#', ' ', '"', '\'', '\n']),
];

/// How deep a message is searched. What is deeper is not kept.
const MAX_DEPTH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> Option<String> {
        redacted(RawRef::parse(text).unwrap()).map(|raw| raw.as_str().to_owned())
    }

    #[test]
    fn secrets_are_removed_and_the_rest_keeps_its_bytes() {
        for (given, expected) in [
            (
                r#"{"a":{"api_key":"x","n":90071992547409931},"b":1.0}"#,
                r#"{"a":{"api_key":"[redacted]","n":90071992547409931},"b":1.0}"#,
            ),
            (r#"[1,{"Password":7}]"#, r#"[1,{"Password":"[redacted]"}]"#),
            (
                r#"{"header":"Authorization: BEARER abc.def, x"}"#,
                r#"{"header":"Authorization: BEARER [redacted], x"}"#,
            ),
            (
                r#""https://x/?token=abc&b=1&access_token=d#e""#,
                r#""https://x/?token=[redacted]&b=1&access_token=[redacted]#e""#,
            ),
        ] {
            assert_eq!(clean(given).as_deref(), Some(expected), "{given}");
            assert_eq!(clean(expected), None, "{expected}");
        }
    }

    #[test]
    fn other_members_are_no_secrets() {
        for given in [
            r#"{"progressToken":7,"_meta":{"progressToken":"x"}}"#,
            r#"{"properties":{"password":{"type":"string"}},"required":["password"]}"#,
            r#"{"token":null,"secret":true}"#,
            r#"{"text":"the bearer of this letter"}"#,
            "7",
        ] {
            let kept = clean(given);
            let is_kept = kept.is_none() || given.contains("bearer of");
            assert!(is_kept, "{given} became {kept:?}");
        }
    }

    #[test]
    fn what_is_nested_too_deeply_is_not_kept() {
        let deep = format!("{}\"secret\"{}", "[".repeat(80), "]".repeat(80));
        assert!(!clean(&deep).unwrap().contains("secret"));
    }
}
