//! The legacy era as a client: the handshake, and V1 tasks as their requestor. `modern` stands beside it.

use std::sync::Arc;
use std::time::Duration;

use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1::{Initialize, ServerTasks, TaskPage};
use outlast_wire::{PeerTask, Raw, RawRef, meta, object, params, v1, version};

use super::conversation::{CallResponse, Conversation, RequestDraft};
use super::era::ClientDescription;
use super::error::Error;
use super::pending_response::{OnDrop, SendOptions};
use super::rpc::RpcChannel;
use super::server_description::{Generation, ServerDescription};
use super::task_report::TaskReport;
use crate::transport::http_client::Session;

/// Opens a conversation (V1-INIT-1, V1-INIT-5).
pub(crate) async fn open(
    channel: &Arc<RpcChannel>,
    description: &ClientDescription,
    version: &str,
    timeout: Duration,
    session: Option<&Session>,
) -> Result<ServerDescription, Error> {
    let params = v1::initialize_params(
        version,
        description.capabilities.borrow(),
        description.info.borrow(),
    );
    let opening = async {
        let method = v1::method::INITIALIZE;
        let pending = channel
            .send(
                method,
                Some(params.borrow()),
                SendOptions::legacy(OnDrop::Nothing),
            )
            .await?;
        pending.answer().await
    };
    let answer = tokio::time::timeout(timeout, opening)
        .await
        .unwrap_or(Err(Error::TimedOut(timeout)))?;
    let server = read_server(answer.borrow())?;
    channel.opened(&server.version).await?;
    if let Some(session) = session {
        session.introduced(&answer);
    }
    channel
        .notify(v1::method::INITIALIZED, None, Vec::new())
        .await?;
    Ok(server)
}

/// Goes on in a session whose server introduced itself like this.
pub(crate) async fn reopen(
    channel: &Arc<RpcChannel>,
    introduction: RawRef<'_>,
) -> Result<ServerDescription, Error> {
    let server = read_server(introduction)?;
    channel.mark_resumed();
    channel.opened(&server.version).await?;
    // Said once more, it changes nothing, and it shows whether the session is still there.
    channel
        .notify(v1::method::INITIALIZED, None, Vec::new())
        .await?;
    Ok(server)
}

fn read_server(answer: RawRef<'_>) -> Result<ServerDescription, Error> {
    let malformed = |error: ErrorObject| Error::Malformed(error.message);
    let said = Initialize::read(answer).map_err(malformed)?;
    if !version::LEGACY_VERSIONS.contains(&said.version.as_str()) {
        // V1-INIT-4.
        let ours = version::LEGACY_VERSIONS.join(", ");
        return Err(Error::Unsupported(format!(
            "a protocol version that we speak: it wants {}, we speak {ours}",
            said.version
        )));
    }
    // V1-CAP-13: no tasks below 2025-11-25, whatever is declared.
    let tasks = ServerTasks::read(said.capabilities).filter(|_| said.version == version::LEGACY);
    let name = said.info.and_then(|info| object::find(info, &["name"]));
    Ok(ServerDescription {
        name: name
            .and_then(RawRef::text)
            .map_or_else(|| "unnamed".into(), |name| name.into()),
        version: said.version.into(),
        capabilities: said.capabilities.to_raw(),
        info: said.info.map(RawRef::to_raw),
        instructions: said.instructions,
        generation: tasks.map_or(Generation::None, Generation::V1),
    })
}

/// `tasks/get`.
pub(crate) async fn poll(
    conversation: &Conversation,
    task: &str,
    timeout: Duration,
) -> Result<PeerTask, Error> {
    let params = params::naming(task);
    let answer = conversation
        .request(
            &RequestDraft::new(v1::method::GET, Some(params.borrow())),
            timeout,
        )
        .await?;
    read_task(answer.borrow())
}

/// `tasks/result`: what the underlying request would have answered, without the mark of the task.
pub(crate) async fn fetch(
    conversation: &Conversation,
    task: &str,
    timeout: Duration,
) -> Result<Raw, Error> {
    let params = params::naming(task);
    let answer = conversation
        .request(
            &RequestDraft::new(v1::method::RESULT, Some(params.borrow())),
            timeout,
        )
        .await?;
    meta::unrelate(answer.borrow()).map_err(|error| Error::Malformed(error.to_string()))
}

/// `tasks/cancel`.
pub(crate) async fn cancel(
    conversation: &Conversation,
    task: &str,
    timeout: Duration,
) -> Result<PeerTask, Error> {
    let params = params::naming(task);
    let answer = conversation
        .request(
            &RequestDraft::new(v1::method::CANCEL, Some(params.borrow())),
            timeout,
        )
        .await?;
    read_task(answer.borrow())
}

/// One page of `tasks/list`.
pub(crate) async fn page(
    conversation: &Conversation,
    cursor: Option<&str>,
    timeout: Duration,
) -> Result<TaskPage, Error> {
    let params = params::continuing(cursor);
    let answer = conversation
        .request(
            &RequestDraft::new(v1::method::LIST, Some(params.borrow())),
            timeout,
        )
        .await?;
    v1::read_list(answer.borrow()).map_err(|error| Error::Malformed(error.to_string()))
}

fn read_task(answer: RawRef<'_>) -> Result<PeerTask, Error> {
    v1::read_task(answer).map_err(|error| Error::Malformed(error.to_string()))
}

/// Reads the answer to a call that was to be a task.
pub(crate) fn read_call_response(answer: Raw) -> Result<CallResponse, Error> {
    match v1::read_created(answer.borrow()) {
        Ok(Some(task)) => {
            let immediate = meta::model_immediate_response(answer.borrow());
            Ok(CallResponse::Task(TaskReport::plain(task), immediate))
        }
        Ok(None) => Ok(CallResponse::Result(answer)),
        Err(error) => Err(Error::Malformed(error.to_string())),
    }
}
