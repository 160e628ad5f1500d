//! The one rewrite of a result on its way out: its type, a cache hint, and the server that answers.

use outlast_wire::envelope::ErrorObject;
use outlast_wire::v2::{CacheHint, CacheScope, Finish};
use outlast_wire::{Raw, codes, meta, method, tool, v2};

use super::ModernRequest;
use crate::server::Reply;

/// What a handler answers with, before its result is finished.
pub(super) enum DraftReply {
    /// A result that is written here with all that it needs.
    Final(Raw),
    /// A result that is written here, with its type.
    Local(Raw),
    /// A result of the backend: complete, whatever type it names.
    Backend(Raw),
    /// An error.
    Error(Raw),
    /// The request is not answered.
    Nothing,
}

impl From<Reply> for DraftReply {
    /// A reply of the backend.
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
    /// Makes a reply of what a handler answers. A result of the backend gets a cache hint if it is `cacheable`.
    pub(super) async fn finish(&self, answer: DraftReply, cacheable: bool) -> Reply {
        let (result, complete) = match answer {
            DraftReply::Final(result) => return Reply::Result(result),
            DraftReply::Error(error) => return Reply::Error(error),
            DraftReply::Nothing => return Reply::Nothing,
            DraftReply::Local(result) => (result, false),
            DraftReply::Backend(result) => (result, true),
        };
        let finish = Finish {
            complete,
            cache: Some(CACHE).filter(|_| complete && cacheable),
            info: self.server_info().await.map(Raw::borrow),
        };
        apply(finish, &result)
    }

    /// Finishes the result of a filter that has not passed its request on. A result from here is finished already.
    pub(super) async fn finish_filtered(&self, acknowledges: bool, reply: Reply) -> Reply {
        match reply {
            Reply::Result(result)
                if !acknowledges && meta::value(result.borrow(), meta::SERVER_INFO).is_none() =>
            {
                let finish = Finish {
                    info: self.server_info().await.map(Raw::borrow),
                    ..Finish::default()
                };
                apply(finish, &result)
            }
            other => other,
        }
    }

    /// The name of the server, unless it takes long to say it.
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

/// Whether the response to a method is an acknowledgement. Clients in the field recognise one by its being empty
/// (V2-UPD-9), so it does not name the server.
pub(super) fn acknowledges(method: &str) -> bool {
    [v2::method::UPDATE, v2::method::CANCEL].contains(&method)
}

fn apply(finish: Finish<'_>, result: &Raw) -> Reply {
    match finish.apply(result.borrow()) {
        Ok(result) => Reply::Result(result),
        Err(_) => Reply::from(codes::internal("the result is not an object")),
    }
}

/// What a caller may cache of this server. Others may be told something else.
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
