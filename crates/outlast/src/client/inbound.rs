//! What we do when a server speaks on its own: news go to whoever waits for them, questions to the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_engine::{Accepts, Answer};
use outlast_wire::envelope::Id;
use outlast_wire::notice::{self, Progress};
use outlast_wire::v2::{self, Filter};
use outlast_wire::version::{self, Era};
use outlast_wire::{Raw, RawRef, codes, meta, method, object, v1};
use tokio::sync::watch;

use super::handler::{ClientHandler, ServerInputRequest};
use super::receiver::Receiver;
use super::routes::Routes;
use super::rpc::RpcChannel;
use super::rpc_handler::{PeerRequest, Reply, ReplyFuture, RpcHandler};
use super::task_report::TaskReport;
use super::validate_request::validate_request;

/// Hears every notification that nobody else is there for: logs, changed lists.
pub type NotificationHandler = Arc<dyn Fn(&str, Option<RawRef<'_>>) + Send + Sync>;

/// Everything that hears a server.
pub(crate) struct InboundHandler {
    /// What we call the server: it must not choose that itself (V1-ELIC-9).
    pub(crate) server: Arc<str>,
    pub(crate) routes: Arc<Routes>,
    pub(crate) handler: Arc<dyn ClientHandler>,
    /// What was declared; a host that changes its mind is not asked more.
    pub(crate) accepts: Accepts,
    pub(crate) notices: Option<NotificationHandler>,
    /// Hosts tasks for the server, if that is on.
    receiver: Option<Arc<Receiver>>,
    tools_changed: AtomicU64,
    /// The subscription that was acknowledged last, and what will be heard there (V2-SUB-2).
    acknowledged: watch::Sender<Option<(Id, Filter)>>,
}

impl InboundHandler {
    pub(crate) fn new(
        server: Arc<str>,
        handler: Arc<dyn ClientHandler>,
        notices: Option<NotificationHandler>,
        receiver: Option<Receiver>,
    ) -> Self {
        Self {
            server,
            routes: Arc::default(),
            accepts: handler.accepts(),
            handler,
            notices,
            receiver: receiver.map(Arc::new),
            tools_changed: AtomicU64::new(0),
            acknowledged: watch::channel(None).0,
        }
    }

    /// How often the server said that its tools have changed (V1-TOOL-9).
    pub(crate) fn tools_changed(&self) -> u64 {
        self.tools_changed.load(Ordering::Acquire)
    }

    /// The subscription that was acknowledged last.
    pub(crate) fn acknowledged(&self) -> watch::Receiver<Option<(Id, Filter)>> {
        self.acknowledged.subscribe()
    }

    async fn answer(&self, channel: &Arc<RpcChannel>, asked: PeerRequest) -> Reply {
        if asked.method == method::PING {
            return Reply::result(Raw::empty_object());
        }
        // V1-CAP-13: there are no tasks in older conversations.
        let tasks = channel.version() == Some(version::LEGACY);
        let receiver = self.receiver.as_ref().filter(|_| tasks);
        if let Some(receiver) = receiver {
            let params = asked.params.as_ref().map(Raw::borrow);
            if let Some(answer) = receiver.serve(channel, &asked.method, params).await {
                return Reply::new(answer);
            }
        }
        let kind = match validate_request(
            &asked.method,
            asked.params.as_ref(),
            self.accepts,
            Era::Legacy,
        ) {
            Ok(kind) => kind,
            Err(error) => return Reply::error(&error),
        };
        let params = asked.params.as_ref().map(Raw::borrow);
        let task = params.and_then(meta::related_task);
        let mut request = ServerInputRequest {
            kind,
            server: self.server.clone(),
            request: Some(asked.id),
            key: None,
            call: self.routes.call_name(task.as_deref(), asked.via.as_ref()),
            task,
            params: asked.params,
        };
        if let Some(error) = self.handler.unavailable(&request) {
            return Reply::error(&error);
        }
        // S1-26: without a receiver, `task` is not even looked at.
        if let Some(receiver) = receiver {
            match receiver.create_task(channel, request).await {
                Ok(replied) => return replied,
                Err(plain) => request = plain,
            }
        }
        let task = request.task.clone();
        let answer = self.handler.handle(request).await;
        match task {
            Some(task) => self.reply_for(task, answer),
            None => Reply::new(answer),
        }
    }
}

impl InboundHandler {
    /// The answer to an input request of a task. A server that refuses it does not go on with the task, and the observation
    /// of the task reports that.
    pub(crate) fn reply_for(&self, task: String, answer: Answer) -> Reply {
        let routes = self.routes.clone();
        Reply::new(related(answer, &task)).then(move |delivered| {
            if let Err(error) = delivered {
                routes.input_response_refused(&task, error);
            }
        })
    }
}

impl RpcHandler for InboundHandler {
    fn notified(&self, method: &str, params: Option<RawRef<'_>>) {
        match method {
            notice::PROGRESS => {
                if let Some(progress) = params.and_then(Progress::read) {
                    self.routes.progress(progress);
                }
                return;
            }
            v1::method::STATUS => {
                if let Some(Ok(task)) = params.map(v1::read_task) {
                    self.routes.status(TaskReport::plain(task));
                }
                return;
            }
            v2::method::TASKS => {
                if let Some(Ok(task)) = params.map(v2::read_detailed) {
                    self.routes.status(task.into());
                }
                return;
            }
            v2::method::ACKNOWLEDGED => {
                let of = params.and_then(v2::subscription);
                if let (Some(of), Ok(filter)) = (of, Filter::read(params)) {
                    self.acknowledged.send_replace(Some((of, filter)));
                }
                return;
            }
            method::TOOLS_CHANGED => {
                self.tools_changed.fetch_add(1, Ordering::AcqRel);
            }
            method::ELICITATION_COMPLETE => {
                let id = params.and_then(|params| object::find(params, &["elicitationId"]));
                if let Some(id) = id.and_then(RawRef::text) {
                    self.handler.elicitation_complete(&self.server, &id);
                }
            }
            _ => {}
        }
        if let Some(hear) = &self.notices {
            hear(method, params);
        }
    }

    fn asked(self: Arc<Self>, channel: &Arc<RpcChannel>, asked: PeerRequest) -> ReplyFuture {
        let channel = channel.clone();
        Box::pin(async move { self.answer(&channel, asked).await })
    }

    fn closed(&self, channel: &Arc<RpcChannel>) {
        if let Some(receiver) = self.receiver.clone() {
            let channel = channel.clone();
            tokio::spawn(async move { receiver.end_tasks(&channel).await });
        }
    }
}

/// The answer to a question of a task is marked with the task (V1-INPUT-9).
fn related(answer: Answer, task: &str) -> Answer {
    let Answer::Result(result) = &answer else {
        return answer;
    };
    match meta::relate(result.borrow(), task) {
        Ok(marked) => Answer::Result(marked),
        // The host's answer is no object, and no answer.
        Err(_) => Answer::Error(codes::internal("the host has no proper answer").to_raw()),
    }
}
