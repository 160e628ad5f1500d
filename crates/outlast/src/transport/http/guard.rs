//! Request admission: Host and Origin checks, content negotiation, protocol version.

use std::net::{IpAddr, Ipv6Addr};

use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
};
use outlast_wire::version;

use super::authority;
use super::options::HttpOptions;
use super::rejection::Rejection;

/// Decides which requests are admitted.
pub(super) struct Guard {
    origins: Vec<String>,
    hosts: Vec<String>,
}

/// The content types that a caller accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AcceptedTypes {
    pub(super) json: bool,
    pub(super) events: bool,
}

/// The headers that name session and protocol version.
#[derive(Clone, Copy)]
pub(super) struct McpHeaders<'a> {
    session: Option<&'a HeaderValue>,
    version: Option<&'a HeaderValue>,
}

impl Guard {
    /// `bound`: the address of the listener, by which it can be reached.
    pub(super) fn new(options: &HttpOptions, bound: Option<IpAddr>) -> Self {
        let mut hosts: Vec<_> = options.allowed_hosts.clone();
        if let Some(bound) = bound.filter(|bound| !bound.is_unspecified()) {
            hosts.push(bound.to_string());
        }
        Self {
            origins: options.allowed_origins.clone(),
            hosts,
        }
    }

    /// Checks that a request has at most one set of credentials.
    pub(super) fn check_credentials(headers: &HeaderMap) -> Result<(), Rejection> {
        once(headers, AUTHORIZATION).map(drop)
    }

    /// Checks host and origin of a request, but not its token.
    pub(super) fn admit_host_and_origin(
        &self,
        uri: &hyper::Uri,
        headers: &HeaderMap,
    ) -> Result<(), Rejection> {
        // Two values are rejected even if the request target names the host: a proxy may use
        // either.
        let stated = once(headers, HOST)?;
        let authority = match uri.authority() {
            Some(authority) => Some(authority.as_str()),
            None => stated.and_then(|host| host.to_str().ok()),
        };
        let host = authority.and_then(authority::host);
        let host = host.ok_or(Rejection::MalformedHost)?;
        // DNS rebinding: a page that resolves its own name to this address is rejected by that
        // name.
        if !self.is_allowed_host(host) {
            return Err(Rejection::Host);
        }
        match once(headers, ORIGIN)? {
            Some(origin) if !self.is_allowed_origin(origin) => Err(Rejection::Origin),
            _ => Ok(()),
        }
    }

    /// Whether a page of that origin can call the server and read responses.
    pub(super) fn is_allowed_origin(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(|origin| self.is_allowed(origin))
    }

    fn is_allowed_host(&self, host: &str) -> bool {
        is_loopback(host)
            || self
                .hosts
                .iter()
                .any(|ours| ours.eq_ignore_ascii_case(host))
    }

    fn is_allowed(&self, origin: &str) -> bool {
        let listed = |known: &String| known.trim_end_matches('/').eq_ignore_ascii_case(origin);
        let local = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .and_then(authority::host)
            .is_some_and(is_loopback);
        local || self.origins.iter().any(listed)
    }
}

impl AcceptedTypes {
    /// Parses `Accept`. Without it, everything is accepted.
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let mut is_present = false;
        let mut accepted = Self {
            json: false,
            events: false,
        };
        for value in headers.get_all(ACCEPT) {
            is_present = true;
            // The usual value needs no parsing.
            if value == USUAL_ACCEPT {
                (accepted.json, accepted.events) = (true, true);
                continue;
            }
            for range in value.as_bytes().split(|byte| *byte == b',') {
                let name = media_type(range);
                let is = |of: &[u8]| name.eq_ignore_ascii_case(of);
                let any = is(b"*/*");
                accepted.json |= any || is(b"application/json") || is(b"application/*");
                accepted.events |= any || is(b"text/event-stream") || is(b"text/*");
            }
        }
        if is_present {
            accepted
        } else {
            Self {
                json: true,
                events: true,
            }
        }
    }
}

impl<'a> McpHeaders<'a> {
    pub(super) fn read(headers: &'a HeaderMap) -> Self {
        Self {
            session: headers.get(SESSION_ID),
            version: headers.get(PROTOCOL_VERSION),
        }
    }

