//! The legacy era as a client: the handshake, and V1 tasks as their requestor. `modern` stands beside it.

use std::sync::Arc;
use std::time::Duration;

use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1::{Initialize, ServerTasks, TaskPage};
use outlast_wire::{PeerTask, Raw, RawRef, meta, object, params, v1, version};

use super::conversation::{Draft, Made, Up};
use super::era::Introduction;
use super::error::Fault;
use super::rpc::{Exchange, GiveUp, Wrap};
use super::server_description::{Generation, Server};
use super::task_report::Sight;
use crate::transport::http_client::Session;

/// Opens a conversation (V1-INIT-1, V1-INIT-5).
pub(crate) async fn open(
    exchange: &Arc<Exchange>,
    we: &Introduction,
    version: &str,
    patience: Duration,
    session: Option<&Session>,
) -> Result<Server, Fault> {
    let params = v1::initialize_params(version, we.capabilities.borrow(), we.info.borrow());
    let opening = async {
        let method = v1::method::INITIALIZE;
        let ticket = exchange
            .send(method, Some(params.borrow()), Wrap::legacy(GiveUp::Quietly))
            .await?;
        ticket.answer().await
    };
    let answer = tokio::time::timeout(patience, opening)
        .await
        .unwrap_or(Err(Fault::TimedOut(patience)))?;
    let server = read_server(answer.borrow())?;
    exchange.opened(&server.version).await?;
    if let Some(session) = session {
        session.introduced(&answer);
    }
    exchange
        .notify(v1::method::INITIALIZED, None, Vec::new())
        .await?;
    Ok(server)
}

/// Goes on in a session whose server introduced itself like this.
pub(crate) async fn reopen(
    exchange: &Arc<Exchange>,
    introduction: RawRef<'_>,
) -> Result<Server, Fault> {
    let server = read_server(introduction)?;
    exchange.resumes();
    exchange.opened(&server.version).await?;
    // Said once more, it changes nothing, and it shows whether the session is still there.
    exchange
        .notify(v1::method::INITIALIZED, None, Vec::new())
        .await?;
    Ok(server)
}

fn read_server(answer: RawRef<'_>) -> Result<Server, Fault> {
    let malformed = |error: ErrorObject| Fault::Malformed(error.message);
    let said = Initialize::read(answer).map_err(malformed)?;
    if !version::LEGACY_VERSIONS.contains(&said.version.as_str()) {
        // V1-INIT-4.
        let ours = version::LEGACY_VERSIONS.join(", ");
        return Err(Fault::Unsupported(format!(
            "a protocol version that we speak: it wants {}, we speak {ours}",
            said.version
        )));
    }
    // V1-CAP-13: no tasks below 2025-11-25, whatever is declared.
    let tasks = ServerTasks::read(said.capabilities).filter(|_| said.version == version::LEGACY);
    let name = said.info.and_then(|info| object::find(info, &["name"]));
    Ok(Server {
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
pub(crate) async fn look(up: &Up, task: &str, patience: Duration) -> Result<PeerTask, Fault> {
    let params = params::naming(task);
    let answer = up
        .request(
            &Draft::new(v1::method::GET, Some(params.borrow())),
            patience,
        )
        .await?;
    read_task(answer.borrow())
}

/// `tasks/result`: what the underlying request would have answered, without the mark of the task.
pub(crate) async fn fetch(up: &Up, task: &str, patience: Duration) -> Result<Raw, Fault> {
    let params = params::naming(task);
    let answer = up
        .request(
            &Draft::new(v1::method::RESULT, Some(params.borrow())),
            patience,
        )
        .await?;
    meta::unrelate(answer.borrow()).map_err(|error| Fault::Malformed(error.to_string()))
}

/// `tasks/cancel`.
pub(crate) async fn cancel(up: &Up, task: &str, patience: Duration) -> Result<PeerTask, Fault> {
    let params = params::naming(task);
    let answer = up
        .request(
            &Draft::new(v1::method::CANCEL, Some(params.borrow())),
            patience,
        )
        .await?;
    read_task(answer.borrow())
}

/// One page of `tasks/list`.
pub(crate) async fn page(
    up: &Up,
    cursor: Option<&str>,
    patience: Duration,
) -> Result<TaskPage, Fault> {
    let params = params::continuing(cursor);
    let answer = up
        .request(
            &Draft::new(v1::method::LIST, Some(params.borrow())),
            patience,
        )
        .await?;
    v1::read_list(answer.borrow()).map_err(|error| Fault::Malformed(error.to_string()))
}

fn read_task(answer: RawRef<'_>) -> Result<PeerTask, Fault> {
    v1::read_task(answer).map_err(|error| Fault::Malformed(error.to_string()))
}

/// Reads the answer to a call that was to be a task.
pub(crate) fn read_made(answer: Raw) -> Result<Made, Fault> {
    match v1::read_created(answer.borrow()) {
        Ok(Some(task)) => {
            let immediate = meta::model_immediate_response(answer.borrow());
            Ok(Made::Task(Sight::plain(task), immediate))
        }
        Ok(None) => Ok(Made::Result(answer)),
        Err(error) => Err(Fault::Malformed(error.to_string())),
    }
}
