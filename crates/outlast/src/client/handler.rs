//! The handler of a server's input requests: sampling, elicitation, roots.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::{InputKind, InputKinds, InputResponse};
use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::{Raw, codes};
use serde_json::{Value, json};

use crate::input_capabilities::input_capabilities;

/// Handles the input requests of servers.
///
/// If an input request is withdrawn (by its server, or by the end of its task or connection), the
/// future is dropped. Clean up in `Drop`.
///
/// ```
/// use async_trait::async_trait;
/// use outlast::client::{ClientHandler, ClientOptions, ServerInputRequest, accept};
/// use outlast::task::InputResponse;
///
/// /// Accepts every form with the same name.
/// struct Ada;
///
/// #[async_trait]
/// impl ClientHandler for Ada {
///     async fn handle(&self, request: ServerInputRequest) -> InputResponse {
///         println!("{} asks: {:?}", request.server, request.params);
///         accept(Some(serde_json::json!({ "name": "Ada" })))
///     }
/// }
///
/// let options = ClientOptions::default().with_handler(std::sync::Arc::new(Ada));
/// # drop(options);
/// ```
#[async_trait]
pub trait ClientHandler: Send + Sync + 'static {
    /// The accepted input kinds: by default sampling and forms (S1-4, S1-5). They are declared to
    /// servers when a connection is opened; any other input request is refused before it arrives
    /// here.
    fn accepts(&self) -> InputKinds {
        [InputKind::Sample, InputKind::ElicitForm]
            .into_iter()
            .collect()
    }

    /// Why `request` cannot be handled at present, for example because no conversation is open. The
    /// server gets this error as the response, and no task is created (S0-70, S0-71).
    fn unavailable(&self, request: &ServerInputRequest) -> Option<ErrorObject> {
        let _ = request;
        None
    }

    /// Handles one input request. Returns the result of the request, or an error.
    async fn handle(&self, request: ServerInputRequest) -> InputResponse;

    /// The task of `request` ended before `handle` returned; the future of `handle` is dropped.
    /// `reason` is [`TASK_CANCELLED`], [`TASK_EXPIRED`] or [`CONNECTION_ENDED`] (S0-62).
    fn task_aborted(&self, request: &ServerInputRequest, reason: &str) {
        let _ = (request, reason);
    }

    /// A request without a task was withdrawn before `handle` returned; the future of `handle` is
    /// dropped. `reason` is [`REQUEST_WITHDRAWN`] or [`CONNECTION_ENDED`].
    fn request_aborted(&self, request: &ServerInputRequest, reason: &str) {
        let _ = (request, reason);
    }

    /// The page of a URL elicitation is completed (V1-ELIC-13). Ignore unknown ids.
    fn elicitation_complete(&self, server: &str, elicitation: &str) {
        let _ = (server, elicitation);
    }
}

/// The reason of [`ClientHandler::task_aborted`] when the server or the program cancels the task.
pub const TASK_CANCELLED: &str = "Cancelled";

/// The reason of [`ClientHandler::task_aborted`] when the TTL of the task ends.
pub const TASK_EXPIRED: &str = "Expired";

/// The reason of [`ClientHandler::task_aborted`] when the connection to the server ends.
pub const CONNECTION_ENDED: &str = "Connection ended";

/// The reason of [`ClientHandler::request_aborted`] when the server no longer waits for the
/// response.
pub const REQUEST_WITHDRAWN: &str = "Withdrawn by the server";

/// An input request of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInputRequest {
    /// Its kind.
    pub kind: InputKind,
    /// The name of the server (V1-ELIC-9).
    pub server: Arc<str>,
    /// The caller's name for the call that the request belongs to, if both are known.
    pub call: Option<Arc<str>>,
    /// The id of the server's request. A response to it is valid even after its stream has ended. A
    /// modern server sends no requests.
    pub request: Option<Id>,
    /// The server's key of the input request. Only a modern server sends one.
    pub key: Option<Arc<str>>,
    /// The client's task at the server that the request belongs to, if the server names one (S1-9).
    pub task: Option<String>,
    /// The task that the client hosts for the request, if the server sent it as a task (S1-14).
    pub hosted_task: Option<String>,
    /// The params of the request, unopened.
    pub params: Option<Raw>,
}

