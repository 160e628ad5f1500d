//! A page that a server wants opened, shown so that a person sees where it leads before opening it (V1-ELIC-11,
//! V1-ELIC-12). Nothing here opens or fetches it.

/// What is said about `url`: the whole of it, its host, and what is odd about it.
pub(super) fn about(url: &str) -> Vec<String> {
    // What moves the cursor could make an address look like another.
    let shown: String = url
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    let (scheme, rest) = shown.split_once("://").unwrap_or(("", &shown));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let mut lines = vec![shown.clone(), format!("host: {host}")];
    let mut warn = |what: &str| lines.push(format!("warning: {what}"));
    if !scheme.eq_ignore_ascii_case("https") && !is_local(host) {
        warn("the connection would not be encrypted");
    }
    if user.is_some() {
        warn("what stands before the @ is not where it leads");
    }
    if host.split('.').any(|label| label.starts_with("xn--")) || !host.is_ascii() {
        warn("the host has letters that can look like others");
    }
    if shown.contains('\u{fffd}') {
        warn("it has characters that no address has");
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

    #[test]
    fn the_whole_address_and_its_host_are_shown() {
        assert_eq!(
            about("https://example.com:8443/pay?x=1#y"),
            [
                "https://example.com:8443/pay?x=1#y",
                "host: example.com:8443"
            ]
        );
        assert_eq!(about("http://127.0.0.1:8/x").len(), 2);
        assert_eq!(about("http://[::1]:8/x").len(), 2);
    }

    #[test]
    fn what_is_odd_about_an_address_is_told() {
        for (url, warning) in [
            ("http://example.com/", "not be encrypted"),
            ("javascript:alert(1)", "not be encrypted"),
            ("https://bank.com@evil.example/", "before the @"),
            ("https://xn--pypal-4ve.com/", "look like others"),
            ("https://p\u{430}ypal.com/", "look like others"),
            ("https://a.com/\u{1b}[2K", "no address has"),
        ] {
            let told = about(url).join("\n");
            assert!(told.contains(warning), "{told}");
            assert!(!told.contains('\u{1b}'));
        }
        assert!(about("https://bank.com@evil.example/").contains(&"host: evil.example".into()));
    }
}
