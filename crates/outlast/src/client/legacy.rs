//! The legacy era on the client side: the handshake, and the V1 task methods as a requestor. The
//! modern counterpart is `modern`.

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
use crate::transport::http_client::HttpSession;

/// Opens a conversation with a handshake (V1-INIT-1, V1-INIT-5).
pub(crate) async fn open(
    channel: &Arc<RpcChannel>,
    description: &ClientDescription,
    version: &str,
    timeout: Duration,
    session: Option<&HttpSession>,
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
        pending.response().await
    };
    let response = tokio::time::timeout(timeout, opening)
        .await
        .unwrap_or(Err(Error::TimedOut(timeout)))?;
    let server = read_server(response.borrow())?;
    channel.handshake_done(&server.version).await?;
    if let Some(session) = session {
        session.introduced(&response);
    }
    channel
        .notify(v1::method::INITIALIZED, None, Vec::new())
        .await?;
    Ok(server)
}

/// Continues a session with the server's stored `initialize` result.
pub(crate) async fn reopen(
    channel: &Arc<RpcChannel>,
    introduction: RawRef<'_>,
) -> Result<ServerDescription, Error> {
    let server = read_server(introduction)?;
    channel.mark_resumed();
    channel.handshake_done(&server.version).await?;
    // A repeated `initialized` has no effect, and it shows whether the session still exists.
    channel
        .notify(v1::method::INITIALIZED, None, Vec::new())
        .await?;
    Ok(server)
}

fn read_server(response: RawRef<'_>) -> Result<ServerDescription, Error> {
    let malformed = |error: ErrorObject| Error::Malformed(error.message);
    let said = Initialize::read(response).map_err(malformed)?;
    if !version::LEGACY_VERSIONS.contains(&said.version.as_str()) {
        // V1-INIT-4.
        let ours = version::LEGACY_VERSIONS.join(", ");
        return Err(Error::Unsupported(format!(
            "any protocol version of this client: the server requires {}, the client supports {ours}",
            said.version
        )));
    }
    // V1-CAP-13: versions before 2025-11-25 have no tasks, whatever the server declares.
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
    let response = conversation
        .request(
            &RequestDraft::new(v1::method::GET, Some(params.borrow())),
            timeout,
        )
        .await?;
    read_task(response.borrow())
}

/// `tasks/result`: the result of the call, without the related-task metadata.
pub(crate) async fn fetch(
    conversation: &Conversation,
    task: &str,
    timeout: Duration,
) -> Result<Raw, Error> {
    let params = params::naming(task);
    let response = conversation
        .request(
            &RequestDraft::new(v1::method::RESULT, Some(params.borrow())),
            timeout,
        )
        .await?;
    meta::unrelate(response.borrow()).map_err(|error| Error::Malformed(error.to_string()))
}

/// `tasks/cancel`.
pub(crate) async fn cancel(
    conversation: &Conversation,
    task: &str,
    timeout: Duration,
) -> Result<PeerTask, Error> {
    let params = params::naming(task);
    let response = conversation
        .request(
            &RequestDraft::new(v1::method::CANCEL, Some(params.borrow())),
            timeout,
        )
        .await?;
    read_task(response.borrow())
}

/// One page of `tasks/list`.
pub(crate) async fn page(
    conversation: &Conversation,
    cursor: Option<&str>,
    timeout: Duration,
) -> Result<TaskPage, Error> {
    let params = params::continuing(cursor);
    let response = conversation
        .request(
            &RequestDraft::new(v1::method::LIST, Some(params.borrow())),
            timeout,
        )
        .await?;
    v1::read_list(response.borrow()).map_err(|error| Error::Malformed(error.to_string()))
}

fn read_task(response: RawRef<'_>) -> Result<PeerTask, Error> {
    v1::read_task(response).map_err(|error| Error::Malformed(error.to_string()))
}

/// Reads the response to a call that was sent as a task.
pub(crate) fn read_call_response(response: Raw) -> Result<CallResponse, Error> {
    match v1::read_created(response.borrow()) {
        Ok(Some(task)) => {
            let immediate = meta::model_immediate_response(response.borrow());
            Ok(CallResponse::Task(TaskReport::plain(task), immediate))
        }
        Ok(None) => Ok(CallResponse::Result(response)),
        Err(error) => Err(Error::Malformed(error.to_string())),
    }
}
