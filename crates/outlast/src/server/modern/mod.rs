//! MCP 2026-07-28 as a server: every request says what it needs, nothing is remembered between two.
//!
//! One file for each method that has more than a line to it. How a request arrives and how its answer leaves is the
//! transports' business; which era a request is of is told by [`Said::read`].

mod call;
mod caller;
mod discover;
mod finish;
mod input_responses;
mod listen;
mod mrtr;
mod notification_sink;
mod passthrough;
mod request_meta;
mod request_state;
mod stdio;
mod suspended;
mod tasks;
mod ticket_tools;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::v2::{self, method};
use outlast_wire::{Raw, codes, log, tool, v1, version};
use tokio::sync::{OnceCell, mpsc};

use super::list_change::Changes;
use super::middleware::End;
use super::{Client, Front, Handling, Incoming, Introduction, Next, Peer, Reply};
use finish::acknowledges;
use request_state::Seal;
use suspended::Parking;

pub(crate) use caller::Visitor;
pub(crate) use notification_sink::Outlet;
pub(crate) use request_meta::{Said, is_modern_only, nothing_said};
pub(crate) use stdio::said_on_pipe;

/// What a front keeps for modern requests.
pub(crate) struct Modern {
    pub(super) changes: Changes,
    parking: Arc<Parking>,
    seal: OnceCell<Seal>,
    /// Who the server is, once somebody has asked.
    info: OnceCell<Raw>,
    /// Whether it has been heard that some tool runs as a task.
    tasks: AtomicBool,
}

/// One modern request.
pub(crate) struct Request {
    pub(crate) front: Arc<Front>,
    pub(crate) id: Id,
    pub(crate) visitor: Visitor,
    pub(crate) said: Said,
    pub(crate) outlet: Outlet,
    /// Resolves when the server closes.
    pub(crate) closing: Closing,
}

/// Makes a future that resolves when a server closes.
pub(crate) type Closing = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

impl Default for Modern {
    fn default() -> Self {
        Self {
            changes: Changes::default(),
            parking: Parking::new(suspended::PATIENCE),
            seal: OnceCell::new(),
            info: OnceCell::new(),
            tasks: AtomicBool::new(false),
        }
    }
}

impl Front {
    /// Whether the answer to a request of this method may take a while, and something be said before it.
    pub(crate) fn may_last(&self, asked: &str) -> bool {
        match asked {
            tool::CALL | method::LISTEN => true,
            tool::LIST | method::DISCOVER | method::GET | method::UPDATE | method::CANCEL => false,
            gone if GONE.contains(&gone) => false,
            other => self.service.runs(other).is_some(),
        }
    }
}

impl Request {
    /// Handles a request over HTTP. Messages precede the reply only if the caller takes a stream.
    pub(crate) fn over_http(mut self, request: Incoming, takes_stream: bool) -> Handling {
        let messages = if takes_stream && self.front.may_last(&request.method) {
            let (send, messages) = mpsc::channel(MAX_UNREAD);
            self.outlet = Outlet::Stream(send);
            Some(messages)
        } else {
            None
        };
        let id = self.id.clone();
        let work = Box::pin(async move { self.answer(request).await });
        Handling::of_request(id, work, messages)
    }

    /// Answers a request. Dropping this stops whatever it does, except for tasks that exist.
    async fn answer(&self, request: Incoming) -> Reply {
        if let Err(error) = self.said.check_version() {
            return Reply::from(error);
        }
        let filters = &self.front.filters;
        let acknowledges = acknowledges(&request.method);
        let end = End::Modern(self);
        let reply = Next { filters, end }.run(request).await;
        if filters.is_empty() {
            reply
        } else {
            self.finish_filtered(acknowledges, reply).await
        }
    }

    /// Answers a request that has passed every filter.
    pub(in crate::server) async fn handle(&self, request: Incoming) -> Reply {
        let cacheable = finish::is_cacheable(&request.method);
        let answer = self.served(request).await;
        self.finish(answer.unwrap_or_else(finish::Answer::from), cacheable)
            .await
    }

    async fn served(&self, request: Incoming) -> Result<finish::Answer, ErrorObject> {
        let params = request.params.as_ref().map(Raw::borrow);
        match request.method.as_str() {
            method::DISCOVER => self.discover().await,
            // In places of their own, so that a look at a task does not carry them along.
            method::LISTEN => Box::pin(self.listen(params)).await,
            method::GET => {
                self.there_are_tasks(&request.method).await?;
                self.need_tasks()?;
                self.get_task(params).await
            }
            method::UPDATE => {
                self.there_are_tasks(&request.method).await?;
                self.need_tasks()?;
                self.update_task(params).await
            }
            method::CANCEL => {
                self.there_are_tasks(&request.method).await?;
                self.need_tasks()?;
                self.cancel_task(params).await
            }
            tool::CALL => Box::pin(self.call_tool(request)).await,
            // V2-ERA-9, V2-ERR-6, V2-ERR-7.
            gone if GONE.contains(&gone) => Err(codes::method_not_found(gone)),
            _ => Box::pin(self.ask_service(request)).await,
        }
    }

    /// Refuses where there are no tasks (V2-CAP-13).
    async fn there_are_tasks(&self, method: &str) -> Result<(), ErrorObject> {
        if self.front.modern.tasks.load(Ordering::Relaxed) {
            return Ok(());
        }
        let offered = match self.front.service.has_tasks(&self.client()) {
            Some(offered) => offered,
            // Tasks are kept here: they are found also when what runs them cannot be reached.
            None => self.introduced_soon().await.is_none_or(|it| it.tasks),
        };
        if offered {
            Ok(())
        } else {
            Err(codes::method_not_found(method))
        }
    }

    /// Refuses a caller that cannot handle tasks (V2-CAP-12), before anything is looked for.
    fn need_tasks(&self) -> Result<(), ErrorObject> {
        if self.said.tasks {
            Ok(())
        } else {
            Err(codes::missing_capability(
                format!("the request must declare the extension {}", v2::EXTENSION),
                v2::required_capability().borrow(),
            ))
        }
    }

    /// The caller as services see it.
    fn client(&self) -> Arc<Client> {
        let mut peer = Peer::of(version::MODERN, self.said.capabilities.clone());
        peer.info = self.said.info.clone();
        let owner = self.visitor.owner().clone();
        Arc::new(Client::passing(owner, peer))
    }

    /// Who the server is, unless it takes long to say so: what is known here does not wait for that.
    async fn introduced_soon(&self) -> Option<Introduction> {
        let introduced = tokio::time::timeout(SOON, self.introduction()).await;
        introduced.ok()?.ok()
    }

    async fn introduction(&self) -> Result<Introduction, ErrorObject> {
        let introduction = self.front.service.introduce(&self.client()).await?;
        let _ = self.front.modern.info.set(introduction.info.clone());
        let tasks = &self.front.modern.tasks;
        tasks.fetch_or(introduction.tasks, Ordering::Relaxed);
        Ok(introduction)
    }
}

/// How many notifications a slow reader may leave unread before the work waits for it.
const MAX_UNREAD: usize = 64;

/// How long a server may take to introduce itself before it is done without.
const SOON: Duration = Duration::from_secs(1);

/// Methods of older versions, and of V1 tasks, that do not exist here.
const GONE: [&str; 7] = [
    v1::method::INITIALIZE,
    outlast_wire::method::PING,
    log::SET_LEVEL,
    outlast_wire::method::RESOURCES_SUBSCRIBE,
    outlast_wire::method::RESOURCES_UNSUBSCRIBE,
    v1::method::RESULT,
    v1::method::LIST,
];
