//! `subscriptions/listen`: one stream on which a client hears of its tasks, of lists that changed and of resources.
//!
//! What is heard is a reason to look sooner and never replaces a look, so nothing here is waited for. A stream that ends
//! is opened again, also on the next connection (V2-SUB-8); a server that has none is left in peace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use outlast_wire::v2::{self, Filter};
use outlast_wire::{RawRef, codes, object};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::client::connection::Ups;
use crate::client::conversation::{Draft, Up};
use crate::client::error::Fault;
use crate::client::inbound::Ears;
use crate::client::rpc::Ticket;

/// What a client wants to hear of. Cheap to clone; the stream ends with the last clone.
#[derive(Clone)]
pub(crate) struct Listener(Arc<watch::Sender<Wanted>>);

/// That changes of a task are heard, until this is dropped.
pub(crate) struct Heard {
    listener: Listener,
    task: String,
}

#[derive(Clone, Debug, Default)]
struct Wanted {
    lists: bool,
    resources: BTreeSet<String>,
    /// By id, and by how many.
    tasks: BTreeMap<String, u32>,
}

impl Listener {
    /// Listens on whatever conversation is open; to changed lists only if somebody hears of them.
    pub(crate) fn new(ups: Ups, ears: Arc<Ears>) -> Self {
        let wanted = Wanted {
            lists: ears.notices.is_some(),
            ..Wanted::default()
        };
        let (tell, told) = watch::channel(wanted);
        tokio::spawn(Loop { ups, ears, told }.run());
        Self(Arc::new(tell))
    }

    /// Hears of a task.
    pub(crate) fn task(&self, task: &str) -> Heard {
        self.0.send_modify(|wanted| {
            *wanted.tasks.entry(task.to_owned()).or_default() += 1;
        });
        Heard {
            listener: self.clone(),
            task: task.to_owned(),
        }
    }

    /// Hears of changes of a resource, or not any more.
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

impl Drop for Heard {
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

impl Wanted {
    /// What is asked of a server that can do this.
    fn filter(&self, up: &Up) -> Filter {
        let can = |path: &[&str]| {
            let declared = object::find(up.server.capabilities.borrow(), path);
            declared.and_then(RawRef::truth) == Some(true)
        };
        let tasks = up.server.generation.takes_tool_tasks() && !self.tasks.is_empty();
        Filter {
            tools_list_changed: self.lists && can(&["tools", "listChanged"]),
            prompts_list_changed: self.lists && can(&["prompts", "listChanged"]),
            resources_list_changed: self.lists && can(&["resources", "listChanged"]),
            resource_subscriptions: self.resources.iter().cloned().collect(),
            task_ids: tasks.then(|| self.tasks.keys().cloned().collect()),
        }
    }
}

/// The one that listens.
struct Loop {
    ups: Ups,
    ears: Arc<Ears>,
    told: watch::Receiver<Wanted>,
}

/// A stream that is open.
struct Stream {
    ticket: Ticket,
    /// What was asked for.
    filter: Filter,
    /// What will be heard, once the server has said so.
    granted: Option<Filter>,
}

impl Stream {
    /// Whether the server has said that nothing will be heard.
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

/// Nobody wants to hear anything any more.
struct Over;

impl Loop {
    async fn run(mut self) {
        let _: Result<(), Over> = async {
            loop {
                let up = self.ups.up().await.map_err(|_| Over)?;
                if up.server.is_modern() {
                    self.listen_on(&up).await?;
                }
                // Refused or legacy: until there is another conversation.
                tokio::select! {
                    _ = up.exchange.over() => {}
                    over = self.gone() => return Err(over),
                }
            }
        }
        .await;
    }

    /// Resolves when nobody wants to hear anything any more.
    async fn gone(&mut self) -> Over {
        while self.told.changed().await.is_ok() {}
        Over
    }

