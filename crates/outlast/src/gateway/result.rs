//! Converts a response of an upstream for our client, and an error of a call into its outcome.

use outlast_engine::{ErrorCode, Outcome};
use outlast_wire::object::{self, Rewrite};
use outlast_wire::{Raw, codes, meta, version};

use super::connection::cause;
use crate::client::{self, OutcomeError};
use crate::server::ClientHandle;
use crate::transport::link::TransportError;

/// The result with the members in `set` and without those that belong to the other hop, in one
/// copy. A legacy client gets no members of the modern era (BR-LIST-6, BR-LIST-8). For a modern
/// client the server side replaces result type and server info in the copy that it makes (BR-RES-2,
/// BR-GEN-6), so most results are not copied here.
pub(super) fn for_client(result: Raw, client: &ClientHandle, set: &[(&str, &Raw)]) -> Raw {
    let is_modern = client.version() == version::MODERN;
    let text = if is_modern {
        None
    } else {
        content_with_text(&result)
    };
    let drop: &[&str] = match (is_modern, &text) {
        (true, _) => &[],
        (false, None) => &["resultType", "ttlMs", "cacheScope"],
        (false, Some(_)) => &["resultType", "ttlMs", "cacheScope", "structuredContent"],
    };
    let drop_meta: &[&str] = if is_modern {
        &[meta::RELATED_TASK]
    } else {
        &[meta::RELATED_TASK, meta::SERVER_INFO]
    };
    let set = set.iter().copied();
    let set = set.chain(text.as_ref().map(|text| ("content", text)));
    let set: Vec<_> = set.map(|(name, value)| (name, value.borrow())).collect();
    if set.is_empty() {
        // Most results have nothing to remove and are not copied.
        return meta::strip(&result, drop, drop_meta);
    }
    let rewrite = Rewrite {
        drop,
        drop_meta,
        set,
        set_meta: Vec::new(),
    };
    rewrite.apply(result.borrow()).unwrap_or(result)
}

/// The content of a result whose structured content is not an object, with the structured content
/// added as text, because legacy clients read only objects (BR-LIST-8).
fn content_with_text(result: &Raw) -> Option<Raw> {
    let structured = object::find(result.borrow(), &["structuredContent"])?;
    if structured.is_object() {
        return None;
    }
    let block = serde_json::json!({ "type": "text", "text": structured.as_str() });
    let block = Raw::encode(&block).ok()?;
    let content = object::find(result.borrow(), &["content"]).and_then(object::elements);
    let blocks = content.unwrap_or_default();
    let blocks = blocks.into_iter().map(|block| block.as_str());
    let blocks: Vec<_> = blocks.chain([block.as_str()]).collect();
    Raw::parse(format!("[{}]", blocks.join(","))).ok()
}

/// Applies [`for_client`] to the outcome of a call.
pub(super) fn outcome(outcome: Outcome, client: &ClientHandle) -> Outcome {
    match outcome {
        Outcome::Result(result) => Outcome::Result(for_client(result, client, &[])),
        Outcome::ToolError(result, message) => {
            Outcome::ToolError(for_client(result, client, &[]), message)
        }
        other => other,
    }
}

/// An error of the client side as the outcome of a request.
pub(super) fn of_client_error(upstream: &str, fault: client::Error) -> Outcome {
    match fault {
        client::Error::Peer(error) => error.into(),
        // S2-58: the store cannot be written.
        client::Error::NotStored(why) => internal(format!(
            "the input responses were not sent to {upstream}, because the task store could not be written ({why}); \
             the call was not run; check the disk space of the store, then call the tool again"
        )),
        client::Error::Transport(error @ TransportError::TooLarge { .. }) => {
            too_large(upstream, &error)
        }
        fault if fault.server_has_not_acted() => {
            internal(format!("{upstream} cannot be reached: {}", cause(&fault)))
        }
        fault => Outcome::unknown(format!(
            "{upstream} did not respond: {fault}; the outcome of the call is unknown, and it was not run again"
        )),
    }
}

