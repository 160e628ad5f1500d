//! Parses one message in one pass: its kind, its id, its method, its payload as unparsed text.
//!
//! The size is checked first, depth and syntax during the pass. Only the envelope is parsed;
//! `params`, `result` and `error.data` stay text.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::envelope::{ErrorView, Id, Malformed, MalformedKind, MalformedReason};
use crate::json::scan::{Scanner, SyntaxError};
use crate::raw::RawRef;

/// The limits of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of bytes.
    pub bytes: usize,
    /// The maximum nesting depth, the envelope included.
    pub depth: usize,
}

/// 16 MiB of payload and its envelope, and fewer levels than serde_json allows (128).
impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: (16 << 20) + (64 << 10),
            depth: 100,
        }
    }
}

/// One JSON-RPC message, borrowed from its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A request, which needs a response.
    Request(Request<'a>),
    /// A notification, which needs no response.
    Notification(Notification<'a>),
    /// A response.
    Response(Response<'a>),
}

/// A message that needs a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The id that its response repeats.
    pub id: Id,
    /// The method.
    pub method: Cow<'a, str>,
    /// An object, not parsed.
    pub params: Option<RawRef<'a>>,
}

/// A message without a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification<'a> {
    /// The method.
    pub method: Cow<'a, str>,
    /// An object, not parsed.
    pub params: Option<RawRef<'a>>,
}

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The id of the request. Absent or null only on an error for a message without a readable id
    /// (V1-BASE-3).
    pub id: Option<Id>,
    /// The result or the error.
    pub outcome: Outcome<'a>,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// An object, not parsed.
    Result(RawRef<'a>),
    /// An error.
    Error(ErrorView<'a>),
}

impl<'a> Message<'a> {
    /// Parses one message.
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Result<Self, Malformed> {
        let nothing_known = |fault| Malformed {
            fault,
            id: None,
            kind: MalformedKind::Request,
        };
        if bytes.len() > limits.bytes {
            return Err(nothing_known(MalformedReason::TooLarge {
                size: bytes.len(),
                limit: limits.bytes,
            }));
        }
        let text = str::from_utf8(bytes).map_err(|_| nothing_known(MalformedReason::NotUtf8))?;
        let mut draft = EnvelopeMembers::default();
        let message = draft
            .scan(text, limits)
            .and_then(|()| draft.duplicate.take().map_or(Ok(()), Err))
            .and_then(|()| draft.classify());
        message.map_err(|fault| draft.malformed(fault))
    }
}

/// The members of an envelope during the pass.
#[derive(Default)]
struct EnvelopeMembers<'a> {
    jsonrpc: Option<RawRef<'a>>,
    id: Option<RawRef<'a>>,
    method: Option<RawRef<'a>>,
    params: Option<RawRef<'a>>,
    result: Option<RawRef<'a>>,
    error: Option<RawRef<'a>>,
    unknown: BTreeSet<Cow<'a, str>>,
    duplicate: Option<MalformedReason>,
    two_ids: bool,
}

impl<'a> EnvelopeMembers<'a> {
    /// Scans the whole text, so that an error in one member does not hide the id in a later one.
    fn scan(&mut self, text: &'a str, limits: &Limits) -> Result<(), MalformedReason> {
        let mut scanner = Scanner::new(text);
        let broken = |SyntaxError { at }| MalformedReason::NotJson { at };
        match scanner.peek().map_err(broken)? {
            b'{' => self.scan_members(text, &mut scanner).map_err(broken)?,
            first => {
                scanner
                    .value()
                    .and_then(|_| scanner.end())
                    .map_err(broken)?;
                return Err(if first == b'[' {
                    MalformedReason::Batch
                } else {
                    MalformedReason::NotAnObject
                });
            }
        }
        // The envelope is the only container that the scanner did not count.
        if scanner.deepest() >= limits.depth {
            return Err(MalformedReason::TooDeep {
                limit: limits.depth,
            });
        }
        Ok(())
    }

    fn scan_members(
        &mut self,
        text: &'a str,
        scanner: &mut Scanner<'a>,
    ) -> Result<(), SyntaxError> {
        scanner.expect(b'{')?;
        if scanner.peek()? == b'}' {
            scanner.expect(b'}')?;
            return scanner.end();
        }
        loop {
            let key = scanner.string()?;
            scanner.expect(b':')?;
            let value = RawRef::scanned(&text[scanner.value()?]);
            self.take(key.unescaped(text), value);
            if scanner.peek()? == b'}' {
                scanner.expect(b'}')?;
                return scanner.end();
            }
            scanner.expect(b',')?;
        }
    }

    fn take(&mut self, name: Cow<'a, str>, value: RawRef<'a>) {
        let slot = match &*name {
            "jsonrpc" => &mut self.jsonrpc,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            _ => {
                if let Some(twice) = self.unknown.replace(name) {
                    self.duplicate = Some(MalformedReason::Duplicate(twice.into_owned()));
                }
                return;
            }
        };
        if slot.replace(value).is_some() {
            self.two_ids |= name == "id";
            self.duplicate = Some(MalformedReason::Duplicate(name.into_owned()));
        }
    }

    fn classify(&self) -> Result<Message<'a>, MalformedReason> {
        let version = self.jsonrpc.and_then(RawRef::text);
        if version.as_deref() != Some("2.0") {
            return Err(MalformedReason::Version);
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => self.call(method),
            (Some(_), _, _) => Err(MalformedReason::Both),
            (None, Some(result), None) => {
                let id = self.read_id()?.ok_or(MalformedReason::NoId)?;
                if !result.is_object() {
                    return Err(MalformedReason::Result);
                }
                Ok(Message::Response(Response {
                    id: Some(id),
                    outcome: Outcome::Result(result),
                }))
            }
            (None, None, Some(error)) => {
                let unreadable = self.id.is_none_or(RawRef::is_null);
                Ok(Message::Response(Response {
                    id: if unreadable { None } else { self.read_id()? },
                    outcome: Outcome::Error(ErrorView::read(error).ok_or(MalformedReason::Error)?),
                }))
            }
            (None, Some(_), Some(_)) => Err(MalformedReason::TwoOutcomes),
            (None, None, None) => Err(MalformedReason::Neither),
        }
    }

    fn call(&self, method: RawRef<'a>) -> Result<Message<'a>, MalformedReason> {
        let id = self.read_id()?;
        let method = method.text().ok_or(MalformedReason::Method)?;
        // Some clients send `null` instead of omitting the member.
        let params = self.params.filter(|params| !params.is_null());
        if params.is_some_and(|params| !params.is_object()) {
            return Err(MalformedReason::Params);
        }
        Ok(match id {
            Some(id) => Message::Request(Request { id, method, params }),
            None => Message::Notification(Notification { method, params }),
        })
    }

    fn read_id(&self) -> Result<Option<Id>, MalformedReason> {
        self.id
            .map(Id::read)
            .transpose()
            .map_err(|_| MalformedReason::Id)
    }

    fn malformed(&self, fault: MalformedReason) -> Malformed {
        let input_responses =
            self.method.is_none() && (self.result.is_some() || self.error.is_some());
        Malformed {
            fault,
            id: if self.two_ids {
                None
            } else {
                self.read_id().ok().flatten()
            },
            kind: if input_responses {
                MalformedKind::Response
            } else {
                MalformedKind::Request
            },
        }
    }
}
