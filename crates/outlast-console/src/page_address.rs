//! The address of a page that a server asks a person to open: its host, and warnings (V1-ELIC-11,
//! V1-ELIC-12). This code never opens or fetches the page.

/// The address of a page.
pub(crate) struct PageAddress {
    /// The whole address. Characters that could disguise it are replaced.
    pub(crate) shown: String,
    /// The host.
    pub(crate) host: String,
    /// What is suspicious.
    pub(crate) warnings: Vec<&'static str>,
    /// The address for a link; `None` if it must not be one.
    pub(crate) link: Option<String>,
}

impl PageAddress {
    pub(crate) fn of(address: &str) -> Self {
        let shown: String = address
            .chars()
            .map(|letter| {
                if is_disguise(letter) {
                    '\u{fffd}'
                } else {
                    letter
                }
            })
            .collect();
        let (scheme, rest) = shown.split_once("://").unwrap_or(("", &shown));
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let mut warnings = Vec::new();
        let is_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
        if !is_web {
            warnings.push("this is not the address of a web page");
        } else if !scheme.eq_ignore_ascii_case("https") && !is_local(host) {
            warnings.push("the connection would not be encrypted");
        }
        if user.is_some() {
            warnings.push("the text before the @ is not the host");
        }
        if host.split('.').any(|label| label.starts_with("xn--")) || !host.is_ascii() {
            warnings.push("the host has letters that look like other letters");
        }
        if shown != address {
            warnings.push("it has characters that are not allowed in an address");
        }
        let parsed = url::Url::parse(address).ok();
        let link =
            parsed.filter(|url| matches!(url.scheme(), "http" | "https") && shown == address);
        Self {
            host: host.to_owned(),
            warnings,
            link: link.map(|_| address.to_owned()),
            shown,
        }
    }
}

/// Characters that change the line or the direction of the writing.
fn is_disguise(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
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
    fn a_suspicious_address_has_warnings_and_scripts_no_link() {
        for (address, warning, is_link) in [
            ("https://example.com:8443/pay?x=1#y", None, true),
            ("http://127.0.0.1:8/x", None, true),
            ("http://example.com/", Some("not be encrypted"), true),
            (
                "javascript:alert(1)",
                Some("not the address of a web page"),
                false,
            ),
            (
                "data:text/html,x",
                Some("not the address of a web page"),
                false,
            ),
            ("https://bank.com@evil.example/", Some("before the @"), true),
            (
                "https://xn--pypal-4ve.com/",
                Some("look like other letters"),
                true,
            ),
            (
                "https://p\u{430}ypal.com/",
                Some("look like other letters"),
                true,
            ),
            ("https://a.com/\u{202e}moc.knab", Some("not allowed"), false),
            ("https://a.com/\nx", Some("not allowed"), false),
        ] {
            let about = PageAddress::of(address);
            let has = |text: &str| about.warnings.iter().any(|warning| warning.contains(text));
            assert_eq!(
                about.warnings.is_empty(),
                warning.is_none(),
                "{address}: {:?}",
                about.warnings
            );
            assert!(warning.is_none_or(has), "{address}: {:?}", about.warnings);
            assert_eq!(about.link.is_some(), is_link, "{address}");
        }
        assert_eq!(
            PageAddress::of("https://bank.com@evil.example/").host,
            "evil.example"
        );
    }
}
