//! One call of a tool at the upstream, to its end: what it says meanwhile is said of our call, and who cancels ours cancels
//! that one.

use outlast_engine::engine::{CallContext, Progress};
use outlast_engine::{Origin, Outcome, Retry};
use outlast_wire::{object, tool, v1, v2, version};
use tokio::time::Instant;

use super::again::Round;
use super::connection::{Connection, UnderWay};
use super::pages::{self, Demand};
use super::pool::RESTARTS;
use super::prepared::{Prepared, PrestartedCall, Started};
use super::runner::{for_upstream, refused};
use super::{Upstream, errors, result};
use crate::back::{CallRefused, Execution, Preference, Unsettled, View};
use crate::front::Client;
use crate::sleep::sleep_until;

impl Upstream {
    /// Calls a tool, unless that was prestarted, and drives the call to its end. It is made again only if it was lost and
    /// its tool allows that.
    pub(super) async fn call(
        &self,
        call: &Origin,
        cx: &CallContext,
        mut prepared: Prepared,
    ) -> Outcome {
        let client = &prepared.client;
        let (mut attempt, mut demands) = (1, 0);
        let mut backoff = RESTARTS;
        loop {
            let prestarted = prepared.prestarted.take();
            let (connection, _under_way, execution) =
                match prestarted.and_then(PrestartedCall::started) {
                    Some(Started {
                        connection,
                        under_way,
                        execution,
                        ..
                    }) => {
                        under_way.belongs_to(cx);
                        (connection, under_way, execution)
                    }
                    None => {
                        let connection = prepared.connection.take();
                        let connection = match self.connection_of(connection, client).await {
                            Ok(connection) => connection,
                            Err(error) => return refused(error),
                        };
                        let under_way = connection.begin(cx);
                        let round = Round::First(cx);
                        let begun = self.begin(&connection, &under_way, call, None, client, round);
                        let execution = match begun.await {
                            Ok(execution) => execution,
                            Err(CallRefused::Fault(fault)) => {
                                return result::of_fault(&self.name, fault);
                            }
                            Err(refusal) => {
                                return result::internal(format!("{}: {refusal}", self.name));
                            }
                        };
                        (connection, under_way, execution)
                    }
                };
            let ended = self.stay(&connection, &execution, call, cx, client).await;
            match ended {
                Ok(outcome) if execution.view().task.is_some() => return outcome,
                Ok(outcome) => match pages::demanded(outcome, client, cx).await {
                    Demand::Met if demands < DEMANDS => demands += 1,
                    Demand::Met => {
                        return result::internal(format!(
                            "{} wants pages opened again and again",
                            self.name
                        ));
                    }
                    Demand::Outcome(outcome) => return outcome,
                },
                Err(lost) if may_repeat(&lost, call, attempt) && !cx.is_cancelled() => {
                    tracing::info!(upstream = &*self.name, call = %cx.id(), lost = lost.brief(), "a call is made again");
                    attempt += 1;
                    // A server that has just gone may be on its way back.
                    let pause = backoff.pause_of_at_least(lost.retry_after());
                    tokio::select! {
                        biased;
                        () = cx.cancelled() => return match cx.is_left() {
                            true => result::unsettled(&self.name, Unsettled::Left),
                            false => Outcome::Cancelled,
                        },
                        () = tokio::time::sleep(pause) => {}
                    }
                }
                Err(lost) => return result::unsettled(&self.name, lost),
            }
        }
    }

    /// Makes the call. The upstream's task is to be kept for `ttl` milliseconds, or as the caller and the settings say.
    pub(super) async fn begin(
        &self,
        connection: &Connection,
        under_way: &UnderWay,
        call: &Origin,
        ttl: Option<u64>,
        client: &Client,
        round: Round<'_>,
    ) -> Result<Execution, CallRefused> {
        let params = call.params.as_ref();
        let tool = call.tool.clone().unwrap_or_default();
        let mut made = connection
            .back
            .call_tool(tool.clone(), None)
            .task(preference(call, client))
            .named(under_way.name());
        if connection.server().is_modern() {
            made = round.told_of(made);
        }
        if let Some(params) = params {
            made = made.params(connection.with_level(for_upstream(params), client));
        }
        // BR-TTL-1, BR-TTL-2.
        let wish = params.and_then(|params| v1::TaskRequest::read(Some(params.borrow())).ok());
        let wish = wish.flatten().and_then(|wish| wish.ttl_ms);
        match ttl.or(wish).or_else(|| self.settings.ttl(&tool)) {
            Some(ttl) => made.ttl(ttl).await,
            None => made.await,
        }
    }

