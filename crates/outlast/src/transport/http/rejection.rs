//! Why a request is rejected, and the HTTP response for it.

use std::num::NonZeroU32;

use hyper::header::{ALLOW, CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{StatusCode, header::HeaderName};
use outlast_engine::engine::AUDIT;
use outlast_wire::codes;
use outlast_wire::envelope::{ErrorObject, Id, Malformed, MalformedKind, MalformedReason, write};

use super::authenticate::{Unauthenticated, UnauthenticatedKind};
use super::response::{self, HttpResponse};
use crate::log_limit::LogLimit;
use crate::server::{Scopes, SessionLimitReached, denied};

/// Why a request is rejected.
#[derive(Debug)]
pub(super) enum Rejection {
    /// The host is missing or malformed.
    MalformedHost,
    /// A header that must not be repeated is repeated.
    Repeated(HeaderName),
    /// The host is not allowed, as in DNS rebinding.
    Host,
    /// The origin is not allowed (V1-HTTP-2).
    Origin,
    /// The caller is unknown.
    Unauthenticated(Unauthenticated),
    /// The caller has not these scopes.
    Scope(Option<Id>, Scopes),
    /// The path does not exist.
    Path,
    /// The HTTP method is not allowed; these are.
    Method(&'static str),
    /// The content type is not JSON.
    NotJson,
    /// The caller accepts neither JSON nor a stream.
    NotAcceptable,
    /// The protocol version is not supported (V1-HTTP-9).
    Version,
    /// It names no session (V1-SESS-3).
    NoSession,
    /// The session does not exist, or has another owner (V1-SESS-4, V1-SESS-7).
    UnknownSession,
    /// The body is larger than the limit.
    TooLarge(usize),
    /// The body did not arrive in time, or is incomplete.
    Broken,
    /// The body is not a valid message.
    Malformed(Malformed),
    /// A modern request is invalid (V2-CODE-4).
    Modern(Id, ErrorObject),
    /// A limit of sessions is reached.
    Sessions(Id, SessionLimitReached),
    /// The limit of unfinished bodies is reached.
    Bodies(usize),
    /// The request rate of the caller is too high.
    Rate {
        per_second: NonZeroU32,
        /// After how many seconds it can try again.
        seconds: u64,
    },
    /// The session has too many open requests and streams.
    Streams,
    /// The session cannot be stored, or no new work is accepted.
    Unavailable(Option<Id>, String),
    /// Another node has forwarded the request, and this one is not its home.
    Misdirected,
}

impl Rejection {
    pub(super) fn answer(self) -> HttpResponse {
        let (status, extra) = (self.status(), self.header());
        // An audit line: at the default level no request writes a line.
        REJECTION_LOG.log(|left_out| {
            tracing::info!(
                target: AUDIT,
                status = status.as_u16(),
                why = self.reason(),
                left_out,
                "request rejected"
            );
        });
        let mut answer = response::text(status, self.line());
        if let Some((name, value)) = extra {
            answer.headers_mut().insert(name, value);
        }
        answer
    }

    /// The reason for a log, without text from the caller.
    fn reason(&self) -> &'static str {
        match self {
            Self::MalformedHost => "malformed host",
            Self::Repeated(_) => "repeated header",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Unauthenticated(why) => match why.kind {
                UnauthenticatedKind::Missing => "no token",
                UnauthenticatedKind::Invalid => "unknown token",
                UnauthenticatedKind::Unavailable(_) => "authentication unavailable",
            },
            Self::Scope(..) => "scope",
            Self::Path => "path",
            Self::Method(_) => "method",
            Self::NotJson => "content type",
            Self::NotAcceptable => "accept",
            Self::Version => "protocol version",
            Self::NoSession => "no session",
            Self::UnknownSession => "unknown session",
            Self::TooLarge(_) => "too large",
            Self::Broken => "incomplete body",
            Self::Malformed(_) => "malformed",
            Self::Modern(..) => "headers or _meta",
            Self::Sessions(..) => "too many sessions",
            Self::Bodies(_) => "too many bytes in unfinished bodies",
            Self::Rate { .. } => "too many requests",
            Self::Streams => "too many streams",
            Self::Unavailable(..) => "store unavailable",
            Self::Misdirected => "misdirected",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Host | Self::Origin | Self::Scope(..) => StatusCode::FORBIDDEN,
            Self::Unauthenticated(why) => match why.kind {
                UnauthenticatedKind::Missing | UnauthenticatedKind::Invalid => {
                    StatusCode::UNAUTHORIZED
                }
                UnauthenticatedKind::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            },
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
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
            Self::Unauthenticated(Unauthenticated {
                challenge: Some(challenge),
                ..
            }) => return Some((WWW_AUTHENTICATE, challenge.clone())),
            Self::Unauthenticated(why) => match why.kind {
                UnauthenticatedKind::Missing => (WWW_AUTHENTICATE, "Bearer"),
                UnauthenticatedKind::Invalid => {
                    (WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")
                }
                UnauthenticatedKind::Unavailable(_) => (RETRY_AFTER, "1"),
            },
            Self::Scope(_, missing) => {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{missing}\"");
                let challenge =
                    HeaderValue::from_str(&challenge).expect("the names of scopes are letters");
                return Some((WWW_AUTHENTICATE, challenge));
            }
            Self::Method(allowed) => (ALLOW, *allowed),
            // The rest of the body is not read.
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
                (None, invalid(why))
            }
            Self::Repeated(name) => {
                let why = format!("header `{name}` is sent more than once");
                (None, codes::header_mismatch(why))
            }
            Self::Host => (
                None,
                invalid("the host is not allowed; add it to the allowed hosts"),
            ),
            Self::Origin => (
                None,
                invalid("the origin is not allowed; add it to the allowed origins"),
            ),
            Self::Unauthenticated(why) => (None, invalid(&why.to_string())),
            Self::Scope(id, missing) => (id, denied(missing)),
            Self::Path => (None, invalid("this path does not exist")),
            Self::Method(allowed) => {
                let why = format!("this HTTP method is not allowed; use one of {allowed}");
                (None, codes::invalid_request(why))
            }
            Self::NotJson => (None, invalid("the content type must be application/json")),
            Self::NotAcceptable => {
                let why = "the Accept header must allow application/json or text/event-stream";
                (None, invalid(why))
            }
            Self::Version => (None, invalid("the protocol version is not supported")),
            Self::NoSession => (None, invalid("the header Mcp-Session-Id is missing")),
            Self::UnknownSession => (None, invalid("session not found")),
            Self::TooLarge(limit) => {
                let why = format!("the body has more than {limit} bytes");
                (None, codes::invalid_request(why))
            }
            Self::Broken => (None, invalid("the body did not arrive in full")),
            Self::Malformed(malformed) => {
                let error = malformed.to_error();
                // The id of a response is one of ours.
                let id = malformed
                    .id
                    .filter(|_| malformed.kind == MalformedKind::Request);
                (id, error)
            }
            Self::Modern(id, error) => (Some(id), error),
            Self::Sessions(id, SessionLimitReached::Owner(limit)) => {
                let why = format!(
                    "this caller has {limit} sessions in use, which is the limit (setting `max_sessions_per_owner`); \
                     end one with DELETE"
                );
                (Some(id), codes::internal(why))
            }
            Self::Sessions(id, SessionLimitReached::All(limit)) => {
                let why = format!(
                    "{limit} sessions are in use, which is the limit (setting `max_sessions`); try again later"
                );
                (Some(id), codes::internal(why))
            }
            Self::Bodies(limit) => {
                let why = format!(
                    "unfinished requests have {limit} bytes, which is the limit (setting `max_unfinished_body_bytes`); \
                     try again later"
                );
                (None, codes::internal(why))
            }
            Self::Rate {
                per_second,
                seconds,
            } => {
                let why = format!(
                    "this caller sends more than {per_second} requests per second, which is the limit \
                     (setting `max_requests_per_second`); try again after {seconds} s"
                );
                (None, codes::internal(why))
            }
            Self::Streams => {
                let why =
                    "the session has too many open requests and streams; close one and try again";
                (None, codes::internal(why))
            }
            Self::Unavailable(id, why) => (id, codes::internal(why)),
            Self::Misdirected => (None, codes::internal("this node is not the home")),
        };
        write::error(id.as_ref(), error.to_raw().borrow())
    }
}

static REJECTION_LOG: LogLimit = LogLimit::new();

fn invalid(why: &str) -> ErrorObject {
    codes::invalid_request(why)
}
