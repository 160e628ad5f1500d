//! The only rewrite of a result on its way out: it adds the type, a cache hint and the server info.

use outlast_wire::envelope::ErrorObject;
use outlast_wire::v2::{CacheHint, CacheScope, ResultMembers};
use outlast_wire::{Raw, codes, meta, method, tool, v2};

use super::ModernRequest;
use crate::server::Reply;

/// The result of a handler, before it is finished.
pub(super) enum DraftReply {
    /// A result that is complete as it is.
    Final(Raw),
    /// A result of this module that has its type.
    Local(Raw),
    /// A result of the backend, which is complete whatever type it names.
    Backend(Raw),
    /// An error.
    Error(Raw),
    /// No reply.
    Nothing,
}

impl From<Reply> for DraftReply {
    /// Wraps a reply of the backend.
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Result(result) => Self::Backend(result),
            Reply::Error(error) => Self::Error(v2::modern_error(error.borrow())),
            Reply::Nothing => Self::Nothing,
        }
    }
}

impl From<ErrorObject> for DraftReply {
    fn from(error: ErrorObject) -> Self {
        Self::Error(error.to_raw())
    }
}

impl ModernRequest {
    /// Finishes the result of a handler. A result of the backend gets a cache hint if it is
    /// `cacheable`.
    pub(super) async fn finish(&self, answer: DraftReply, cacheable: bool) -> Reply {
        let (result, complete) = match answer {
            DraftReply::Final(result) => return Reply::Result(result),
            DraftReply::Error(error) => return Reply::Error(error),
            DraftReply::Nothing => return Reply::Nothing,
            DraftReply::Local(result) => (result, false),
            DraftReply::Backend(result) => (result, true),
        };
        let finish = ResultMembers {
            complete,
            cache: Some(CACHE).filter(|_| complete && cacheable),
            info: self.server_info().await.map(Raw::borrow),
        };
        apply(finish, &result)
    }

    /// Finishes the reply of a middleware that did not call `next`. A reply of a handler is
    /// finished already.
    pub(super) async fn finish_filtered(&self, acknowledges: bool, reply: Reply) -> Reply {
        match reply {
            Reply::Result(result)
                if !acknowledges && meta::value(result.borrow(), meta::SERVER_INFO).is_none() =>
            {
                let finish = ResultMembers {
                    info: self.server_info().await.map(Raw::borrow),
                    ..ResultMembers::default()
                };
                apply(finish, &result)
            }
            other => other,
        }
    }

    /// The server info, unless the backend takes too long to describe itself.
    async fn server_info(&self) -> Option<&Raw> {
        let info = &self.server.modern.info;
        if info.get().is_none() {
            self.description_within_timeout().await;
        }
        info.get()
    }
}

/// Whether the results of a method carry a cache hint (V2-CACHE-1).
pub(super) fn is_cacheable(method: &str) -> bool {
    CACHEABLE.contains(&method)
}

/// Whether the response to a method is an acknowledgement. Existing clients recognise one because
/// it is empty (V2-UPD-9), so it has no server info.
pub(super) fn acknowledges(method: &str) -> bool {
    [v2::method::UPDATE, v2::method::CANCEL].contains(&method)
}

fn apply(finish: ResultMembers<'_>, result: &Raw) -> Reply {
    match finish.apply(result.borrow()) {
        Ok(result) => Reply::Result(result),
        Err(_) => Reply::from(codes::internal("the result is not an object")),
    }
}

/// The cache hint. Other callers may get other results, so the scope is private.
pub(super) const CACHE: CacheHint = CacheHint {
    ttl_ms: 60_000,
    scope: CacheScope::Private,
};

/// The methods whose results carry a cache hint.
const CACHEABLE: [&str; 5] = [
    tool::LIST,
    method::PROMPTS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCE_TEMPLATES_LIST,
    method::RESOURCES_READ,
];