    /// Whether the version is the modern one.
    pub(super) fn is_modern(self) -> bool {
        self.version.is_some_and(|stated| stated == version::MODERN)
    }

    pub(super) fn names_session(self) -> bool {
        self.session.is_some()
    }

    /// The session id.
    pub(super) fn session(self) -> Result<&'a str, Rejection> {
        let name = self.session.ok_or(Rejection::NoSession)?;
        name.to_str().map_err(|_| Rejection::UnknownSession)
    }

    /// Checks that the headers for session, version and last event are not repeated.
    pub(super) fn check_once(headers: &HeaderMap) -> Result<(), Rejection> {
        match repeated(headers, |name| {
            [SESSION_ID, PROTOCOL_VERSION, LAST_EVENT_ID].contains(name)
        }) {
            Some(name) => Err(Rejection::Repeated(name.clone())),
            None => Ok(()),
        }
    }

    /// Checks the version of a request; without one, that of its session counts (V1-HTTP-9,
    /// V1-HTTP-11).
    pub(super) fn check_version(self) -> Result<(), Rejection> {
        match self.version {
            None => Ok(()),
            Some(stated) => {
                if version::LEGACY_VERSIONS.iter().any(|known| stated == known) {
                    Ok(())
                } else {
                    Err(Rejection::Version)
                }
            }
        }
    }
}

/// Checks the content type. This also rejects HTML forms, which a page can send without a
/// preflight.
pub(super) fn check_json(headers: &HeaderMap) -> Result<(), Rejection> {
    let stated = once(headers, CONTENT_TYPE)?;
    let name = stated.map(|stated| media_type(stated.as_bytes()));
    if name.is_some_and(|name| name.eq_ignore_ascii_case(b"application/json")) {
        Ok(())
    } else {
        Err(Rejection::NotJson)
    }
}

/// A media type without its parameters.
fn media_type(stated: &[u8]) -> &[u8] {
    let name = stated.split(|byte| *byte == b';').next();
    name.unwrap_or_default().trim_ascii()
}

/// The value of a header that must not be repeated.
fn once(headers: &HeaderMap, name: HeaderName) -> Result<Option<&HeaderValue>, Rejection> {
    let mut values = headers.get_all(&name).iter();
    match (values.next(), values.next()) {
        (first, None) => Ok(first),
        (_, Some(_)) => Err(Rejection::Repeated(name)),
    }
}

/// A repeated header for which `is_single` is true.
pub(super) fn repeated(
    headers: &HeaderMap,
    is_single: impl Fn(&HeaderName) -> bool,
) -> Option<&HeaderName> {
    // The two counts are equal if no header is repeated, which is the usual case.
    if headers.len() == headers.keys_len() {
        return None;
    }
    let mut names = headers.keys();
    names.find(|name| is_single(name) && headers.get_all(*name).iter().nth(1).is_some())
}

fn is_loopback(host: &str) -> bool {
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    match host.parse() {
        Ok(IpAddr::V4(address)) => address.is_loopback(),
        Ok(IpAddr::V6(address)) => address == Ipv6Addr::LOCALHOST,
        Err(_) => false,
    }
}

/// The usual value of `Accept`.
const USUAL_ACCEPT: &str = "application/json, text/event-stream";

