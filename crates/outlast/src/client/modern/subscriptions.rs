//! `subscriptions/listen`: one stream with notifications of tasks, changed lists and resources.
//!
//! A notification only makes the client poll sooner; it never replaces a poll, so nothing waits for
//! this stream. A stream that ends is opened again, also on the next connection (V2-SUB-8). A
//! server without the method is not asked again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Backoff;
use outlast_wire::v2::{self, Filter};
use outlast_wire::{RawRef, codes, object};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::client::connection::ConversationWatch;
use crate::client::conversation::{Conversation, RequestDraft};
use crate::client::error::Error;
use crate::client::inbound::InboundHandler;
use crate::client::pending_response::PendingResponse;

/// The subscriptions of a client. Cheap to clone; the stream ends with the last clone.
#[derive(Clone)]
pub(crate) struct Subscriptions(Arc<watch::Sender<SubscriptionSet>>);

/// A subscription to a task. Dropping it ends the subscription.
pub(crate) struct TaskSubscription {
    listener: Subscriptions,
    task: String,
}

#[derive(Clone, Debug, Default)]
struct SubscriptionSet {
    lists: bool,
    resources: BTreeSet<String>,
    /// The number of subscribers by task id.
    tasks: BTreeMap<String, u32>,
}

impl Subscriptions {
    /// Starts to listen on the open conversation. Changed lists are included only if the client has
    /// a notification handler.
    pub(crate) fn new(conversations: ConversationWatch, inbound: Arc<InboundHandler>) -> Self {
        let wanted = SubscriptionSet {
            lists: inbound.notices.is_some(),
            ..SubscriptionSet::default()
        };
        let (sender, wanted_changes) = watch::channel(wanted);
        tokio::spawn(
            ListenLoop {
                conversations,
                inbound,
                wanted_changes,
            }
            .run(),
        );
        Self(Arc::new(sender))
    }

    /// Subscribes to a task.
    pub(crate) fn task(&self, task: &str) -> TaskSubscription {
        self.0.send_modify(|wanted| {
            *wanted.tasks.entry(task.to_owned()).or_default() += 1;
        });
        TaskSubscription {
            listener: self.clone(),
            task: task.to_owned(),
        }
    }

    /// Starts or ends the subscription to a resource.
    pub(crate) fn resource(&self, uri: &str, wanted: bool) {
        self.0.send_modify(|all| {
            if wanted {
                all.resources.insert(uri.to_owned())
            } else {
                all.resources.remove(uri)
            };
        });
    }
}

impl Drop for TaskSubscription {
    fn drop(&mut self) {
        self.listener.0.send_modify(|wanted| {
            if let Some(by) = wanted.tasks.get_mut(&self.task) {
                *by -= 1;
                if *by == 0 {
                    wanted.tasks.remove(&self.task);
                }
            }
        });
    }
}

impl SubscriptionSet {
    /// The filter to request, as far as the server supports it.
    fn filter(&self, conversation: &Conversation) -> Filter {
        let can = |path: &[&str]| {
            let declared = object::find(conversation.server.capabilities.borrow(), path);
            declared.and_then(RawRef::boolean) == Some(true)
        };
        let tasks = conversation.server.generation.supports_tool_tasks() && !self.tasks.is_empty();
        Filter {
            tools_list_changed: self.lists && can(&["tools", "listChanged"]),
            prompts_list_changed: self.lists && can(&["prompts", "listChanged"]),
            resources_list_changed: self.lists && can(&["resources", "listChanged"]),
            resource_subscriptions: self.resources.iter().cloned().collect(),
            task_ids: tasks.then(|| self.tasks.keys().cloned().collect()),
        }
    }
}

/// The task that keeps the stream open.
struct ListenLoop {
    conversations: ConversationWatch,
    inbound: Arc<InboundHandler>,
    wanted_changes: watch::Receiver<SubscriptionSet>,
}

/// An open stream.
struct Stream {
    pending: PendingResponse,
    /// The requested filter.
    filter: Filter,
    /// The granted filter, once the server has acknowledged the stream.
    granted: Option<Filter>,
}

impl Stream {
    /// Whether the server granted nothing.
    fn is_empty(&self) -> bool {
        let nothing = |granted: &Filter| {
            let tasks = granted.task_ids.clone().filter(|tasks| !tasks.is_empty());
            Filter::default()
                == Filter {
                    task_ids: tasks,
                    ..granted.clone()
                }
        };
        self.granted.as_ref().is_some_and(nothing)
    }
}

/// There are no more subscribers.
struct Stopped;

impl ListenLoop {
    async fn run(mut self) {
        let _: Result<(), Stopped> = async {
            loop {
                let conversation = self
                    .conversations
                    .conversation()
                    .await
                    .map_err(|_| Stopped)?;
                if conversation.server.is_modern() {
                    self.listen(&conversation).await?;
                }
                // The server is legacy or refused the stream: wait for the next conversation.
                tokio::select! {
                    _ = conversation.channel.wait_closed() => {}
                    over = self.stopped() => return Err(over),
                }
            }
        }
        .await;
    }

    /// Resolves when there are no more subscribers.
    async fn stopped(&mut self) -> Stopped {
        while self.wanted_changes.changed().await.is_ok() {}
        Stopped
    }

