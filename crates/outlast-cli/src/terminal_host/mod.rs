//! The user at the terminal as the handler of input requests. They are shown one at a time.

mod form;
mod lines;
mod page;
mod sampling;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast::client::{
    ClientHandler, Inbox, InboxEvent, InboxItem, InboxItemId, ReceiverOptions, ReceiverTtl,
    ServerInputRequest,
};
use outlast::task::{InputKind, InputKinds, InputResponse};
use outlast::wire::{Raw, RawRef};
use outlast_wire::object;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::args::InputArgs;
use crate::terminal::{self, StyledLine, Tone, say};

pub(crate) use lines::Lines;

/// How input requests of servers are answered.
pub(crate) enum TerminalHost {
    /// By the user at the terminal, through this inbox.
    Interactive(Inbox, ReceiverOptions),
    /// By a later command: the client declares that it supports input requests and leaves them
    /// open.
    Deferred,
    /// Not at all: the client declares that it does not support input requests.
    Absent,
}

/// What the user answers.
enum UserReply {
    Respond(Raw),
    Decline,
    Cancel,
}

impl TerminalHost {
    /// Chooses the terminal if standard input is one, or if the options require it.
    pub(crate) fn detect(input: InputArgs) -> Self {
        if input.interactive || (!input.no_input && std::io::stdin().is_terminal()) {
            let receiver = ReceiverOptions::default().with_ttl(ReceiverTtl::Fixed(
                Duration::from_millis(input.input_request_ttl),
            ));
            Self::Interactive(Inbox::new(InputKinds::all()), receiver)
        } else {
            Self::Absent
        }
    }

    /// The handler for the client options.
    pub(crate) fn handler(&self) -> Option<Arc<dyn ClientHandler>> {
        match self {
            Self::Interactive(inbox, _) => Some(Arc::new(inbox.clone())),
            Self::Deferred => Some(Arc::new(DeferAnswers)),
            Self::Absent => None,
        }
    }

    /// The options for input requests that a server sends as tasks.
    pub(crate) fn receiver(&self) -> Option<ReceiverOptions> {
        match self {
            Self::Interactive(_, receiver) => Some(receiver.clone()),
            // A task that this process hosts would end with the process.
            Self::Deferred | Self::Absent => None,
        }
    }

    /// Shows input requests until this is dropped. `before` hides and shows the status line.
    pub(crate) async fn answer_all(&self, lines: &Lines, before: impl Fn(bool)) {
        let Self::Interactive(inbox, _) = self else {
            return std::future::pending().await;
        };
        loop {
            let item = inbox.first().await;
            before(true);
            answer(inbox, &item, lines).await;
            before(false);
        }
    }
}

/// Leaves every input request open. The server sends it again to the next client of the session or
/// task.
pub(crate) struct DeferAnswers;

#[async_trait]
impl ClientHandler for DeferAnswers {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        std::future::pending().await
    }
}

/// Shows one input request until it is answered or withdrawn.
pub(crate) async fn answer(inbox: &Inbox, item: &InboxItem, lines: &Lines) {
    let reply = tokio::select! {
        reply = ask(item, lines) => reply,
        () = until_closed(inbox, item.id) => {
            say!("The server has withdrawn this input request.");
            return;
        }
    };
    let described = match reply {
        UserReply::Respond(result) => inbox.respond(item.id, result),
        UserReply::Decline => inbox.decline(item.id),
        UserReply::Cancel => inbox.cancel(item.id),
    };
    if let Err(late) = described {
        say!("{late}");
    }
}

async fn ask(item: &InboxItem, lines: &Lines) -> UserReply {
    let request = &item.request;
    let params: Value = request
        .params
        .as_ref()
        .and_then(|params| params.open().ok())
        .unwrap_or_default();
    let about = request
        .task
        .as_ref()
        .map(|task| format!(" (task {task})"))
        .unwrap_or_default();
    let text = params["message"].as_str().unwrap_or_default();
    match request.kind {
        InputKind::ElicitForm => {
            introduce(&format!("{} asks{about}:", request.server), text);
            let schema = request
                .params
                .as_ref()
                .and_then(|params| object::find(params.borrow(), &["requestedSchema"]));
            form::fill_in(schema.unwrap_or(RawRef::EMPTY_OBJECT), lines).await
        }
        InputKind::ElicitUrl => {
            let wants = format!("{} wants you to open a page{about}:", request.server);
            introduce(&wants, text);
            page::about(params["url"].as_str().unwrap_or_default())
                .into_iter()
                .for_each(terminal::err);
            match lines
                .choose(
                    "Did you open it? [y]es, [d]ecline, [c]ancel",
                    &["y", "d", "c"],
                )
                .await
            {
                Some("y") => UserReply::Respond(Raw::from(&json!({ "action": "accept" }))),
                Some("d") => UserReply::Decline,
                _ => UserReply::Cancel,
            }
        }
        InputKind::Sample | InputKind::SampleWithTools => {
            say!("");
            say!("{} asks for a response of a model{about}:", request.server);
            sampling::answer(&params, lines).await
        }
        // An inbox answers these itself.
        InputKind::Roots => UserReply::Decline,
    }
}

/// Prints which server asks, and its text. Each line of the server is marked, so that none of them
/// looks like our output.
fn introduce(who: &str, text: &str) {
    say!("");
    terminal::err(StyledLine::new().tone(Tone::Strong, who));
    terminal::quote(QUOTE, text);
}

/// The mark before each line that a server wrote.
const QUOTE: &str = "  │ ";

/// Resolves when an input request is no longer open.
async fn until_closed(inbox: &Inbox, id: InboxItemId) {
    let mut events = inbox.events();
    while inbox.item(id).is_some() {
        match events.recv().await {
            Ok(InboxEvent::Removed(other)) if other == id => return,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