// The header names of the wire crate as hyper constants, which need no lower-casing.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(options: HttpOptions) -> Guard {
        Guard::new(&options, Some(options.bind.ip()))
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn admit(guard: &Guard, pairs: &[(&'static str, &'static str)]) -> Result<(), Rejection> {
        let headers = headers(pairs);
        guard.admit_host_and_origin(&"/mcp".parse().unwrap(), &headers)?;
        Guard::check_credentials(&headers)
    }

    #[test]
    fn header_names_match_the_wire_crate() {
        use outlast_wire::headers;
        assert!(headers::SESSION_ID.eq_ignore_ascii_case(SESSION_ID.as_str()));
        assert!(headers::PROTOCOL_VERSION.eq_ignore_ascii_case(PROTOCOL_VERSION.as_str()));
        assert!(headers::LAST_EVENT_ID.eq_ignore_ascii_case(LAST_EVENT_ID.as_str()));
    }

    #[test]
    fn only_loopback_and_listed_hosts_are_allowed() {
        let guard = guard(HttpOptions {
            allowed_hosts: vec!["mcp.example.com".into()],
            ..HttpOptions::default()
        });
        for ours in [
            "localhost:8040",
            "LOCALHOST",
            "127.0.0.1:1",
            "127.1.2.3",
            "[::1]:8040",
            "mcp.example.com:443",
        ] {
            assert!(admit(&guard, &[("host", ours)]).is_ok(), "{ours}");
        }
        for foreign in [
            "evil.com",
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "[::2]",
            "0.0.0.0",
        ] {
            let admitted = admit(&guard, &[("host", foreign)]);
            assert!(matches!(admitted, Err(Rejection::Host)), "{foreign}");
        }
        for malformed in ["", "localhost:80@evil.com", "localhost, evil.com"] {
            let admitted = admit(&guard, &[("host", malformed)]);
            assert!(
                matches!(admitted, Err(Rejection::MalformedHost)),
                "{malformed}"
            );
        }
        assert!(matches!(admit(&guard, &[]), Err(Rejection::MalformedHost)));
        let absolute = "http://localhost:80@evil.com/mcp".parse().unwrap();
        let admitted = guard.admit_host_and_origin(&absolute, &headers(&[("host", "localhost")]));
        assert!(matches!(admitted, Err(Rejection::MalformedHost)));
    }

    #[test]
    fn a_header_that_decides_admission_must_not_be_repeated() {
        let guard = guard(HttpOptions::default());
        let once = [
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("authorization", "Bearer a"),
        ];
        assert!(admit(&guard, &once).is_ok());
        for pair in once {
            let admitted = admit(&guard, &[&once[..], &[pair]].concat());
            assert!(
                matches!(&admitted, Err(Rejection::Repeated(name)) if *name == pair.0),
                "{admitted:?}"
            );
        }
    }

    #[test]
    fn a_page_of_another_origin_is_rejected() {
        // V1-HTTP-2.
        let guard = guard(HttpOptions {
            allowed_origins: vec!["https://app.example.com/".into()],
            ..HttpOptions::default()
        });
        for fine in [
            "http://localhost:6274",
            "https://127.0.0.1",
            "http://[::1]:3",
            "https://app.example.com",
        ] {
            let admitted = admit(&guard, &[("host", "localhost"), ("origin", fine)]);
            assert!(admitted.is_ok(), "{fine}");
        }
        for foreign in [
            "null",
            "http://evil.com",
            "https://app.example.com.evil.com",
            "http://app.example.com",
            "file://localhost",
            "http://localhost.evil.com",
            "http://localhost:80@evil.com",
        ] {
            let admitted = admit(&guard, &[("host", "localhost"), ("origin", foreign)]);
            assert!(matches!(admitted, Err(Rejection::Origin)), "{foreign}");
        }
    }

    #[test]
    fn accept_header_is_parsed_leniently() {
        let both = AcceptedTypes {
            json: true,
            events: true,
        };
        assert_eq!(AcceptedTypes::read(&headers(&[])), both);
        assert_eq!(AcceptedTypes::read(&headers(&[("accept", "*/*")])), both);
        let stated = "application/json;q=0.9, Text/Event-Stream";
        assert_eq!(AcceptedTypes::read(&headers(&[("accept", stated)])), both);
        let twice = [
            ("accept", "application/json"),
            ("accept", "text/event-stream"),
        ];
        assert_eq!(AcceptedTypes::read(&headers(&twice)), both);
        let json = AcceptedTypes::read(&headers(&[("accept", "application/json")]));
        assert!(json.json && !json.events);
        let none = AcceptedTypes::read(&headers(&[("accept", "image/png")]));
        assert!(!none.json && !none.events);
    }

    #[test]
    fn the_content_type_must_be_json() {
        for fine in ["application/json", "Application/JSON; charset=utf-8"] {
            assert!(check_json(&headers(&[("content-type", fine)])).is_ok());
        }
        for odd in ["text/plain", "application/jsonp", ""] {
            assert!(check_json(&headers(&[("content-type", odd)])).is_err());
        }
        assert!(check_json(&headers(&[])).is_err());
    }
}
