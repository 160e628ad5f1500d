//! The client of the demo: an MCP client, connected by a pipe to the server in this process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast::client::{
    Client, ClientHandler, ClientOptions, Era, Execution, ReferenceStore, ServerInputRequest,
    Target, TaskPreference,
};
use outlast::server::McpServer;
use outlast::store::Store;
use outlast::task::{InputKinds, InputResponse};
use outlast::wire::Raw;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::board::Board;
use super::tools;
use crate::exit::Failure;
use crate::terminal::say;

pub(super) struct DemoClient {
    client: Client,
    references: ReferenceStore,
    board: Board,
}

impl DemoClient {
    /// Connects to `server`. The client stores references to its tasks in `store`.
    pub(super) async fn connect(
        server: Arc<McpServer>,
        store: Arc<dyn Store>,
    ) -> Result<Self, Failure> {
        let board = Board::new();
        let references = ReferenceStore::new(store);
        let options = ClientOptions::default()
            .with_server_name("demo")
            .with_era(Era::Legacy)
            .with_handler(Arc::new(AnswersYes(board.clone())))
            .with_references(references.clone());
        let client = Client::connect(Target::in_process(server), options).await?;
        Ok(Self {
            client,
            references,
            board,
        })
    }

    /// Continues the tasks that the last run did not finish. Without such tasks, calls every sample
    /// tool `rounds` times.
    pub(super) async fn run(&self, rounds: u32) -> Result<(), Failure> {
        let mut left = self.references.all(None).await?;
        left.sort_by_key(|reference| reference.created);
        if !left.is_empty() {
            say!("The same client continues with the ids of its tasks:");
            let resumed = left
                .into_iter()
                .map(|reference| self.client.resume(reference));
            // Each reference is used once, because this process has just started.
            self.follow_all(resumed.filter_map(Result::ok)).await;
            say!("");
            say!("Every task has its outcome. Run the demo again for new ones.");
            return Ok(());
        }
        for round in 1..=rounds {
            match rounds {
                1 => say!("A client calls four slow tools:"),
                _ => say!("A client calls four slow tools, round {round} of {rounds}:"),
            }
            let mut made = Vec::new();
            for (tool, arguments) in tools::calls() {
                let arguments = Raw::encode(&arguments).map_err(std::io::Error::other)?;
                let call = self.client.call_tool(tool, Some(arguments));
                made.push(call.task(TaskPreference::Require).await?);
            }
            self.follow_all(made).await;
        }
        Ok(())
    }

    pub(super) async fn close(self) {
        self.client.close().await;
    }

    /// Shows every call until all have ended.
    async fn follow_all(&self, calls: impl IntoIterator<Item = Execution>) {
        let mut following = JoinSet::new();
        for call in calls {
            let mut row = self.board.row();
            following.spawn(async move {
                let mut updates = call.updates();
                loop {
                    let view = call.status();
                    row.show(&view);
                    if view.ended.is_some() || updates.next().await.is_none() {
                        return;
                    }
                }
            });
        }
        following.join_all().await;
        self.board.end_rows();
    }
}

/// Answers every input request with yes, after a delay.
struct AnswersYes(Board);

#[async_trait]
impl ClientHandler for AnswersYes {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, request: ServerInputRequest) -> InputResponse {
        let params = request
            .params
            .as_ref()
            .and_then(|params| params.open().ok());
        let params: Value = params.unwrap_or_default();
        let question = params["message"].as_str().unwrap_or_default();
        tokio::time::sleep(ANSWER_DELAY).await;
        self.0.note(&format!(
            "The server asked \"{question}\" The demo answered yes."
        ));
        let yes = json!({ "action": "accept", "content": { "confirm": true } });
        InputResponse::Result(Raw::encode(&yes).expect("a literal is JSON"))
    }
}

/// The delay before the demo answers.
const ANSWER_DELAY: Duration = Duration::from_millis(800);
