//! `subscriptions/listen`: an acknowledgement, the status of each task, then every change (V2-SUB,
//! V2-NOTIF).

use std::collections::BTreeSet;
use std::sync::Arc;

use outlast_engine::engine::{Event, Watch};
use outlast_engine::store::Snapshot;
use outlast_engine::{Scope, TaskId};
use outlast_wire::envelope::{ErrorObject, Id};
use outlast_wire::v2::{self, Filter};
use outlast_wire::{Raw, RawRef, meta, notice, object};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

use super::discover::capabilities;
use super::finish::DraftReply;
use super::{ModernRequest, NotificationSink};
use crate::server::{ListChange, McpServer};

impl ModernRequest {
    /// Listens until the caller disconnects or the server closes.
    pub(super) async fn listen(
        &self,
        params: Option<RawRef<'_>>,
    ) -> Result<DraftReply, ErrorObject> {
        let requested = Filter::read(params)?;
        // Subscribe before the acknowledgement, so that no change is lost (V2-SUB-2).
        let mut changes = self.server.modern.changes.subscribe();
        let mut granted = self.granted(&requested).await?;
        let resources = &granted.resource_subscriptions;
        let client = self.client();
        let _guard = self.server.backend.listen(&client, resources).await;
        let mut watches = Vec::new();
        if let Some(names) = &requested.task_ids {
            // V2-NOTIF-4: before any task is looked up.
            self.check_tasks_declared()?;
            watches = self.watches(names).await;
            let ids = watches.iter().map(|watch| watch.first.id().to_string());
            granted.task_ids = Some(ids.collect()).filter(|ids: &Vec<_>| !ids.is_empty());
        }
        let params = v2::acknowledged_params(&self.id, &granted);
        self.notifications
            .notify(v2::method::ACKNOWLEDGED, &params)
            .await;
        // Dropped with this request.
        let mut watching = JoinSet::new();
        for watch in watches {
            let notifier = TaskNotifier {
                server: self.server.clone(),
                subscription: self.id.clone(),
                notifications: self.notifications.clone(),
            };
            notifier.send_status(&watch.first).await;
            watching.spawn(notifier.forward_changes(watch));
        }
        let mut closing = (self.closing)();
        loop {
            tokio::select! {
                biased;
                () = &mut closing => break,
                change = changes.recv() => match change {
                    Ok((owner, change)) => {
                        if owner.is_none_or(|owner| owner == *self.caller.owner()) {
                            self.send_change(&granted, &change).await;
                        }
                    }
                    // The missed changes are unknown, so each list may have changed.
                    Err(RecvError::Lagged(_)) => {
                        for change in [ListChange::Tools, ListChange::Prompts, ListChange::Resources] {
                            self.send_change(&granted, &change).await;
                        }
                    }
                    Err(RecvError::Closed) => break,
                },
            }
        }
        drop(watching);
        if self.notifications.is_shared() {
            // A2-15: on stdio nothing else ends the subscription.
            let params = notice::cancelling(&self.id, Some("the server closes"));
            let params = self.with_subscription_id(&params);
            self.notifications.notify(notice::CANCELLED, &params).await;
        }
        Ok(DraftReply::Local(v2::listen_result(&self.id)))
    }

    /// The part of the requested subscriptions that the server supports, without tasks.
    async fn granted(&self, requested: &Filter) -> Result<Filter, ErrorObject> {
        let capabilities = capabilities(&self.description().await?)?;
        let supports = |path: &[&str]| {
            object::find(capabilities.borrow(), path).and_then(RawRef::boolean) == Some(true)
        };
        Ok(Filter {
            tools_list_changed: requested.tools_list_changed && supports(&["tools", "listChanged"]),
            prompts_list_changed: requested.prompts_list_changed
                && supports(&["prompts", "listChanged"]),
            resources_list_changed: requested.resources_list_changed
                && supports(&["resources", "listChanged"]),
            resource_subscriptions: if supports(&["resources", "subscribe"]) {
                requested
                    .resource_subscriptions
                    .iter()
                    .take(MAX_SUBSCRIBED_ITEMS)
                    .cloned()
                    .collect()
            } else {
                Vec::new()
            },
            task_ids: None,
        })
    }

    /// The tasks that the caller may access. Unknown, foreign and expired tasks are omitted alike
    /// (A2-12).
    async fn watches(&self, ids: &[String]) -> Vec<Watch> {
        let ids: BTreeSet<TaskId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let mut watches = Vec::new();
        for id in ids.into_iter().take(MAX_SUBSCRIBED_ITEMS) {
            let watch = self.server.engine.watch(&self.caller.scope(), id).await;
            watches.extend(
                watch
                    .ok()
                    .filter(|watch| self.caller.may_see(watch.first.owner())),
            );
        }
        watches
    }

    async fn send_change(&self, granted: &Filter, change: &ListChange) {
        let is_granted = match change {
            ListChange::Tools => granted.tools_list_changed,
            ListChange::Prompts => granted.prompts_list_changed,
            ListChange::Resources => granted.resources_list_changed,
            ListChange::Resource(uri) => granted
                .resource_subscriptions
                .iter()
                .any(|of| **of == **uri),
        };
        if !is_granted {
            return;
        }
        let params = match change {
            ListChange::Resource(uri) => Raw::encode(&serde_json::json!({ "uri": &**uri })),
            _ => Raw::encode(&serde_json::json!({})),
        };
        let params = self.with_subscription_id(&params.expect("strings are JSON"));
        self.notifications.notify(change.method(), &params).await;
    }

    /// The params with the id of the subscription (V2-SUB-3).
    fn with_subscription_id(&self, params: &Raw) -> Raw {
        let id = self.id.to_raw();
        meta::set(params.borrow(), meta::SUBSCRIPTION_ID, id.borrow()).expect("params are objects")
    }
}

/// Sends the notifications of a task to one listener.
struct TaskNotifier {
    server: Arc<McpServer>,
    subscription: Id,
    notifications: NotificationSink,
}

impl TaskNotifier {
    /// Sends every change until the task ends or is removed.
    async fn forward_changes(self, mut watch: Watch) {
        let mut has_ended = watch.first.ending().is_some();
        let (id, owner) = (watch.first.id(), watch.first.owner().clone());
        while let Some(event) = watch.next().await {
            // V2-NOTIF-7: neither progress nor log messages.
            if let Event::Stored(task) = event {
                let task = Snapshot::from(task);
                has_ended = task.ending().is_some();
                self.send_status(&task).await;
            }
        }
        // A slow listener may have missed the end.
        if !has_ended && let Ok(task) = self.server.engine.get(&Scope::OwnedBy(owner), id).await {
            self.send_status(&task).await;
        }
    }

    /// Sends the status of a task (V2-NOTIF-5).
    async fn send_status(&self, task: &Snapshot) {
        let params = self.server.detailed(task, |view, body, asks| {
            v2::notification_params(view, body, asks, &self.subscription)
        });
        match params.await {
            Ok(params) => self.notifications.notify(v2::method::TASKS, &params).await,
            Err(error) => {
                tracing::info!(task = %task.id(), %error, "could not send the status of a task");
            }
        }
    }
}

/// How many tasks, and how many resources, one listener may subscribe to.
const MAX_SUBSCRIBED_ITEMS: usize = 1_024;
