//! Who answers a server's questions on our side: sampling, elicitation, roots.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_engine::{Accepts, Answer, AskKind};
use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::{Raw, codes};
use serde_json::{Value, json};

/// Answers the questions of servers.
///
/// A question that is taken back (by its server, by the end of its task or of the connection) is dismissed by
/// dropping the future: clean up in `Drop`.
#[async_trait]
pub trait ClientHandler: Send + Sync + 'static {
    /// What may be asked. Declared to servers when a connection is opened; anything else is refused before it gets here.
    fn accepts(&self) -> Accepts;

    /// Why `request` cannot be put to anyone at present, for instance because no conversation is open. The server gets
    /// this error as the response, and no task is made (S0-70, S0-71).
    fn unavailable(&self, request: &ServerInputRequest) -> Option<ErrorObject> {
        let _ = request;
        None
    }

    /// Answers one question: with the result of the request, or with an error.
    async fn handle(&self, request: ServerInputRequest) -> Answer;

    /// A page that a url elicitation opened is done with (V1-ELIC-13). RequestIds that are not known are to be ignored.
    fn elicitation_complete(&self, server: &str, elicitation: &str) {
        let _ = (server, elicitation);
    }
}

/// A question of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInputRequest {
    /// What sort of question.
    pub kind: AskKind,
    /// Which server asks (V1-ELIC-9).
    pub server: Arc<str>,
    /// What we call the call that the question belongs to, if it has a name and the question says whose it is.
    pub call: Option<Arc<str>>,
    /// The id of the server's request: an answer to it counts also after the stream on which it came has ended. A modern
    /// server sends no requests.
    pub request: Option<Id>,
    /// What the server calls the question, where it has a name for it: a modern one does.
    pub key: Option<Arc<str>>,
    /// Our task at that server which the question belongs to, if it says so (S1-9).
    pub task: Option<String>,
    /// The parameters of the request, unopened.
    pub params: Option<Raw>,
}

/// A host that answers nothing: servers are told so from the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHandler;

#[async_trait]
impl ClientHandler for NoHandler {
    fn accepts(&self) -> Accepts {
        Accepts::NONE
    }

    async fn handle(&self, request: ServerInputRequest) -> Answer {
        refused(&codes::method_not_found(request.kind.method()))
    }
}

/// The answer to an elicitation that was filled in. OmittedParams content for a url.
pub fn accept(content: Option<Value>) -> Answer {
    result(&match content {
        Some(content) => json!({ "action": "accept", "content": content }),
        None => json!({ "action": "accept" }),
    })
}

/// The person said no to a question: to an elicitation that is a result (V1-ELIC-7), to anything else an error
/// (V1-SAMP-4, S0-75).
pub fn decline(kind: AskKind) -> Answer {
    let error = |message| refused(&ErrorObject::new(codes::REFUSED_BY_PERSON, message));
    match kind {
        AskKind::ElicitForm | AskKind::ElicitUrl => result(&json!({ "action": "decline" })),
        AskKind::Sample | AskKind::SampleWithTools => error("User declined sampling request"),
        AskKind::Roots => error("User declined to share roots"),
    }
}

/// The person closed a question without saying anything.
pub fn dismiss(kind: AskKind) -> Answer {
    match kind {
        AskKind::ElicitForm | AskKind::ElicitUrl => result(&json!({ "action": "cancel" })),
        _ => decline(kind),
    }
}

/// The answer to `roots/list`.
pub fn roots<'a>(roots: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Answer {
    let root = |(uri, name): (&str, Option<&str>)| match name {
        Some(name) => json!({ "uri": uri, "name": name }),
        None => json!({ "uri": uri }),
    };
    let roots: Vec<_> = roots.into_iter().map(root).collect();
    result(&json!({ "roots": roots }))
}

fn result(value: &Value) -> Answer {
    Answer::Result(Raw::from(value))
}

fn refused(error: &ErrorObject) -> Answer {
    Answer::Error(error.to_raw())
}

/// What is declared of ourselves for a host that accepts this (V1-ELIC-1, V1-SAMP-1, V1-ROOT-1).
pub(crate) fn capabilities(accepts: Accepts) -> Raw {
    let mut all = json!({});
    if accepts.contains(AskKind::ElicitForm) {
        all["elicitation"]["form"] = json!({});
    }
    if accepts.contains(AskKind::ElicitUrl) {
        all["elicitation"]["url"] = json!({});
    }
    if accepts.contains(AskKind::Sample) || accepts.contains(AskKind::SampleWithTools) {
        all["sampling"] = json!({});
    }
    if accepts.contains(AskKind::SampleWithTools) {
        all["sampling"]["tools"] = json!({});
    }
    if accepts.contains(AskKind::Roots) {
        all["roots"] = json!({ "listChanged": true });
    }
    Raw::from(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(kinds: &[AskKind]) -> String {
        capabilities(kinds.iter().copied().collect())
            .as_str()
            .into()
    }

    #[test]
    fn exactly_what_is_accepted_is_declared() {
        assert_eq!(declared(&[]), "{}");
        assert_eq!(
            declared(&[AskKind::ElicitUrl]),
            r#"{"elicitation":{"url":{}}}"#
        );
        assert_eq!(
            declared(&[AskKind::SampleWithTools]),
            r#"{"sampling":{"tools":{}}}"#
        );
        assert_eq!(
            declared(&AskKind::ALL),
            r#"{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{"tools":{}}}"#
        );
    }

    #[test]
    fn declining_is_a_result_only_for_elicitation() {
        // V1-ELIC-7, V1-SAMP-4.
        let raw = |text: &str| Raw::parse(text.into()).unwrap();
        assert_eq!(
            decline(AskKind::ElicitForm),
            Answer::Result(raw(r#"{"action":"decline"}"#))
        );
        assert_eq!(
            decline(AskKind::Sample),
            Answer::Error(raw(
                r#"{"code":-1,"message":"User declined sampling request"}"#
            ))
        );
        assert_eq!(
            dismiss(AskKind::ElicitUrl),
            Answer::Result(raw(r#"{"action":"cancel"}"#))
        );
    }
}
