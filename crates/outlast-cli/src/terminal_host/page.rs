//! URL elicitation on the terminal: shows where a page leads before the user opens it (V1-ELIC-11,
//! V1-ELIC-12). This code never opens or fetches the page.

use crate::terminal::{StyledLine, Tone, clean};

/// Describes `url`: the whole URL, its host, and warnings.
pub(super) fn about(url: &str) -> Vec<StyledLine> {
    // Characters that move the cursor or change the writing direction could disguise the address.
    let shown = clean(url);
    let (scheme, rest) = shown.split_once("://").unwrap_or(("", &shown));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let mut lines = vec![
        StyledLine::from(format!("  {shown}")),
        StyledLine::from("  host: ").tone(Tone::Strong, host),
    ];
    let mut warn = |what: &str| {
        lines.push(StyledLine::new().tone(Tone::Warning, format_args!("  warning: {what}")));
    };
    if !scheme.eq_ignore_ascii_case("https") && !is_local(host) {
        warn("the connection would not be encrypted");
    }
    if user.is_some() {
        warn("the text before the @ is not the host");
    }
    if host.split('.').any(|label| label.starts_with("xn--")) || !host.is_ascii() {
        warn("the host has letters that look like other letters");
    }
    if shown != url {
        warn("it has characters that are not allowed in an address");
    }
    lines
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next(),
        None => host.split(':').next(),
    };
    matches!(name, Some("localhost" | "127.0.0.1" | "::1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(url: &str) -> Vec<String> {
        let lines = about(url);
        lines.iter().map(|line| line.render(false)).collect()
    }

    #[test]
    fn the_whole_address_and_its_host_are_shown() {
        assert_eq!(
            described("https://example.com:8443/pay?x=1#y"),
            [
                "  https://example.com:8443/pay?x=1#y",
                "  host: example.com:8443"
            ]
        );
        assert_eq!(described("http://127.0.0.1:8/x").len(), 2);
        assert_eq!(described("http://[::1]:8/x").len(), 2);
    }

    #[test]
    fn a_suspicious_address_is_shown_with_a_warning() {
        for (url, warning) in [
            ("http://example.com/", "not be encrypted"),
            ("javascript:alert(1)", "not be encrypted"),
            ("https://bank.com@evil.example/", "before the @"),
            ("https://xn--pypal-4ve.com/", "look like other letters"),
            ("https://p\u{430}ypal.com/", "look like other letters"),
            ("https://a.com/\u{1b}[2K", "not allowed in an address"),
            (
                "https://a.com/\u{202e}moc.knab",
                "not allowed in an address",
            ),
            (
                "https://a.com/\n  host: bank.com",
                "not allowed in an address",
            ),
        ] {
            let described = described(url);
            assert!(
                described.iter().any(|line| line.contains(warning)),
                "{described:?}"
            );
            assert!(!described.concat().contains(['\u{1b}', '\u{202e}', '\n']));
        }
        let lines = described("https://bank.com@evil.example/");
        assert!(lines.contains(&"  host: evil.example".into()));
    }
}
