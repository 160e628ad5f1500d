//! `subscriptions/listen`: an acknowledgement, how each task stands, then every change (V2-SUB, V2-NOTIF).

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
use super::finish::Answer;
use super::{Outlet, Request};
use crate::server::{Change, Front};

impl Request {
    /// Listens until the caller goes or the server closes.
    pub(super) async fn listen(&self, params: Option<RawRef<'_>>) -> Result<Answer, ErrorObject> {
        let wanted = Filter::read(params)?;
        // Before anything is said, so that nothing falls between (V2-SUB-2).
        let mut changes = self.front.modern.changes.listen();
        let mut granted = self.granted(&wanted).await?;
        let resources = &granted.resource_subscriptions;
        let client = self.client();
        let _listening = self.front.service.listens(&client, resources).await;
        let mut watches = Vec::new();
        if let Some(names) = &wanted.task_ids {
            // V2-NOTIF-4: before any task is looked for.
            self.need_tasks()?;
            watches = self.watches(names).await;
            let ids = watches.iter().map(|watch| watch.first.id().to_string());
            granted.task_ids = Some(ids.collect()).filter(|ids: &Vec<_>| !ids.is_empty());
        }
        let params = v2::acknowledged_params(&self.id, &granted);
        self.outlet.notify(v2::method::ACKNOWLEDGED, &params).await;
        // Ends with this request.
        let mut watching = JoinSet::new();
        for watch in watches {
            let teller = Teller {
                front: self.front.clone(),
                subscription: self.id.clone(),
                outlet: self.outlet.clone(),
            };
            teller.tell(&watch.first).await;
            watching.spawn(teller.tell_all(watch));
        }
        let mut closing = (self.closing)();
        loop {
            tokio::select! {
                biased;
                () = &mut closing => break,
                change = changes.recv() => match change {
                    Ok((owner, change)) => {
                        if owner.is_none_or(|owner| owner == *self.visitor.owner()) {
                            self.tell_change(&granted, &change).await;
                        }
                    }
                    // Of what was missed nothing is known: all of it may have changed.
                    Err(RecvError::Lagged(_)) => {
                        for change in [Change::Tools, Change::Prompts, Change::Resources] {
                            self.tell_change(&granted, &change).await;
                        }
                    }
                    Err(RecvError::Closed) => break,
                },
            }
        }
        drop(watching);
        if self.outlet.is_shared() {
            // A2-15: on a pipe nothing else says that the stream is over.
            let params = notice::cancelling(&self.id, Some("the server closes"));
            let params = self.subscribed(&params);
            self.outlet.notify(notice::CANCELLED, &params).await;
        }
        Ok(Answer::Own(v2::listen_result(&self.id)))
    }

    /// What of the wishes is served, tasks aside: what the server does not do is left out.
    async fn granted(&self, wanted: &Filter) -> Result<Filter, ErrorObject> {
        let capabilities = capabilities(&self.introduction().await?)?;
        let does = |path: &[&str]| {
            object::find(capabilities.borrow(), path).and_then(RawRef::truth) == Some(true)
        };
        Ok(Filter {
            tools_list_changed: wanted.tools_list_changed && does(&["tools", "listChanged"]),
            prompts_list_changed: wanted.prompts_list_changed && does(&["prompts", "listChanged"]),
            resources_list_changed: wanted.resources_list_changed
                && does(&["resources", "listChanged"]),
            resource_subscriptions: if does(&["resources", "subscribe"]) {
                wanted
                    .resource_subscriptions
                    .iter()
                    .take(MOST)
                    .cloned()
                    .collect()
            } else {
                Vec::new()
            },
            task_ids: None,
        })
    }

    /// Those of the tasks that the caller may see. Unknown, foreign and expired ones are left out alike (A2-12).
    async fn watches(&self, names: &[String]) -> Vec<Watch> {
        let ids: BTreeSet<TaskId> = names.iter().filter_map(|name| name.parse().ok()).collect();
        let mut watches = Vec::new();
        for id in ids.into_iter().take(MOST) {
            let watch = self.front.engine.watch(&self.visitor.scope(), id).await;
            watches.extend(
                watch
                    .ok()
                    .filter(|watch| self.visitor.may_see(watch.first.owner())),
            );
        }
        watches
    }

    async fn tell_change(&self, granted: &Filter, change: &Change) {
        let wanted = match change {
            Change::Tools => granted.tools_list_changed,
            Change::Prompts => granted.prompts_list_changed,
            Change::Resources => granted.resources_list_changed,
            Change::Resource(uri) => granted
                .resource_subscriptions
                .iter()
                .any(|of| **of == **uri),
        };
        if !wanted {
            return;
        }
        let params = match change {
            Change::Resource(uri) => Raw::encode(&serde_json::json!({ "uri": &**uri })),
            _ => Raw::encode(&serde_json::json!({})),
        };
        let params = self.subscribed(&params.expect("a text is JSON"));
        self.outlet.notify(change.method(), &params).await;
    }

    /// Params that say to which subscription they belong (V2-SUB-3).
    fn subscribed(&self, params: &Raw) -> Raw {
        let id = self.id.to_raw();
        meta::set(params.borrow(), meta::SUBSCRIPTION_ID, id.borrow()).expect("params are objects")
    }
}

/// Tells a listener of a task.
struct Teller {
    front: Arc<Front>,
    subscription: Id,
    outlet: Outlet,
}

impl Teller {
    /// Tells of every change until the task has ended or is gone.
    async fn tell_all(self, mut watch: Watch) {
        let mut over = watch.first.ending().is_some();
        let (id, owner) = (watch.first.id(), watch.first.owner().clone());
        while let Some(event) = watch.next().await {
            // V2-NOTIF-7: neither progress nor log messages.
            if let Event::Stored(task) = event {
                let task = Snapshot::from(task);
                over = task.ending().is_some();
                self.tell(&task).await;
            }
        }
        // A listener that was behind may have missed the end.
        if !over && let Ok(task) = self.front.engine.get(&Scope::Of(owner), id).await {
            self.tell(&task).await;
        }
    }

    /// Tells how a task stands (V2-NOTIF-5).
    async fn tell(&self, task: &Snapshot) {
        let params = self.front.detailed(task, |view, body, asks| {
            v2::notification_params(view, body, asks, &self.subscription)
        });
        match params.await {
            Ok(params) => self.outlet.notify(v2::method::TASKS, &params).await,
            Err(error) => tracing::info!(task = %task.id(), %error, "a task was not told of"),
        }
    }
}

/// How many tasks, and how many resources, one listener hears of.
const MOST: usize = 1_024;