/// A handler that accepts no input requests. Servers see this in the declared capabilities.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHandler;

#[async_trait]
impl ClientHandler for NoHandler {
    fn accepts(&self) -> InputKinds {
        InputKinds::NONE
    }

    async fn handle(&self, request: ServerInputRequest) -> InputResponse {
        refused(&codes::method_not_found(request.kind.method()))
    }
}

/// The response to an accepted elicitation. A URL elicitation has no content.
pub fn accept(content: Option<Value>) -> InputResponse {
    result(&match content {
        Some(content) => json!({ "action": "accept", "content": content }),
        None => json!({ "action": "accept" }),
    })
}

/// The response if the user declines: a result for an elicitation (V1-ELIC-7), an error for any
/// other kind (V1-SAMP-4, S0-75).
pub fn decline(kind: InputKind) -> InputResponse {
    let error = |message| refused(&ErrorObject::new(codes::DECLINED_BY_USER, message));
    match kind {
        InputKind::ElicitForm | InputKind::ElicitUrl => result(&json!({ "action": "decline" })),
        InputKind::Sample | InputKind::SampleWithTools => error("User declined sampling request"),
        InputKind::Roots => error("User declined to share roots"),
    }
}

/// The response if the user closes the request without an answer.
pub fn dismiss(kind: InputKind) -> InputResponse {
    match kind {
        InputKind::ElicitForm | InputKind::ElicitUrl => result(&json!({ "action": "cancel" })),
        _ => decline(kind),
    }
}

/// The response to `roots/list`.
pub fn roots<'a>(roots: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> InputResponse {
    let root = |(uri, name): (&str, Option<&str>)| match name {
        Some(name) => json!({ "uri": uri, "name": name }),
        None => json!({ "uri": uri }),
    };
    let roots: Vec<_> = roots.into_iter().map(root).collect();
    result(&json!({ "roots": roots }))
}

fn result(value: &Value) -> InputResponse {
    InputResponse::Result(Raw::from(value))
}

fn refused(error: &ErrorObject) -> InputResponse {
    InputResponse::Error(error.to_raw())
}

/// The capabilities to declare for these input kinds. Changed roots are announced.
pub(crate) fn capabilities(accepts: InputKinds) -> Raw {
    let mut all = input_capabilities(accepts);
    if accepts.contains(InputKind::Roots) {
        all["roots"]["listChanged"] = json!(true);
    }
    Raw::from(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(kinds: &[InputKind]) -> String {
        capabilities(kinds.iter().copied().collect())
            .as_str()
            .into()
    }

    #[test]
    fn exactly_the_accepted_kinds_are_declared() {
        assert_eq!(declared(&[]), "{}");
        assert_eq!(
            declared(&[InputKind::ElicitUrl]),
            r#"{"elicitation":{"url":{}}}"#
        );
        assert_eq!(
            declared(&[InputKind::SampleWithTools]),
            r#"{"sampling":{"tools":{}}}"#
        );
        assert_eq!(
            declared(&InputKind::ALL),
            r#"{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{"tools":{}}}"#
        );
    }

    #[test]
    fn declining_is_a_result_only_for_elicitation() {
        // V1-ELIC-7, V1-SAMP-4.
        let raw = |text: &str| Raw::parse(text.into()).unwrap();
        assert_eq!(
            decline(InputKind::ElicitForm),
            InputResponse::Result(raw(r#"{"action":"decline"}"#))
        );
        assert_eq!(
            decline(InputKind::Sample),
            InputResponse::Error(raw(
                r#"{"code":-1,"message":"User declined sampling request"}"#
            ))
        );
        assert_eq!(
            dismiss(InputKind::ElicitUrl),
            InputResponse::Result(raw(r#"{"action":"cancel"}"#))
        );
    }
}