    /// Stays with a call until it has ended. Dropping this leaves a task of the upstream, and cancels a plain call.
    pub(super) async fn stay(
        &self,
        connection: &Connection,
        execution: &Execution,
        call: &Origin,
        cx: &CallContext,
        client: &Client,
    ) -> Result<Outcome, Unsettled> {
        let limit = call
            .tool
            .as_deref()
            .and_then(|tool| self.settings.timeout(tool));
        let limit = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut limit = std::pin::pin!(sleep_until(limit));
        let mut told = Told::new(call, client);
        let mut updates = execution.updates();
        let mut stopping = false;
        told.tell(connection, &execution.view(), cx).await;
        loop {
            tokio::select! {
                biased;
                () = cx.cancelled(), if !stopping => {
                    if cx.is_left() {
                        // The next start finds the task again.
                        return Err(Unsettled::Left);
                    }
                    stopping = true;
                    if let Err(error) = execution.cancel().await {
                        tracing::info!(upstream = &*self.name, call = %cx.id(), error = error.brief(), "a call was not cancelled");
                    }
                }
                Some(view) = updates.next() => told.tell(connection, &view, cx).await,
                ended = execution.settle() => {
                    return ended.map(|outcome| errors::across(outcome, connection, client));
                }
                () = &mut limit, if !stopping => {
                    let stopped = match execution.cancel().await {
                        Ok(()) => "was cancelled",
                        Err(_) => "could not be cancelled",
                    };
                    return Ok(result::internal(format!(
                        "the call took longer than it may (setting `timeoutMs`) and {stopped} at {}",
                        self.name
                    )));
                }
            }
        }
    }
}

/// What our caller was told of a call.
struct Told {
    /// Whether how far it has come can only be said in words (BR-PG-2).
    in_words: bool,
    progress: Option<f64>,
    message: Option<String>,
    attached: bool,
}

impl Told {
    fn new(call: &Origin, client: &Client) -> Self {
        Self {
            in_words: client.version() == version::MODERN || call.progress_token.is_none(),
            progress: None,
            message: None,
            attached: false,
        }
    }

    /// Tells what is new.
    async fn tell(&mut self, connection: &Connection, view: &View, cx: &CallContext) {
        if let Some(progress) = view
            .progress
            .as_ref()
            .filter(|now| Some(now.progress) != self.progress)
        {
            self.progress = Some(progress.progress);
            let message = progress.message.as_deref();
            if self.in_words {
                cx.status(&in_words(progress.progress, progress.total, message));
            }
            cx.progress(Progress {
                done: progress.progress,
                total: progress.total,
                message: message.map(Into::into),
            });
        }
        let Some(task) = &view.task else { return };
        super::again::take_back_left(connection, task, cx).await;
        if let Some(message) = task
            .message
            .as_ref()
            .filter(|now| Some(*now) != self.message.as_ref())
        {
            cx.status(message);
            self.message = Some(message.clone());
        }
        if let Some(immediate) = view
            .immediate_response
            .as_ref()
            .filter(|_| self.message.is_none())
        {
            // BR-CREATE-9.
            cx.status(immediate);
            self.message = Some(immediate.clone());
        }
        if let Some(reference) = view.reference.as_ref().filter(|_| !self.attached) {
            self.attached = true;
            super::again::attach(connection, reference, cx).await;
        }
    }
}

/// How far a call has come, as a text.
fn in_words(done: f64, total: Option<f64>, message: Option<&str>) -> String {
    match (message, total) {
        (Some(message), _) => message.to_owned(),
        (None, Some(total)) => format!("{done} of {total}"),
        (None, None) => format!("{done}"),
    }
}

/// Whether the upstream shall make a task, where its tool may be called either way (BR-CREATE-2, BR-CREATE-4,
/// BR-CREATE-5).
fn preference(call: &Origin, client: &Client) -> Preference {
    let params = call.params.as_ref();
    let has_wish = params.is_some_and(|params| object::find(params.borrow(), &["task"]).is_some());
    let extension = ["extensions", v2::EXTENSION];
    let takes_tasks = match client.version() == version::MODERN {
        true => object::find(client.capabilities(), &extension).is_some(),
        false => has_wish,
    };
    match takes_tasks {
        true => Preference::Prefer,
        false => Preference::Allow,
    }
}

/// Whether a call that was lost may be made again.
fn may_repeat(lost: &Unsettled, call: &Origin, attempt: u32) -> bool {
    let passing = match lost {
        Unsettled::Fault(crate::back::Fault::Link(error)) => error.is_passing(),
        Unsettled::Lost { .. } => true,
        _ => false,
    };
    debug_assert_eq!(&*call.method, tool::CALL);
    passing && call.retry == Retry::Rerun && attempt < ATTEMPTS
}

/// How often a call is made in one life of this process.
pub(super) const ATTEMPTS: u32 = 3;

/// How often a server may want pages to be opened before it runs a call.
const DEMANDS: u32 = 8;
