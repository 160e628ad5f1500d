//! The modern era on the client side: stateless requests, and the V2 task methods as a requestor.
//! The legacy counterpart is `legacy`.
//!
//! | where | what |
//! |---|---|
//! | here | detecting a server, framing a request, the task methods |
//! | `input_dispatch` | input requests of a server, on their way to the handler |
//! | `input_rounds` | input requests that precede a result |
//! | `task_inputs` | the input requests of a task and their state |
//! | `subscriptions` | `subscriptions/listen` |

mod input_dispatch;
mod input_rounds;
mod subscriptions;
mod task_inputs;

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{InputKind, InputKinds};
use outlast_wire::v2::{self, Discover, ResultType};
use outlast_wire::{Raw, RawRef, codes, headers, object, params, version};

use super::conversation::{Conversation, RequestDraft};
use super::era::ClientDescription;
use super::error::Error;
use super::handler::capabilities;
use super::pending_response::{OnDrop, PendingResponse, SendOptions};
use super::rpc::RpcChannel;
use super::server_description::{Generation, ServerDescription};
use super::task_report::TaskReport;
use crate::transport::link::TransportError;

pub(crate) use input_dispatch::{InputDispatcher, InputRefusal};
pub(crate) use input_rounds::InputRounds;
pub(crate) use subscriptions::Subscriptions;
pub(crate) use task_inputs::{OnInvalid, TaskInputs};

/// The metadata that every modern request carries.
#[derive(Clone, Debug)]
pub(crate) struct ModernFraming {
    info: Raw,
    version: Raw,
    capabilities: Raw,
    /// The capabilities with the tasks extension.
    with_tasks: Raw,
}

/// The result of the probe with `server/discover`.
pub(crate) enum ProbeResult {
    Modern(ServerDescription),
    /// A legacy server, to be opened in this version.
    Legacy(&'static str),
    /// The server rejected a version that it supports. Probe it once more.
    Retry,
    /// The server closed the connection.
    Closed,
    /// The server could not be probed, or there is no common version.
    Failed(Error),
}

impl ModernFraming {
    pub(crate) fn new(description: &ClientDescription) -> Self {
        let capabilities = declared(description.accepts);
        let with_tasks = v2::declare_tasks(capabilities.borrow());
        Self {
            info: description.info.clone(),
            version: Raw::encode(version::MODERN).expect("a string is JSON"),
            with_tasks: with_tasks.unwrap_or_else(|_| capabilities.clone()),
            capabilities,
        }
    }