    /// Listens until the conversation ends or the server refuses the method.
    async fn listen(&mut self, conversation: &Arc<Conversation>) -> Result<(), Stopped> {
        let mut backoff = Backoff::new(FIRST_RETRY_DELAY, MAX_RETRY_DELAY);
        let mut empty_streams = 0;
        let mut stream: Option<Stream> = None;
        while !conversation.channel.is_closed() {
            let wanted = self.wanted_changes.borrow_and_update().filter(conversation);
            if wanted == Filter::default() {
                stream = None;
                self.wanted_changes.changed().await.map_err(|_| Stopped)?;
                self.batch_changes().await?;
                continue;
            }
            if !stream
                .as_ref()
                .is_some_and(|stream| covers(&stream.filter, &wanted))
            {
                match self.open(conversation, wanted).await {
                    // The old stream is closed when the new one is open.
                    Ok(new) => stream = Some(new),
                    Err(error) if is_final(&error) => return Ok(()),
                    Err(_) => {}
                }
                // V2-SUB-5: a stream without granted notifications is closed.
                if stream.as_ref().is_some_and(Stream::is_empty) {
                    stream = None;
                    empty_streams += 1;
                    if empty_streams >= MAX_EMPTY_STREAMS {
                        return Ok(());
                    }
                    self.wanted_changes.changed().await.map_err(|_| Stopped)?;
                    self.batch_changes().await?;
                    continue;
                }
            }
            let Some(open) = &mut stream else {
                self.pause(backoff.delay()).await?;
                continue;
            };
            if open.granted.is_some() {
                backoff.reset();
                empty_streams = 0;
            }
            tokio::select! {
                ended = open.pending.wait() => {
                    stream = None;
                    if ended.is_err_and(|error| is_final(&error)) {
                        return Ok(());
                    }
                    self.pause(backoff.delay()).await?;
                }
                changed = self.wanted_changes.changed() => {
                    changed.map_err(|_| Stopped)?;
                    self.batch_changes().await?;
                }
            }
        }
        Ok(())
    }

    /// Opens a stream and waits for its acknowledgement (V2-SUB-2).
    async fn open(
        &mut self,
        conversation: &Arc<Conversation>,
        filter: Filter,
    ) -> Result<Stream, Error> {
        let mut acknowledged = self.inbound.acknowledged();
        let params = v2::listen_params(&filter);
        let mut draft = RequestDraft::new(v2::method::LISTEN, Some(params.borrow()));
        draft.tasks = filter.task_ids.is_some();
        let mut pending = conversation.send(&draft).await?;
        let id = pending.id().clone();
        let granted = tokio::select! {
            granted = acknowledged.wait_for(|said| said.as_ref().is_some_and(|said| said.0 == id)) => {
                granted.ok().and_then(|said| said.as_ref().map(|said| said.1.clone()))
            }
            ended = pending.wait() => return Err(ended.err().unwrap_or_else(ended_unacknowledged)),
            () = tokio::time::sleep(ACKNOWLEDGE_TIMEOUT) => None,
        };
        if let Some(granted) = granted.as_ref().filter(|granted| !covers(granted, &filter)) {
            // V2-SUB-5: the client polls what the server does not notify.
            tracing::debug!(?granted, "the server granted less than was requested");
        }
        Ok(Stream {
            pending,
            filter,
            granted,
        })
    }

    /// Waits for further changes so that they share one new stream: many tasks end soon after they
    /// begin. The more tasks there are, the longer it waits.
    async fn batch_changes(&mut self) -> Result<(), Stopped> {
        let many = u32::try_from(self.wanted_changes.borrow().tasks.len() / TASKS_PER_BATCH_DELAY);
        let factor = many.unwrap_or(u32::MAX).saturating_add(1);
        let delay = BATCH_DELAY.saturating_mul(factor).min(MAX_RETRY_DELAY);
        self.pause(delay).await
    }

    /// Waits, unless there are no more subscribers.
    async fn pause(&mut self, delay: Duration) -> Result<(), Stopped> {
        let until = Instant::now() + delay;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return Ok(()),
                changed = self.wanted_changes.changed() => changed.map_err(|_| Stopped)?,
            }
        }
    }
}

/// Whether the filter `covered` includes all of `wanted`.
fn covers(covered: &Filter, wanted: &Filter) -> bool {
    let all =
        |covered: &[String], wanted: &[String]| wanted.iter().all(|one| covered.contains(one));
    let tasks = |filter: &Filter| filter.task_ids.clone().unwrap_or_default();
    (covered.tools_list_changed || !wanted.tools_list_changed)
        && (covered.prompts_list_changed || !wanted.prompts_list_changed)
        && (covered.resources_list_changed || !wanted.resources_list_changed)
        && all(
            &covered.resource_subscriptions,
            &wanted.resource_subscriptions,
        )
        && all(&tasks(covered), &tasks(wanted))
}

/// Whether the server does not support the method.
fn is_final(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(codes::METHOD_NOT_FOUND | codes::INVALID_PARAMS | codes::MISSING_CAPABILITY)
    )
}

fn ended_unacknowledged() -> Error {
    Error::Malformed("subscription ended before it was acknowledged".into())
}

/// How long to wait for an acknowledgement.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(5);

/// How many streams in a row may be granted nothing before the client stops asking.
const MAX_EMPTY_STREAMS: u32 = 3;

/// How long to collect changes before a stream is opened.
const BATCH_DELAY: Duration = Duration::from_millis(100);

/// The number of tasks for which that delay grows by one more unit.
const TASKS_PER_BATCH_DELAY: usize = 100;

/// The delay before a stream is opened again. It doubles with each failure.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);

/// The longest such delay.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
