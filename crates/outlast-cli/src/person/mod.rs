//! The person at the terminal, as the host of servers: their questions are asked here, one after the other.

mod form;
mod lines;
mod page;
mod sampling;

use std::io::IsTerminal;
use std::sync::Arc;

use outlast::back::{Host, Inbox, InboxEvent, Item, ItemId, ReceiverOptions, ReceiverTtl};
use outlast::engine::{Accepts, AskKind};
use outlast::wire::Raw;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::args::Answering;

pub(crate) use lines::Lines;

/// Who answers: a person with their inbox, or nobody.
pub(crate) enum Person {
    There(Inbox, ReceiverOptions),
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
        match answering.interactive || (!answering.no_input && std::io::stdin().is_terminal()) {
            true => {
                let receiver = ReceiverOptions {
                    ttl: ReceiverTtl::Fixed(answering.question_ttl),
                    ..ReceiverOptions::default()
                };
                Self::There(Inbox::new(Accepts::all()), receiver)
            }
            false => Self::Away,
        }
    }

    /// Whom servers ask.
    pub(crate) fn host(&self) -> Option<Arc<dyn Host>> {
        match self {
            Self::There(inbox, _) => Some(Arc::new(inbox.clone())),
            Self::Away => None,
        }
    }

    /// How servers may make tasks of their questions, if anybody answers them.
    pub(crate) fn receiver(&self) -> Option<ReceiverOptions> {
        match self {
            Self::There(_, receiver) => Some(receiver.clone()),
            Self::Away => None,
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

/// Asks one question, until it is answered or taken back.
pub(crate) async fn answer(inbox: &Inbox, item: &Item, lines: &Lines) {
    let reply = tokio::select! {
        reply = ask(item, lines) => reply,
        () = gone(inbox, item.id) => {
            eprintln!("The server does not wait for an answer any more.");
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
        eprintln!("{late}");
    }
}

async fn ask(item: &Item, lines: &Lines) -> Reply {
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
        AskKind::ElicitForm => {
            eprintln!("\n{} asks{about}: {said}", request.server);
            form::fill_in(&params["requestedSchema"], lines).await
        }
        AskKind::ElicitUrl => {
            eprintln!(
                "\n{} wants you to open a page{about}: {said}",
                request.server
            );
            for line in page::about(params["url"].as_str().unwrap_or_default()) {
                eprintln!("  {line}");
            }
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
        AskKind::Sample | AskKind::SampleWithTools => {
            eprintln!("\n{} wants an answer of a model{about}.", request.server);
            sampling::answer(&params, lines).await
        }
        // An inbox answers these itself.
        AskKind::Roots => Reply::Decline,
    }
}

/// Resolves when a question does not wait any more.
async fn gone(inbox: &Inbox, id: ItemId) {
    let mut news = inbox.news();
    while inbox.item(id).is_some() {
        match news.recv().await {
            Ok(InboxEvent::Gone(other)) if other == id => return,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