    /// Adds to a request what every modern request carries (V2-META-1, V2-META-2, V2-CAP-1), and
    /// builds the headers that mirror it (V2-HH-1, V2-HH-3).
    pub(crate) fn frame(&self, draft: &RequestDraft<'_>) -> Result<(Raw, SendOptions), Error> {
        let capabilities = if draft.tasks {
            self.with_tasks.borrow()
        } else {
            self.capabilities.borrow()
        };
        let mut rewrite = draft.rewrite.clone().unwrap_or_default();
        let info = Some(self.info.borrow());
        v2::frame(&mut rewrite, self.version.borrow(), capabilities, info);
        let params = rewrite.apply(draft.params.unwrap_or(RawRef::EMPTY_OBJECT));
        let params = params.map_err(|_| not_an_object("params"))?;
        let mut headers = general_headers(draft.method);
        if let Some(name) = headers::mirrored_name(draft.method, Some(params.borrow())) {
            headers.push((headers::NAME.into(), headers::encode(&name).into_owned()));
        }
        headers.extend(draft.headers.iter().cloned());
        let send_options = SendOptions {
            on_drop: OnDrop::Withdraw,
            stateless: true,
            headers,
            polled: false,
        };
        Ok((params, send_options))
    }
}

/// The error for a value that is not an object.
pub(crate) fn not_an_object(what: &str) -> Error {
    Error::Malformed(format!("{what} must be an object"))
}

/// The headers of every message.
pub(crate) fn general_headers(method: &str) -> Vec<(String, String)> {
    vec![
        (headers::PROTOCOL_VERSION.into(), version::MODERN.into()),
        (headers::METHOD.into(), method.into()),
    ]
}

/// The capabilities to declare for these input kinds. Changes of roots are never notified
/// (V2-ROOT-1).
fn declared(accepts: InputKinds) -> Raw {
    let all = capabilities(accepts);
    if accepts.contains(InputKind::Roots) {
        object::set(all.borrow(), &["roots"], RawRef::EMPTY_OBJECT).unwrap_or(all)
    } else {
        all
    }
}

/// Sends the probe `server/discover` (V2-ERA-1).
pub(crate) async fn discover(
    channel: &Arc<RpcChannel>,
    description: &ClientDescription,
) -> Result<PendingResponse, Error> {
    let draft = RequestDraft::new(v2::method::DISCOVER, None);
    let (params, mut send_options) = ModernFraming::new(description).frame(&draft)?;
    send_options.on_drop = OnDrop::Nothing;
    channel
        .send(draft.method, Some(params.borrow()), send_options)
        .await
}

/// Reads the response to the probe (V2-ERA-2 to V2-ERA-6).
pub(crate) fn read_probe_response(response: &Result<Raw, Error>) -> ProbeResult {
    match response {
        Ok(result) => match Discover::read(result.borrow()) {
            Some(said) if speaks_modern(&said.versions) => ProbeResult::Modern(read_server(&said)),
            Some(said) => match common_legacy(&said.versions) {
                Some(version) => ProbeResult::Legacy(version),
                None => ProbeResult::Failed(no_common_version(&said.versions)),
            },
            // The response to another method.
            None => ProbeResult::Legacy(version::LEGACY),
        },
        // The server is overloaded, which does not show its era.
        Err(Error::Peer(error)) if error.refused.is_some() => {
            ProbeResult::Failed(Error::Peer(error.clone()))
        }
        Err(Error::Peer(error)) => match error.code {
            codes::UNSUPPORTED_VERSION => {
                // V2-ERA-2, V2-VER-2, A3-2.
                let versions = supported(error.raw.borrow());
                match common_legacy(&versions) {
                    _ if speaks_modern(&versions) => ProbeResult::Retry,
                    Some(version) => ProbeResult::Legacy(version),
                    None => ProbeResult::Failed(no_common_version(&versions)),
                }
            }
            codes::HEADER_MISMATCH | codes::MISSING_CAPABILITY => {
                ProbeResult::Failed(Error::Peer(error.clone()))
            }
            _ => ProbeResult::Legacy(version::LEGACY),
        },
        Err(Error::Transport(TransportError::Refused { status, .. }))
            if !matches!(status, 401 | 403 | 407 | 429 | 503) =>
        {
            ProbeResult::Legacy(version::LEGACY)
        }
        Err(Error::Transport(TransportError::Broken(_) | TransportError::Ended { .. })) => {
            ProbeResult::Closed
        }
        Err(error @ (Error::Transport(_) | Error::NotStored(_))) => {
            ProbeResult::Failed(error.clone())
        }
        Err(Error::Malformed(_) | Error::TimedOut(_) | Error::Unsupported(_)) => {
            ProbeResult::Legacy(version::LEGACY)
        }
    }
}

fn speaks_modern(versions: &[String]) -> bool {
    versions.iter().any(|one| one == version::MODERN)
}

/// Whether the server rejected a version that it supports. The request may be sent again.
pub(crate) fn refused_own_version(error: &Error) -> bool {
    matches!(error, Error::Peer(error) if error.code == codes::UNSUPPORTED_VERSION
        && speaks_modern(&supported(error.raw.borrow())))
}

/// The newest legacy version that both sides support.
fn common_legacy(versions: &[String]) -> Option<&'static str> {
    let speaks = |version: &&str| versions.iter().any(|one| one == version);
    version::LEGACY_VERSIONS.into_iter().find(speaks)
}

fn no_common_version(versions: &[String]) -> Error {
    let theirs = versions.join(", ");
    Error::Unsupported(format!(
        "any protocol version of this client: the server supports {theirs}"
    ))
}