    /// Listens until the conversation is over or the server says that it has no such stream.
    async fn listen_on(&mut self, up: &Arc<Up>) -> Result<(), Over> {
        let mut failures = 0;
        let mut fruitless = 0;
        let mut stream: Option<Stream> = None;
        while !up.exchange.is_over() {
            let wanted = self.told.borrow_and_update().filter(up);
            if wanted == Filter::default() {
                stream = None;
                self.told.changed().await.map_err(|_| Over)?;
                self.settle_down().await?;
                continue;
            }
            if !stream
                .as_ref()
                .is_some_and(|stream| covers(&stream.filter, &wanted))
            {
                match self.open(up, wanted).await {
                    // The old one is closed when the new one stands.
                    Ok(new) => stream = Some(new),
                    Err(fault) if is_final(&fault) => return Ok(()),
                    Err(_) => failures += 1,
                }
                // V2-SUB-5: one on which nothing will be heard is not kept.
                if stream.as_ref().is_some_and(Stream::is_empty) {
                    stream = None;
                    fruitless += 1;
                    if fruitless >= FRUITLESS {
                        return Ok(());
                    }
                    self.told.changed().await.map_err(|_| Over)?;
                    self.settle_down().await?;
                    continue;
                }
            }
            let Some(open) = &mut stream else {
                self.pause(failures).await?;
                continue;
            };
            if open.granted.is_some() {
                (failures, fruitless) = (0, 0);
            }
            tokio::select! {
                ended = open.ticket.wait() => {
                    stream = None;
                    if ended.is_err_and(|fault| is_final(&fault)) {
                        return Ok(());
                    }
                    failures += 1;
                    self.pause(failures).await?;
                }
                changed = self.told.changed() => {
                    changed.map_err(|_| Over)?;
                    self.settle_down().await?;
                }
            }
        }
        Ok(())
    }

    /// Opens a stream and waits a moment for its acknowledgement (V2-SUB-2).
    async fn open(&mut self, up: &Arc<Up>, filter: Filter) -> Result<Stream, Fault> {
        let mut acknowledged = self.ears.acknowledged();
        let params = v2::listen_params(&filter);
        let mut draft = Draft::new(v2::method::LISTEN, Some(params.borrow()));
        draft.tasks = filter.task_ids.is_some();
        let mut ticket = up.send(&draft).await?;
        let id = ticket.id().clone();
        let granted = tokio::select! {
            granted = acknowledged.wait_for(|said| said.as_ref().is_some_and(|said| said.0 == id)) => {
                granted.ok().and_then(|said| said.as_ref().map(|said| said.1.clone()))
            }
            ended = ticket.wait() => return Err(ended.err().unwrap_or_else(ended_at_once)),
            () = tokio::time::sleep(ACKNOWLEDGED) => None,
        };
        if let Some(granted) = granted.as_ref().filter(|granted| !covers(granted, &filter)) {
            // V2-SUB-5: what is not heard of is looked at, as ever.
            tracing::debug!(?granted, "the server tells less than was asked for");
        }
        Ok(Stream {
            ticket,
            filter,
            granted,
        })
    }

    /// Changes come together: a task that has just begun may be over in a moment. The more there are to hear of, the
    /// less often a stream is worth another.
    async fn settle_down(&mut self) -> Result<(), Over> {
        let many = u32::try_from(self.told.borrow().tasks.len() / CROWD);
        let crowd = many.unwrap_or(u32::MAX).saturating_add(1);
        let until = Instant::now() + TOGETHER.saturating_mul(crowd).min(LONGEST);
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return Ok(()),
                changed = self.told.changed() => changed.map_err(|_| Over)?,
            }
        }
    }

    async fn pause(&mut self, failures: u32) -> Result<(), Over> {
        let until = Instant::now() + (PAUSE * (1 << failures.min(6))).min(LONGEST);
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return Ok(()),
                changed = self.told.changed() => changed.map_err(|_| Over)?,
            }
        }
    }
}

/// Whether what is heard is all that is wanted.
fn covers(heard: &Filter, wanted: &Filter) -> bool {
    let all = |heard: &[String], wanted: &[String]| wanted.iter().all(|one| heard.contains(one));
    let tasks = |filter: &Filter| filter.task_ids.clone().unwrap_or_default();
    (heard.tools_list_changed || !wanted.tools_list_changed)
        && (heard.prompts_list_changed || !wanted.prompts_list_changed)
        && (heard.resources_list_changed || !wanted.resources_list_changed)
        && all(
            &heard.resource_subscriptions,
            &wanted.resource_subscriptions,
        )
        && all(&tasks(heard), &tasks(wanted))
}

/// Whether the server has no such stream at all.
fn is_final(fault: &Fault) -> bool {
    matches!(
        fault.code(),
        Some(codes::METHOD_NOT_FOUND | codes::INVALID_PARAMS | codes::MISSING_CAPABILITY)
    )
}

fn ended_at_once() -> Fault {
    Fault::Malformed("it stopped telling before it began".into())
}

/// How long an acknowledgement is waited for.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);

/// How often in a row a server may say that nothing will be heard before it is not asked any more.
const FRUITLESS: u32 = 3;

/// How long further changes are waited for before a stream is opened.
const TOGETHER: Duration = Duration::from_millis(100);

/// So many tasks make that wait twice as long, twice as many three times.
const CROWD: usize = 100;

/// How long to wait before a stream that ended is opened again, longer after failures.
const PAUSE: Duration = Duration::from_millis(500);

/// The longest such wait.
const LONGEST: Duration = Duration::from_secs(30);
