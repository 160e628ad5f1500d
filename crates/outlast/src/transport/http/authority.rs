//! The authority of a URL or a `Host` header: `name`, `name:port` or `[IPv6 address]:port`, and
//! nothing else.

use std::net::Ipv6Addr;

/// The host in `authority`, without port and brackets. `None` if `authority` has any other form,
/// such as one with user information, because parsers can disagree on which part is the host.
pub(super) fn host(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            match port {
                "" => (address, ""),
                port => (address, port.strip_prefix(':')?),
            }
        }
        None => {
            let (name, port) = authority.split_once(':').unwrap_or((authority, ""));
            let is_name = !name.is_empty() && name.bytes().all(is_name_byte);
            (is_name.then_some(name)?, port)
        }
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit())
        && (port.is_empty() || port.parse::<u16>().is_ok());
    is_port.then_some(host)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ambiguous_authority_is_rejected() {
        for (authority, expected) in [
            ("localhost", "localhost"),
            ("localhost:", "localhost"),
            ("a-b.example_c.com:443", "a-b.example_c.com"),
            ("127.0.0.1:1", "127.0.0.1"),
            ("[::1]", "::1"),
            ("[::1]:8040", "::1"),
        ] {
            assert_eq!(host(authority), Some(expected), "{authority}");
        }
        for malformed in [
            "",
            ":80",
            "localhost:80@evil.com",
            "localhost@evil.com",
            "evil.com@localhost",
            "localhost:80:80",
            "localhost:x",
            "localhost:+80",
            "localhost:65536",
            "localhost/",
            "localhost, evil.com",
            "localhost evil.com",
            "[::1]x",
            "[::1]:80@evil.com",
            "[::1",
            "[localhost]",
            "::1",
            "lo\u{e9}",
        ] {
            assert_eq!(host(malformed), None, "{malformed}");
        }
    }
}