fn read_server(said: &Discover<'_>) -> ServerDescription {
    let name = said.info.and_then(|info| object::find(info, &["name"]));
    ServerDescription {
        name: name
            .and_then(RawRef::text)
            .map_or_else(|| "unnamed".into(), |name| name.into()),
        version: version::MODERN.into(),
        capabilities: said.capabilities.to_raw(),
        info: said.info.map(RawRef::to_raw),
        instructions: said.instructions.clone(),
        generation: if v2::declares_tasks(said.capabilities) {
            Generation::V2
        } else {
            Generation::None
        },
    }
}

/// The versions that an unsupported-version error lists (V2-VER-1).
fn supported(error: RawRef<'_>) -> Vec<String> {
    let list = object::find(error, &["data", "supported"]).and_then(object::elements);
    let text = |version: RawRef<'_>| Some(version.text()?.into_owned());
    list.unwrap_or_default()
        .into_iter()
        .filter_map(text)
        .collect()
}

/// Replaces an unsupported-version error by one that lists the server's versions (V2-VER-2).
pub(crate) fn explain_version_error(error: Error) -> Error {
    match error {
        Error::Peer(error) if error.code == codes::UNSUPPORTED_VERSION => {
            no_common_version(&supported(error.raw.borrow()))
        }
        other => other,
    }
}

/// A complete result without its `resultType` (BR-RES-2). Other result types are invalid here.
pub(crate) fn complete(result: &Raw) -> Result<Raw, Error> {
    check_complete(result).map(|()| without_result_type(result))
}

/// Checks that a result is complete. Other result types are invalid here (V2-RT-5, V2-RT-6,
/// V2-CAP-8).
pub(crate) fn check_complete(result: &Raw) -> Result<(), Error> {
    match ResultType::of(result.borrow()) {
        ResultType::Complete => Ok(()),
        ResultType::Task => Err(invalid("task")),
        ResultType::InputRequired => Err(invalid("input_required")),
        ResultType::Unknown(word) => Err(invalid(&word)),
    }
}

/// A result without its `resultType`.
pub(crate) fn without_result_type(result: &Raw) -> Raw {
    let bare = object::remove(result.borrow(), &["resultType"]);
    bare.unwrap_or_else(|_| result.clone())
}

fn invalid(word: &str) -> Error {
    Error::Malformed(format!("unexpected result type `{word}`"))
}

impl Conversation {
    /// `tasks/get` (V2-GET).
    pub(super) async fn poll_modern(
        &self,
        task: &str,
        timeout: Duration,
    ) -> Result<TaskReport, Error> {
        let params = params::naming(task);
        let draft = RequestDraft::new(v2::method::GET, Some(params.borrow())).with_tasks();
        // A2-2: the result is complete in every status.
        let response = complete(&self.request(&draft, timeout).await?)?;
        let read = v2::read_detailed(response.borrow());
        let read = read.map_err(|error| Error::Malformed(error.to_string()))?;
        if read.task.id == task {
            Ok(read.into())
        } else {
            Err(Error::Malformed(
                "the response is about another task".into(),
            ))
        }
    }

    /// `tasks/cancel`. The response is only an acknowledgement (V2-CANCEL-5).
    pub(super) async fn cancel_modern(&self, task: &str, timeout: Duration) -> Result<(), Error> {
        let params = params::naming(task);
        let draft = RequestDraft::new(v2::method::CANCEL, Some(params.borrow())).with_tasks();
        self.request(&draft, timeout).await.map(drop)
    }

    /// `tasks/update`: sends input responses (V2-UPD-7, V2-UPD-8).
    pub(crate) async fn update(
        &self,
        task: &str,
        answers: &[v2::InputResponseEntry],
        timeout: Duration,
    ) -> Result<(), Error> {
        let params = v2::update_params(task, answers);
        let draft = RequestDraft::new(v2::method::UPDATE, Some(params.borrow())).with_tasks();
        self.request(&draft, timeout).await.map(drop)
    }
}