/// The outcome of a call that ended without one.
pub(super) fn of_outcome_error(upstream: &str, why: OutcomeError) -> Outcome {
    match why {
        OutcomeError::Request(fault) => of_client_error(upstream, fault),
        OutcomeError::Lost {
            why: client::Error::Transport(error @ TransportError::TooLarge { .. }),
            ..
        } => too_large(upstream, &error),
        // BR-TTL-3.
        why @ (OutcomeError::Expired(_) | OutcomeError::Lost { .. }) => Outcome::unknown(format!(
            "task lost upstream ({upstream}): its outcome is unknown ({})",
            without_id(&why)
        )),
        // V1-INPUT-9: without the response the upstream's task cannot continue.
        OutcomeError::InputResponseRefused { why, .. } => internal(format!(
            "{upstream} refused the input response ({why}), so its task cannot continue; call the tool again"
        )),
        why => Outcome::unknown(format!("{upstream}: {why}; the outcome is unknown")),
    }
}

/// The outcome of a call whose result is too large.
fn too_large(upstream: &str, error: &TransportError) -> Outcome {
    internal(format!(
        "the response of {upstream} is too large: {error}; raise the setting `payloadBytes` or request less data"
    ))
}

pub(super) fn internal(message: String) -> Outcome {
    Outcome::error(ErrorCode(codes::INTERNAL_ERROR), message)
}

/// BR-ID-1: clients do not see ids of the upstream.
fn without_id(why: &OutcomeError) -> String {
    match why {
        OutcomeError::Lost { why, .. } => why.to_string(),
        _ => "it has expired there".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ClientInfo;
    use outlast_engine::{InputKinds, Owner};

    fn raw(text: &str) -> Raw {
        Raw::parse(text.into()).unwrap()
    }

    #[test]
    fn hop_members_are_removed_and_other_bytes_stay() {
        // BR-RES-2, BR-GEN-6, BR-LIST-6.
        let client = ClientHandle::absent(Owner::Local, InputKinds::NONE);
        let plain = r#"{ "content":[ ], "x" : 1.50 }"#;
        assert_eq!(for_client(raw(plain), &client, &[]).as_str(), plain);
        let modern = r#"{"content":[],"resultType":"complete","ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"},"io.modelcontextprotocol/related-task":{"taskId":"t"},"k":1}}"#;
        assert_eq!(
            for_client(raw(modern), &client, &[]).as_str(),
            r#"{"content":[],"_meta":{"k":1}}"#
        );
    }

    #[test]
    fn a_modern_result_is_not_copied_for_modern_clients() {
        // The server side replaces type and server info, in its only copy.
        let info = ClientInfo::new(version::MODERN, Raw::empty_object());
        let client = ClientHandle::stateless(Owner::Local, info);
        let result = raw(
            r#"{"content":[],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#,
        );
        let bytes = result.as_str().as_ptr();
        assert_eq!(for_client(result, &client, &[]).as_str().as_ptr(), bytes);
        let related =
            r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#;
        assert_eq!(
            for_client(raw(related), &client, &[]).as_str(),
            r#"{"content":[]}"#
        );
    }

    #[test]
    fn members_are_set_in_the_same_copy() {
        // BR-LIST-10.
        let client = ClientHandle::absent(Owner::Local, InputKinds::NONE);
        let page = raw(r#"{"resultType":"complete","prompts":[], "x" : 1.0,"nextCursor":""}"#);
        let cursor = raw(r#""o.""#);
        assert_eq!(
            for_client(page, &client, &[("nextCursor", &cursor)]).as_str(),
            r#"{"prompts":[], "x" : 1.0,"nextCursor":"o."}"#
        );
    }

    #[test]
    fn non_object_structured_content_is_text_for_legacy_clients() {
        // BR-LIST-8.
        let client = ClientHandle::absent(Owner::Local, InputKinds::NONE);
        let result = r#"{"content":[{"type":"text","text":"a"}],"structuredContent":[1, 2]}"#;
        assert_eq!(
            for_client(raw(result), &client, &[]).as_str(),
            r#"{"content":[{"type":"text","text":"a"},{"text":"[1, 2]","type":"text"}]}"#
        );
    }
}
