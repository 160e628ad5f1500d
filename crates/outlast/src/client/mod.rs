//! The client side: connects to servers, follows their tasks, and handles their input requests.
//!
//! The transport carries unopened messages ([`transport::link`](crate::transport::link)). The
//! modules here add JSON-RPC, then the era, then the generation of tasks.
//!
//! | where | what |
//! |---|---|
//! | `rpc` | JSON-RPC on a link |
//! | `pending_response` | a sent request until its response |
//! | `rpc_handler` | messages that a server sends on its own |
//! | `incoming_requests` | the requests of a server that are being handled |
//! | `request_ids` | ids of requests |
//! | `connection`, `era`, `target` | opens and reopens a conversation; detects the server's era |
//! | `legacy`, `modern` | the handshake or the framing of an era, and its task methods |
//! | `conversation` | an open conversation; the only place that distinguishes the eras |
//! | `client`, `call`, `call_result`, `execution`, `request` | the types that users hold |
//! | `driver` | one call from request to outcome |
//! | `poller`, `task_report`, `poll_schedule` | one task; its reports; when to poll next |
//! | `inbound`, `routes` | messages of a server outside responses, and the execution of each |
//! | `handler`, `inbox`, `validate_request` | input requests of a server: validation and handling |
//! | `observer` | every message of a connection, for a program that shows them |
//! | `receiver` | tasks that the client hosts for a server |
//! | `task_manager` | tasks that the host program executes |
//! | `hosted_tasks` | hosted tasks as the host program sees them |
//! | `hub` | several named connections, and the tasks that are followed on them |
//! | `tool_cache` | the tools of a server |
//! | `audit` | audit events of tasks at servers |
//! | `reference` | references with which a task is found again after a restart |
//!
//! ```no_run
//! use outlast::client::{Client, ClientOptions, Target};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let target = Target::url("http://127.0.0.1:8040/mcp");
//! let client = Client::connect(target, ClientOptions::default()).await?;
//! let call = client.call_tool("render", serde_json::json!({ "pages": 3 })).await?;
//! println!("{}", call.result().await?.text());
//! # Ok(())
//! # }
//! ```

mod audit;
mod call;
mod call_result;
#[expect(clippy::module_inception, reason = "the file is named after its type")]
mod client;
mod connection;
mod conversation;
mod driver;
mod era;
mod error;
mod execution;
mod handler;
mod hosted_tasks;
mod hub;
mod inbound;
mod inbox;
mod incoming_requests;
mod legacy;
mod modern;
mod observer;
mod open_requests;
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
mod task_manager;
mod task_report;
mod tool_cache;
mod validate_request;

pub use call::{Call, CallError, TaskPreference};
pub(crate) use call::{OmittedParams, RoundRecorder};
pub use call_result::{CallResult, ResultError};
pub use client::{Client, ClientOptions};
pub(crate) use connection::ConversationWatch;
pub use connection::{ConnectionChanges, ConnectionState, ReconnectPolicy};
pub use era::Era;
pub use error::{Error, PeerError, Refusal};
pub(crate) use execution::{CallCommand, CallController};
pub use execution::{CancelError, Execution, ExecutionStatus, Outage, OutcomeError, StatusUpdates};
pub use handler::{
    CONNECTION_ENDED, ClientHandler, NoHandler, REQUEST_WITHDRAWN, ServerInputRequest,
    TASK_CANCELLED, TASK_EXPIRED, accept, decline, dismiss, roots,
};
pub use hosted_tasks::{HostedTasks, HostedTasksPage};
pub use hub::{
    ActiveTask, ConnectionName, Hub, HubCall, HubCallOptions, HubError, HubTasksPage, HubUpdate,
    OnStatus,
};
pub use inbound::NotificationHandler;
pub use inbox::{
    Answer, AnswerKind, Departure, Inbox, InboxEvent, InboxItem, InboxItemId, NoSuchItem, Removal,
};
pub use observer::{MessageDirection, MessageObserver, ObservedMessage};
pub use receiver::{OnDecline, ReceiverOptions, ReceiverTtl, WaitingStatus};
pub(crate) use reference::OpenInputRequest;
pub use reference::{ReferenceInUse, ReferenceStore, TaskReference};
pub(crate) use request::ParamChanges;
pub use request::Request;
pub use server_description::{Generation, ServerDescription};
pub use target::Target;
pub use task_manager::{AbortSignal, NewManagedTask, StatusSink, TaskManager, TaskManagerOptions};
pub use tool_cache::ToolInfo;
pub(crate) use tool_cache::header_params;
