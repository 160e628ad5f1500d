//! Why a request is not taken, and the status that says so. The only place where the two meet.

use std::num::NonZeroU32;

use hyper::header::{ALLOW, CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{StatusCode, header::HeaderName};
use outlast_engine::engine::AUDIT;
use outlast_wire::codes;
use outlast_wire::envelope::{ErrorObject, Id, Malformed, MalformedKind, MalformedReason, write};

use super::answer::{self, Answer};
use crate::log_limit::LogLimit;
use crate::server::SessionLimitReached;

/// Why a request is not taken.
#[derive(Debug)]
pub(super) enum Refused {
    /// The name that it was sent to is missing or malformed.
    MalformedHost,
    /// A header that has one value is sent more than once.
    Repeated(HeaderName),
    /// It came to a name that is not ours: somebody may have bent the name of a page to this address.
    Host,
    /// A web page sent it that may not (V1-HTTP-2).
    Origin,
    /// It carries no token.
    NoToken,
    /// It carries a token that nobody has.
    BadToken,
    /// The endpoint is elsewhere.
    Path,
    /// The endpoint has no such method; these are allowed.
    Method(&'static str),
    /// The body is not said to be JSON.
    NotJson,
    /// The caller takes no form of answer that there is.
    NotAcceptable,
    /// It names a version that is not spoken here (V1-HTTP-9).
    Version,
    /// It belongs to no session (V1-SESS-3).
    NoSession,
    /// It belongs to a session that is not there, or is not the caller's (V1-SESS-4, V1-SESS-7).
    UnknownSession,
    /// The body is larger than the limit.
    TooLarge(usize),
    /// The body did not arrive in time, or broke off.
    Broken,
    /// The body is no message.
    Malformed(Malformed),
    /// It is a modern request that cannot be served (V2-CODE-4).
    Modern(Id, ErrorObject),
    /// There is no room for another session.
    Sessions(Id, SessionLimitReached),
    /// Unfinished bodies take so many bytes, the most allowed.
    Bodies(usize),
    /// The caller sends more requests per second than it may.
    Rate {
        per_second: NonZeroU32,
        /// When it may try again.
        seconds: u64,
    },
    /// The session has too much open.
    Streams,
    /// The store cannot keep the session now.
    Unavailable(Option<Id>, String),
}

impl Refused {
    pub(super) fn answer(self) -> Answer {
        let (status, extra) = (self.status(), self.header());
        // An audit line: at the default level no request writes a line.
        REFUSALS.log(|left_out| {
            tracing::info!(
                target: AUDIT,
                status = status.as_u16(),
                why = self.word(),
                left_out,
                "a request is refused"
            );
        });
        let mut answer = answer::text(status, self.line());
        if let Some((name, value)) = extra {
            answer.headers_mut().insert(name, value);
        }
        answer
    }

    /// Why, for a log: nothing that the caller wrote.
    fn word(&self) -> &'static str {
        match self {
            Self::MalformedHost => "malformed host",
            Self::Repeated(_) => "repeated header",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::NoToken => "no token",
            Self::BadToken => "unknown token",
            Self::Path => "path",
            Self::Method(_) => "method",
            Self::NotJson => "content type",
            Self::NotAcceptable => "accept",
            Self::Version => "protocol version",
            Self::NoSession => "no session",
            Self::UnknownSession => "unknown session",
            Self::TooLarge(_) => "too large",
            Self::Broken => "broke off",
            Self::Malformed(_) => "malformed",
            Self::Modern(..) => "headers or _meta",
            Self::Sessions(..) => "too many sessions",
            Self::Bodies(_) => "too many bytes in unfinished bodies",
            Self::Rate { .. } => "too many requests",
            Self::Streams => "too many streams",
            Self::Unavailable(..) => "store unavailable",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::NoToken | Self::BadToken => StatusCode::UNAUTHORIZED,
            Self::Path | Self::UnknownSession => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Self::MalformedHost
            | Self::Repeated(_)
            | Self::Version
            | Self::NoSession
            | Self::Modern(..) => StatusCode::BAD_REQUEST,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken => StatusCode::REQUEST_TIMEOUT,
            Self::Malformed(malformed) => match malformed.fault {
                MalformedReason::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
                _ => StatusCode::BAD_REQUEST,
            },
            Self::Streams
            | Self::Rate { .. }
            | Self::Sessions(_, SessionLimitReached::Owner(_)) => StatusCode::TOO_MANY_REQUESTS,
            Self::Sessions(_, SessionLimitReached::All(_))
            | Self::Bodies(_)
            | Self::Unavailable(..) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let (name, value) = match self {
            Self::NoToken => (WWW_AUTHENTICATE, "Bearer"),
            Self::BadToken => (WWW_AUTHENTICATE, "Bearer error=\"invalid_token\""),
            Self::Method(allowed) => (ALLOW, *allowed),
            // What is left of the body is not read.
            Self::TooLarge(_) | Self::Broken => (CONNECTION, "close"),
            Self::Streams | Self::Sessions(..) | Self::Bodies(_) | Self::Unavailable(..) => {
                (RETRY_AFTER, "1")
            }
            Self::Rate { seconds, .. } => return Some((RETRY_AFTER, (*seconds).into())),
            _ => return None,
        };
        Some((name, HeaderValue::from_static(value)))
    }

    fn line(self) -> String {
        let (id, error) = match self {
            Self::MalformedHost => {
                let why = "the Host header must be one host, with or without a port";
                (None, said(why))
            }
            Self::Repeated(name) => {
                let why = format!("header `{name}` is sent more than once");
                (None, codes::header_mismatch(why))
            }
            Self::Host => (None, said("this server is not known under that name")),
            Self::Origin => (None, said("requests from that origin are not taken")),
            Self::NoToken => (None, said("a bearer token is needed")),
            Self::BadToken => (None, said("the bearer token is not known")),
            Self::Path => (None, said("there is nothing under this path")),
            Self::Method(allowed) => {
                let why = format!("this method is not allowed here; allowed are {allowed}");
                (None, codes::invalid_request(why))
            }
            Self::NotJson => (None, said("the content type must be application/json")),
            Self::NotAcceptable => {
                let why = "answers are application/json or text/event-stream";
                (None, said(why))
            }
            Self::Version => (None, said("the protocol version is not supported")),
            Self::NoSession => (None, said("the header Mcp-Session-Id is missing")),
            Self::UnknownSession => (None, said("session not found")),
            Self::TooLarge(limit) => {
                let why = format!("the body has more than {limit} bytes");
                (None, codes::invalid_request(why))
            }
            Self::Broken => (None, said("the body did not arrive")),
            Self::Malformed(malformed) => {
                let error = malformed.to_error();
                // The id of an answer is one of ours.
                let id = malformed
                    .id
                    .filter(|_| malformed.kind == MalformedKind::Request);
                (id, error)
            }
            Self::Modern(id, error) => (Some(id), error),
            Self::Sessions(id, SessionLimitReached::Owner(limit)) => {
                let why = format!(
                    "this caller has {limit} sessions in use, the most allowed (setting `sessions_per_owner`); \
                     end one with DELETE"
                );
                (Some(id), codes::internal(why))
            }
            Self::Sessions(id, SessionLimitReached::All(limit)) => {
                let why = format!(
                    "{limit} sessions are in use, the most allowed (setting `sessions`); try again later"
                );
                (Some(id), codes::internal(why))
            }
            Self::Bodies(limit) => {
                let why = format!(
                    "unfinished requests take {limit} bytes, the most allowed (setting `body_bytes`); \
                     try again later"
                );
                (None, codes::internal(why))
            }
            Self::Rate {
                per_second,
                seconds,
            } => {
                let why = format!(
                    "this caller sends more than {per_second} requests per second, the most allowed \
                     (setting `requests_per_second`); try again after {seconds} s"
                );
                (None, codes::internal(why))
            }
            Self::Streams => {
                let why = "the session has too many requests and streams open";
                (None, codes::internal(why))
            }
            Self::Unavailable(id, why) => (id, codes::internal(why)),
        };
        write::error(id.as_ref(), error.to_raw().borrow())
    }
}

static REFUSALS: LogLimit = LogLimit::new();

fn said(why: &str) -> ErrorObject {
    codes::invalid_request(why)
}
