//! One tool call at the upstream, from its request to its outcome.

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
    /// Calls a tool, unless the call was prestarted, and drives the call to its end. A lost call is
    /// repeated only if its tool allows it.
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
                    Demand::Met if demands < MAX_URL_ROUNDS => demands += 1,
                    Demand::Met => {
                        return result::internal(format!(
                            "{} required url elicitations {MAX_URL_ROUNDS} times for one call",
                            self.name
                        ));
                    }
                    Demand::Outcome(outcome) => return outcome,
                },
                Err(lost) if may_repeat(&lost, call, attempt) && !cx.is_cancelled() => {
                    tracing::info!(upstream = &*self.name, call = %cx.id(), lost = lost.brief(), "repeating a lost call");
                    attempt += 1;
                    // The server may be restarting.
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

    /// Builds the call. The upstream's task has a TTL of `ttl` milliseconds, else that of the
    /// caller, else that of the settings.
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
        // BR-TTL-2. The upstream's task must exist until its outcome is fetched and until our task
        // has expired, so that a waiting caller gets the error of our expiry.
        let wish = params.filter(|_| has_wish);
        let wish = wish.and_then(|params| v1::TaskRequest::read(Some(params.borrow())).ok());
        let wish = wish.flatten().and_then(|wish| wish.ttl_ms);
        match ttl.or(wish).or_else(|| self.settings.ttl(&tool)) {
            Some(ttl) => made.ttl(ttl.saturating_add(TTL_MARGIN)),
            None => made,
        }
    }

    /// The outcome of a call that could not be sent.
    pub(super) fn not_made(&self, refusal: CallError) -> Outcome {
        match refusal {
            CallError::Request(fault) => result::of_fault(&self.name, fault),
            refusal => result::internal(format!("{}: {refusal}", self.name)),
        }
    }
}

/// Whether the upstream should create a task, if its tool can be called either way (BR-CREATE-2,
/// BR-CREATE-4, BR-CREATE-5).
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

/// Whether a lost call can be repeated.
fn may_repeat(lost: &OutcomeError, call: &Origin, attempt: u32) -> bool {
    let passing = match lost {
        OutcomeError::Request(client::Error::Transport(error)) => error.is_transient(),
        // A repeated call would return a result of the same size.
        OutcomeError::Lost { why, .. } => {
            !matches!(why, client::Error::Transport(LinkError::TooLarge { .. }))
        }
        _ => false,
    };
    debug_assert_eq!(&*call.method, tool::CALL);
    passing && call.retry == RetryClass::Rerun && attempt < ATTEMPTS
}

/// The maximum of attempts in one run of this process.
pub(super) const ATTEMPTS: u32 = 3;

/// How much longer than ours the upstream's task exists.
const TTL_MARGIN: u64 = 60_000;

/// The maximum of url elicitation rounds before a call runs.
const MAX_URL_ROUNDS: u32 = 8;
