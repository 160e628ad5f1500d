//! One call of a tool at the upstream, to its end.

use outlast_engine::engine::CallContext;
use outlast_engine::{Origin, Outcome, RetryClass};
use outlast_wire::{meta, object, tool, v1, v2, version};

use super::active_calls::UnderWay;
use super::again::Round;
use super::connection::Connection;
use super::pages::{self, Demand};
use super::pool::RESTARTS;
use super::prepared::{Prepared, PrestartedCall};
use super::runner::OTHER_HOP;
use super::{Upstream, result};
use crate::client::{self, Call, CallError, OutcomeError, TaskPreference};
use crate::server::ClientHandle;
use crate::transport::link::LinkError;

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
            let (ended, mut owner) = match prestarted.and_then(PrestartedCall::started) {
                Some(started) => {
                    started.under_way.belongs_to(cx);
                    started.running.await
                }
                None => {
                    let connection = prepared.connection.take();
                    let connection = match self.connection_of(connection, client).await {
                        Ok(connection) => connection,
                        Err(error) => return error.into(),
                    };
                    let under_way = connection.begin(cx);
                    let round = Round::First(cx);
                    let made = self.make(&connection, &under_way, call, None, client, round);
                    let made = match made.check().await {
                        Ok(made) => made,
                        Err(refusal) => return self.not_made(refusal),
                    };
                    let mut owner = self.owner(&connection, call, cx, client);
                    (made.drive(&mut owner).await, owner)
                }
            };
            match owner.ended(ended, client, cx) {
                Ok(outcome) if owner.has_task() => return outcome,
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
                    let pause = backoff.delay_of_at_least(lost.retry_after());
                    tokio::select! {
                        biased;
                        () = cx.cancelled() => return if cx.is_interrupted() {
                            result::unsettled(&self.name, OutcomeError::Detached)
                        } else {
                            Outcome::Cancelled
                        },
                        () = tokio::time::sleep(pause) => {}
                    }
                }
                Err(lost) => return result::unsettled(&self.name, lost),
            }
        }
    }

    /// The call to make. The upstream's task is to be kept for `ttl` milliseconds, or as the caller and the settings say.
    pub(super) fn make(
        &self,
        connection: &Connection,
        under_way: &UnderWay,
        call: &Origin,
        ttl: Option<u64>,
        client: &ClientHandle,
        round: Round<'_>,
    ) -> Call {
        let params = call.params.as_ref();
        let tool = call.tool.clone().unwrap_or_default();
        let has_wish = params.is_some_and(|it| object::find(it.borrow(), &["task"]).is_some());
        let mut made = connection
            .back
            .call_tool(tool.clone(), None)
            .task(preference(has_wish, client))
            .named(under_way.name());
        if connection.server().is_modern() {
            made = round.told_of(made);
        }
        if let Some(params) = params {
            made = made.params(params.clone()).omit(OTHER_HOP);
            if let Some(level) = connection.level(client) {
                made = made.meta(meta::LOG_LEVEL, level);
            }
        }
        // BR-TTL-2. The margin is for us: the upstream's task has to be there until its outcome is fetched, and until ours
        // has expired, so that a caller that waits is told of our expiry.
        let wish = params.filter(|_| has_wish);
        let wish = wish.and_then(|params| v1::TaskRequest::read(Some(params.borrow())).ok());
        let wish = wish.flatten().and_then(|wish| wish.ttl_ms);
        match ttl.or(wish).or_else(|| self.settings.ttl(&tool)) {
            Some(ttl) => made.ttl(ttl.saturating_add(TTL_MARGIN)),
            None => made,
        }
    }

    /// The outcome of a call that was not made.
    pub(super) fn not_made(&self, refusal: CallError) -> Outcome {
        match refusal {
            CallError::Request(fault) => result::of_fault(&self.name, fault),
            refusal => result::internal(format!("{}: {refusal}", self.name)),
        }
    }
}

/// Whether the upstream shall make a task, where its tool may be called either way (BR-CREATE-2, BR-CREATE-4,
/// BR-CREATE-5).
fn preference(has_wish: bool, client: &ClientHandle) -> TaskPreference {
    let extension = ["extensions", v2::EXTENSION];
    let takes_tasks = if client.version() == version::MODERN {
        object::find(client.capabilities(), &extension).is_some()
    } else {
        has_wish
    };
    if takes_tasks {
        TaskPreference::Prefer
    } else {
        TaskPreference::Allow
    }
}

/// Whether a call that was lost may be made again.
fn may_repeat(lost: &OutcomeError, call: &Origin, attempt: u32) -> bool {
    let passing = match lost {
        OutcomeError::Request(client::Error::Transport(error)) => error.is_transient(),
        // What is too large would be so again.
        OutcomeError::Lost { why, .. } => {
            !matches!(why, client::Error::Transport(LinkError::TooLarge { .. }))
        }
        _ => false,
    };
    debug_assert_eq!(&*call.method, tool::CALL);
    passing && call.retry == RetryClass::Rerun && attempt < ATTEMPTS
}

/// How often a call is made in one life of this process.
pub(super) const ATTEMPTS: u32 = 3;

/// By how many milliseconds the upstream is to keep its task longer than we keep ours.
const TTL_MARGIN: u64 = 60_000;

/// How often a server may want pages to be opened before it runs a call.
const DEMANDS: u32 = 8;
