//! Our face towards servers: a client that drives their tasks and answers their questions.
//!
//! A connection is a pipe of unopened messages ([`transport::link`](crate::transport::link)); what an era or a
//! generation makes of them sits above it.
//!
//! | where | what |
//! |---|---|
//! | `rpc`, `pending_response`, `rpc_handler` | JSON-RPC on a link; our requests until they are answered; what the server sends on its own |
//! | `connection`, `era` | opens the conversation, and again after it was lost; finds out the server's era |
//! | `legacy`, `modern` | how the two eras open a conversation and write the task methods |
//! | `conversation` | a conversation that is open: the only place where the eras are told apart |
//! | `client`, `call`, `execution`, `request` | what users hold |
//! | `driver`, `poller`, `task_report`, `poll_schedule` | one call from request to outcome; one task under observation; what a poll returns, and when to poll next |
//! | `routes`, `inbound`, `incoming_requests` | what receives the messages that a server sends on its own |
//! | `handler`, `inbox`, `validate_request` | what answers a server's input requests, and which are refused before |
//! | `receiver` | tasks that we host for a server: its sampling and elicitation |
//! | `audit` | what is logged of tasks at servers |
//! | `reference` | finding a task again after a restart of the program |
//!
//! ```no_run
//! use outlast::client::{Client, ClientOptions, Target};
//! use outlast::transport::http_client::HttpClientOptions;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let target = Target::http(HttpClientOptions::new("http://127.0.0.1:8040/mcp"));
//! let client = Client::connect(target, ClientOptions::default()).await?;
//! let call = client.call_tool("render", None).ttl(60_000).await?;
//! println!("{:?}", call.outcome().await?);
//! # Ok(())
//! # }
//! ```

mod audit;
mod call;
mod client;
mod connection;
mod conversation;
mod driver;
mod era;
mod error;
mod execution;
mod handler;
mod inbound;
mod inbox;
mod incoming_requests;
mod legacy;
mod modern;
mod outcome;
mod pending_response;
mod poll_schedule;
mod poller;
mod receiver;
mod reference;
mod request;
mod request_ids;
mod routes;
mod rpc;
mod rpc_handler;
mod server_description;
mod target;
mod task_report;
mod tool_cache;
mod validate_request;

pub use call::{Call, CallError, TaskPreference};
pub(crate) use call::{OmittedParams, RoundRecorder};
pub use client::{Client, ClientOptions};
pub(crate) use connection::ConversationWatch;
pub use connection::ReconnectPolicy;
pub use era::Era;
pub use error::{Error, PeerError, Refusal};
pub(crate) use execution::{CallController, Command};
pub use execution::{CancelError, Execution, ExecutionStatus, Outage, OutcomeError, StatusUpdates};
pub use handler::{ClientHandler, NoHandler, ServerInputRequest, accept, decline, dismiss, roots};
pub use inbound::NotificationHandler;
pub use inbox::{Inbox, InboxEvent, InboxItem, InboxItemId, NoSuchItem};
pub use receiver::{OnDecline, ReceiverOptions, ReceiverTtl, WaitingStatus};
pub(crate) use reference::OpenInputRequest;
pub use reference::{ReferenceInUse, ReferenceStore, TaskReference};
pub(crate) use request::ParamChanges;
pub use request::Request;
pub use server_description::{Generation, ServerDescription};
pub use target::Target;
pub use tool_cache::ToolInfo;
pub(crate) use tool_cache::header_params;
