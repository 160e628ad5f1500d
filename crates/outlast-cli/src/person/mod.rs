//! The person at the terminal, as the host of servers: their questions are asked here, one after the other.

mod form;
mod lines;
mod page;
mod sampling;

use std::io::IsTerminal;
use std::sync::Arc;

use async_trait::async_trait;
use outlast::client::{
    ClientHandler, Inbox, InboxEvent, InboxItem, InboxItemId, ReceiverOptions, ReceiverTtl,
    ServerInputRequest,
};
use outlast::engine::{InputKind, InputKinds, InputResponse};
use outlast::wire::{Raw, RawRef, object};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::args::Answering;
use crate::terminal::{self, Line, Tone, say};

pub(crate) use lines::Lines;

/// Who answers the input requests of servers.
pub(crate) enum Person {
    /// A person with their inbox.
    There(Inbox, ReceiverOptions),
    /// A person who comes back: input requests are declared as answerable and stay open.
    Later,
    /// No person: servers learn that they cannot ask.
    Away,
}

/// What a person wants to do with a question.
enum Reply {
    Respond(Value),
    Decline,
    Cancel,
}

impl Person {
    /// A person is there if the input is a terminal, or if we are told so.
    pub(crate) fn find(answering: Answering) -> Self {
        if answering.interactive || (!answering.no_input && std::io::stdin().is_terminal()) {
            let receiver = ReceiverOptions {
                ttl: ReceiverTtl::Fixed(answering.question_ttl),
                ..ReceiverOptions::default()
            };
            Self::There(Inbox::new(InputKinds::all()), receiver)
        } else {
            Self::Away
        }
    }

    /// Whom servers ask.
    pub(crate) fn host(&self) -> Option<Arc<dyn ClientHandler>> {
        match self {
            Self::There(inbox, _) => Some(Arc::new(inbox.clone())),
            Self::Later => Some(Arc::new(NoAnswerYet)),
            Self::Away => None,
        }
    }

    /// How servers may make tasks of their questions, if anybody answers them.
    pub(crate) fn receiver(&self) -> Option<ReceiverOptions> {
        match self {
            Self::There(_, receiver) => Some(receiver.clone()),
            // A task that this process hosts ends with the process.
            Self::Later | Self::Away => None,
        }
    }

    /// Asks the person whatever comes, for ever. `before` clears the place where it is asked.
    pub(crate) async fn attend(&self, lines: &Lines, before: impl Fn(bool)) {
        let Self::There(inbox, _) = self else {
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

/// Leaves every input request open. In a session or task that goes on, it is sent again to the next client.
pub(crate) struct NoAnswerYet;

#[async_trait]
impl ClientHandler for NoAnswerYet {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        std::future::pending().await
    }
}

/// Asks one question, until it is answered or taken back.
pub(crate) async fn answer(inbox: &Inbox, item: &InboxItem, lines: &Lines) {
    let reply = tokio::select! {
        reply = ask(item, lines) => reply,
        () = gone(inbox, item.id) => {
            say!("The server has withdrawn this input request.");
            return;
        }
    };
    let told = match reply {
        Reply::Respond(result) => match Raw::encode(&result) {
            Ok(result) => inbox.respond(item.id, result),
            Err(_) => inbox.cancel(item.id),
        },
        Reply::Decline => inbox.decline(item.id),
        Reply::Cancel => inbox.cancel(item.id),
    };
    if let Err(late) = told {
        say!("{late}");
    }
}

async fn ask(item: &InboxItem, lines: &Lines) -> Reply {
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
    let said = params["message"].as_str().unwrap_or_default();
    match request.kind {
        InputKind::ElicitForm => {
            introduce(&format!("{} asks{about}:", request.server), said);
            let schema = request
                .params
                .as_ref()
                .and_then(|params| object::find(params.borrow(), &["requestedSchema"]));
            form::fill_in(schema.unwrap_or(RawRef::EMPTY_OBJECT), lines).await
        }
        InputKind::ElicitUrl => {
            let wants = format!("{} wants you to open a page{about}:", request.server);
            introduce(&wants, said);
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
                Some("y") => Reply::Respond(json!({ "action": "accept" })),
                Some("d") => Reply::Decline,
                _ => Reply::Cancel,
            }
        }
        InputKind::Sample | InputKind::SampleWithTools => {
            say!("");
            say!("{} asks for a response of a model{about}:", request.server);
            sampling::answer(&params, lines).await
        }
        // An inbox answers these itself.
        InputKind::Roots => Reply::Decline,
    }
}

/// Says who asks, and what. Lines of the server are marked, so that none of them looks like a line of ours.
fn introduce(who: &str, said: &str) {
    say!("");
    terminal::err(Line::new().tone(Tone::Strong, who));
    terminal::quote(QUOTE, said);
}

/// What stands before each line that a server wrote.
const QUOTE: &str = "  │ ";

/// Resolves when a question does not wait any more.
async fn gone(inbox: &Inbox, id: InboxItemId) {
    let mut news = inbox.events();
    while inbox.item(id).is_some() {
        match news.recv().await {
            Ok(InboxEvent::Removed(other)) if other == id => return,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
