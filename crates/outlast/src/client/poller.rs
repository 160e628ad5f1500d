//! Follows one task from its creation to its outcome.
//!
//! Polls follow a [`PollSchedule`]. In V1 a status that is terminal or `input_required` is followed
//! by `tasks/result` at once, whether it came by a poll or a notification. Only one `tasks/result`
//! of a task is in flight, because some servers respond to only one of two. If `tasks/result` was
//! sent before the task ended and has no response, it is sent again after the end, because the
//! stream of the first may be lost. In V2 a poll contains the outcome and the input requests; their
//! responses are sent when they are ready ([`TaskInputs`]).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{ErrorCode, Outcome};
use outlast_wire::v2::InputResponseEntry;
use outlast_wire::{PeerTask, Raw, Status, codes};
use tokio::time::Instant;

use super::audit;
use super::client::Core;
use super::driver::{CancelWaiters, Driver};
use super::error::{Error, PeerError};
use super::execution::{CallCommand, CallController, CancelError, OutcomeError};
use super::modern::{InputRefusal, TaskInputs};
use super::outcome::{has_no_result, is_empty_result};
use super::poll_schedule::{PollDefaults, PollSchedule};
use super::routes::CallEvent;
use super::task_report::{ReportPayload, TaskReport};
use super::{legacy, modern};
use crate::sleep::sleep_until;

/// A task that is being followed.
pub(super) struct TaskPoller {
    pub(super) core: Arc<Core>,
    pub(super) task: PeerTask,
    pub(super) cancels: CancelWaiters,
    created: Instant,
    schedule: PollSchedule,
    inputs: TaskInputs,
    seed: Option<TaskReport>,
    poll: Option<RequestFuture<TaskReport>>,
    fetch: Option<RequestFuture<Raw>>,
    /// Whether the result was requested before the task had ended.
    early: bool,
    /// When to send `tasks/result` again if the early one has no response.
    refetch_at: Option<Instant>,
    cancel: Option<RequestFuture<Option<PeerTask>>>,
    update: Option<RequestFuture<Vec<InputResponseEntry>>>,
    /// How often the result of an ended task could not be fetched.
    fetch_failures: u32,
    /// How often in a row input responses were refused.
    update_failures: u32,
    /// The error of the input request that was refused. It ends the task.
    refused: Option<InputRefusal>,
    warned: bool,
}

type RequestFuture<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// The end of a followed task.
type PollEnd = Result<Outcome, OutcomeError>;

impl TaskPoller {
    pub(super) fn new(
        core: Arc<Core>,
        seed: TaskReport,
        inputs: TaskInputs,
        created: Instant,
        cancels: CancelWaiters,
    ) -> Self {
        Self {
            schedule: PollSchedule::new(
                poll_defaults(&seed),
                Instant::now(),
                seed.task.poll_interval_ms,
            ),
            core,
            task: seed.task.clone(),
            cancels,
            created,
            inputs,
            seed: Some(seed),
            poll: None,
            fetch: None,
            early: false,
            refetch_at: None,
            cancel: None,
            update: None,
            fetch_failures: 0,
            update_failures: 0,
            refused: None,
            warned: false,
        }
    }

    /// Polls first, because the known status may be old.
    pub(super) fn polling_first(mut self) -> Self {
        self.poll = Some(self.start_poll());
        self
    }

    /// Follows the task to its end.
    pub(super) async fn run<O: CallController>(&mut self, driver: &mut Driver<'_, O>) -> PollEnd {
        audit::followed(&driver.status, &self.task);
        let ended = self.poll_until_end(driver).await;
        audit::ended(&driver.status, &self.task, &ended);
        ended
    }

    async fn poll_until_end<O: CallController>(&mut self, driver: &mut Driver<'_, O>) -> PollEnd {
        driver.show_task(&self.task).await;
        if !self.cancels.is_empty() {
            self.begin_cancel();
        }
        if let Some(seed) = self.seed.take() {
            // V2-CREATE-3, A2-25: a create result has no payload, so poll for it.
            let brief = matches!(seed.payload, ReportPayload::None);
            if brief && seed.task.status != Status::Working {
                self.schedule.poll_soon(Instant::now());
            }
            if let Some(ended) = self.apply_report(seed) {
                return ended;
            }
        }
        loop {
            if self.task.status == Status::Cancelled {
                // A notification may arrive before the response to the cancellation.
                self.notify_cancel_waiters(&Ok(()));
                // V1-CANCEL-6: a cancelled task has no result.
                return Ok(Outcome::Cancelled);
            }
            let look_at = self.schedule.next();
            let looks =
                self.poll.is_none() && !(self.task.status.is_terminal() && self.fetch.is_some());
            let warn_at = self.warn_at();
            let ended = tokio::select! {
                biased;
                fetched = in_flight(&mut self.fetch) => {
                    self.fetch = None;
                    self.fetched(fetched)
                }
                cancelled = in_flight(&mut self.cancel) => {
                    self.cancel = None;
                    self.cancelled(cancelled)
                }
                updated = in_flight(&mut self.update) => {
                    self.update = None;
                    self.updated(updated)
                }
                responded = self.inputs.next_response() => {
                    match responded {
                        Ok(()) => self.begin_update(),
                        Err(refused) => self.refuse(refused),
                    }
                    None
                }
                polled = in_flight(&mut self.poll) => {
                    self.poll = None;
                    driver.show_outage(polled.as_ref().err()).await;
                    self.polled(polled)
                }
                command = driver.controller.command() => match command {
                    CallCommand::Cancel(sender) => {
                        self.cancels.push(sender);
                        self.begin_cancel();
                        driver.status.cancelling = true;
                        driver.show().await;
                        None
                    }
                    CallCommand::Detach => Some(Err(OutcomeError::Detached)),
                    CallCommand::ReportStatus => {
                        driver.show().await;
                        None
                    }
                },
                Some(event) = driver.events.recv() => {
                    match event {
                        // An ended task needs no input response.
                        CallEvent::InputResponseRefused(_) if self.task.status.is_terminal() => None,
                        CallEvent::InputResponseRefused(why) => Some(Err(OutcomeError::InputResponseRefused {
                            task: self.task.id.clone(),
                            why: *why,
                        })),
                        CallEvent::Status(mut report) => {
                            self.schedule.notified(Instant::now(), report.task.poll_interval_ms);
                            // Some servers notify another TTL than they granted. The responses to
                            // requests are authoritative.
                            report.task.ttl_ms = self.task.ttl_ms;
                            self.apply_report(*report)
                        }
                        progress => {
                            driver.show_progress(progress).await;
                            None
                        }
                    }
                }
                () = tokio::time::sleep_until(look_at), if looks => {
                    self.poll = Some(self.start_poll());
                    None
                }
                () = sleep_until(self.refetch_at) => {
                    self.fetch = None;
                    self.fetch_if_due();
                    None
                }
                () = sleep_until(warn_at) => {
                    self.warned = true;
                    driver.status.expiring = true;
                    driver.show().await;
                    None
                }
            };
            driver.show_task(&self.task).await;
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// Applies a report of the task. A terminal status is final (V1-NOTIF-7, V2-LIFE-6).
    fn apply_report(&mut self, report: TaskReport) -> Option<PollEnd> {
        let was_terminal = self.task.status.is_terminal();
        if report.task.id != self.task.id || was_terminal && !report.task.status.is_terminal() {
            return None;
        }
        if !was_terminal {
            let before = std::mem::replace(&mut self.task, report.task);
            self.keep_newer_message(before);
        }
        match (report.payload, self.task.status) {
            (ReportPayload::FetchSeparately, _) => {
                self.fetch_if_due();
                None
            }
            (ReportPayload::Result(result), Status::Completed) => {
                Some(match modern::check_complete(&result) {
                    Ok(()) => Ok(Outcome::of_tool(result)),
                    // A2-26.
                    Err(error) => Err(self.lost(error)),
                })
            }
            (ReportPayload::Error(error), Status::Failed) => {
                Some(match PeerError::read(error.borrow()) {
                    Some(error) => Ok(error.into()),
                    None => Err(self.lost(Error::Malformed(
                        "the task's `error` is not a JSON-RPC error object".into(),
                    ))),
                })
            }
            (ReportPayload::InputRequests(asks), Status::InputRequired) => {
                match self.inputs.set_outstanding(asks) {
                    Ok(()) => {
                        self.begin_update();
                        None
                    }
                    Err(why) => Some(Err(self.lost(Error::Malformed(why.to_string())))),
                }
            }
            (_, Status::Working) => {
                // An empty list cannot violate the protocol.
                let _ = self.inputs.set_outstanding(Vec::new());
                None
            }
            // The report has no payload; the next poll contains it.
            _ => None,
        }
    }

    /// Keeps the status message of `before` if it is newer: the response to a poll may be created
    /// before a notification and arrive after it.
    fn keep_newer_message(&mut self, before: PeerTask) {
        let is_older = self.task.updated.is_some() && self.task.updated < before.updated;
        if is_older && !self.task.status.is_terminal() {
            self.task.updated = before.updated;
            self.task.message = before.message;
        }
    }

    /// Fetches the result if the task has ended (A1-2), or if its input requests may arrive on the
    /// stream of `tasks/result` (V1-INPUT-3, A1-4).
    fn fetch_if_due(&mut self) {
        let wanted = matches!(
            self.task.status,
            Status::InputRequired | Status::Completed | Status::Failed
        );
        if self.fetch.is_some() {
            if self.early && self.task.status.is_terminal() && self.refetch_at.is_none() {
                self.refetch_at = Some(Instant::now() + EARLY_RESULT_TIMEOUT);
            }
        } else if wanted {
            let timeout = if self.task.status.is_terminal() {
                self.core.options.request_timeout
            } else {
                self.core.options.result_timeout
            };
            self.early = !self.task.status.is_terminal();
            self.refetch_at = None;
            let (core, id) = (self.core.clone(), self.task.id.clone());
            self.fetch = Some(Box::pin(async move {
                let conversation = core.conversation().await?;
                legacy::fetch(&conversation, &id, timeout).await
            }));
        }
    }

    fn start_poll(&self) -> RequestFuture<TaskReport> {
        let (core, id) = (self.core.clone(), self.task.id.clone());
        Box::pin(async move {
            let conversation = core.conversation().await?;
            conversation.poll(&id, core.options.request_timeout).await
        })
    }

    fn polled(&mut self, polled: Result<TaskReport, Error>) -> Option<PollEnd> {
        let error = match polled {
            Ok(report) => {
                let result = report.task.poll_interval_ms;
                self.schedule
                    .polled(poll_defaults(&report), Instant::now(), result);
                let incomplete = matches!(
                    (&report.payload, report.task.status),
                    (ReportPayload::None, Status::Completed | Status::Failed)
                );
                let ended = self.apply_report(report);
                if !incomplete || ended.is_some() {
                    return ended;
                }
                self.fetch_failures += 1;
                let why = Error::Malformed("the ended task has no outcome".into());
                return (self.fetch_failures > MAX_REFUSALS).then(|| Err(self.lost(why)));
            }
            Err(error) => error,
        };
        self.back_off(&error);
        self.end_after_failure(error, self.schedule.failures())
    }

    /// Schedules the next poll after a failure.
    fn back_off(&mut self, error: &Error) {
        let now = Instant::now();
        match error.retry_after() {
            Some(pause) => self.schedule.retry_after(now, pause),
            None => self.schedule.failed(now),
        }
    }

    /// Decides whether polling ends after `failures` in a row, the last of them with `error`;
    /// `None` if it goes on. A transient error ends it only when the TTL is over or the connection
    /// has ended.
    fn end_after_failure(&self, error: Error, failures: u32) -> Option<PollEnd> {
        let expired = self.is_expired(Instant::now());
        if expired && error.code() == Some(codes::INVALID_PARAMS) {
            return Some(Err(OutcomeError::Expired(self.task.id.clone())));
        }
        let is_closed = if error.is_transient() {
            expired || matches!(error, Error::Transport(_)) && self.core.is_closed()
        } else if matches!(error, Error::Transport(_)) {
            // A message that is too large will be too large again.
            true
        } else {
            // A1-15.
            failures > MAX_REFUSALS
        };
        is_closed.then(|| Err(self.lost(error)))
    }

    fn fetched(&mut self, fetched: Result<Raw, Error>) -> Option<PollEnd> {
        let error = match fetched {
            // A1-1: an empty result says nothing. The next poll shows the status.
            Ok(result) if is_empty_result(&result) && !self.task.status.is_terminal() => {
                return None;
            }
            // The status message is all that is known.
            Ok(result) if is_empty_result(&result) && self.task.status == Status::Failed => {
                return Some(Ok(self.failed()));
            }
            Ok(result) => return Some(Ok(Outcome::of_tool(result))),
            Err(error) => error,
        };
        if !self.task.status.is_terminal() {
            // A1-3: some servers refuse instead of waiting, or the task failed with this error. The
            // next poll shows which.
            let over = matches!(error, Error::Transport(_)) && self.core.is_closed();
            return over.then(|| Err(self.lost(error)));
        }
        if self.early {
            // A1-3: the task ended while the refusal was on its way.
            self.fetch_if_due();
            return None;
        }
        if let Error::Peer(error) = &error
            && error.refused.is_none()
        {
            let expired = error.code == codes::INVALID_PARAMS && self.is_expired(Instant::now());
            let is_failed = self.task.status == Status::Failed;
            return Some(if expired {
                Err(OutcomeError::Expired(self.task.id.clone()))
            } else if is_failed && has_no_result(error, &self.task) {
                // The error is about the fetch: the task failed, and its server stored no result.
                Ok(self.failed())
            } else {
                // V1-RES-4: the error is the outcome.
                Ok(error.clone().into())
            });
        }
        // After the next poll the result is requested again.
        self.fetch_failures += 1;
        self.back_off(&error);
        self.end_after_failure(error, self.fetch_failures)
    }

    /// The outcome of a failed task of which only the status message is known.
    fn failed(&self) -> Outcome {
        let why = self.task.message.as_deref();
        let why = why.unwrap_or("the task failed; its server gave no reason");
        Outcome::error(ErrorCode(codes::INTERNAL_ERROR), why)
    }

    fn begin_cancel(&mut self) {
        if self.cancel.is_some() {
            return;
        }
        let (core, id) = (self.core.clone(), self.task.id.clone());
        self.cancel = Some(Box::pin(async move {
            let conversation = core.conversation().await?;
            conversation.cancel(&id, core.options.request_timeout).await
        }));
    }

    /// Sends the responses that are ready, unless others are in flight.
    fn begin_update(&mut self) {
        let answers = self.inputs.ready();
        if answers.is_empty() || self.update.is_some() {
            return;
        }
        let (core, id) = (self.core.clone(), self.task.id.clone());
        self.update = Some(Box::pin(async move {
            let conversation = core.conversation().await?;
            conversation
                .update(&id, &answers, core.options.request_timeout)
                .await?;
            Ok(answers)
        }));
    }

    fn updated(&mut self, updated: Result<Vec<InputResponseEntry>, Error>) -> Option<PollEnd> {
        match updated {
            Ok(answers) => {
                self.update_failures = 0;
                self.inputs.delivered(&answers);
                self.begin_update();
                None
            }
            // A2-4: the task may have ended. The next poll shows this, or repeats the input
            // request, and the response is sent again.
            Err(error) => {
                self.update_failures += 1;
                if error.retry_after().is_some() {
                    self.back_off(&error);
                }
                self.end_after_failure(error, self.update_failures)
            }
        }
    }

    /// Cancels the task after an input request was refused, because the protocol cannot report a
    /// refusal (A2-19).
    fn refuse(&mut self, refused: InputRefusal) {
        let (InputRefusal::Invalid(why) | InputRefusal::Denied(why)) = &refused;
        tracing::info!(
            code = why.code,
            task = self.task.id,
            "an input request was refused; the task is cancelled"
        );
        self.refused = Some(refused);
        self.begin_cancel();
    }

    fn cancelled(&mut self, cancelled: Result<Option<PeerTask>, Error>) -> Option<PollEnd> {
        let refusal = self.refused.as_ref().map(|refused| match refused {
            // The caller gets the error, because it has not cancelled the task itself.
            InputRefusal::Invalid(why) => why.clone().into(),
            InputRefusal::Denied(_) => Outcome::Cancelled,
        });
        let ended = refusal.map(|refusal| match &cancelled {
            // V2-CANCEL-6: the later status of the task does not matter.
            Ok(_) => Ok(refusal),
            // The task had ended, or the server no longer has it.
            Err(error) if error.code() == Some(codes::INVALID_PARAMS) => Ok(refusal),
            Err(error) => Err(self.lost(error.clone())),
        });
        let result = match cancelled {
            Ok(None) => Ok(()),
            Ok(Some(task)) => {
                let result = match task.status {
                    // A1-14: some servers respond with the ended task instead of an error.
                    Status::Completed | Status::Failed => Err(CancelError::Finished),
                    _ => Ok(()),
                };
                self.apply_report(TaskReport::plain(task));
                result
            }
            Err(Error::Unsupported(_)) => Err(CancelError::Unsupported),
            Err(error) if error.code() == Some(codes::INVALID_PARAMS) => Err(CancelError::Finished),
            Err(error) => Err(CancelError::Request(error)),
        };
        self.notify_cancel_waiters(&result);
        ended
    }

    /// Sends the result of the cancellation to all waiting callers.
    fn notify_cancel_waiters(&mut self, result: &Result<(), CancelError>) {
        for sender in self.cancels.drain(..) {
            let _ = sender.send(result.clone());
        }
    }

    fn lost(&self, why: Error) -> OutcomeError {
        OutcomeError::Lost {
            task: self.task.id.clone(),
            why,
        }
    }

    /// When the server may drop the task, by the local clock.
    fn expires(&self) -> Option<Instant> {
        self.created
            .checked_add(Duration::from_millis(self.task.ttl_ms?))
    }

    fn is_expired(&self, now: Instant) -> bool {
        self.expires().is_some_and(|expires| now >= expires)
    }

    fn warn_at(&self) -> Option<Instant> {
        let ttl = Duration::from_millis(self.task.ttl_ms?);
        let before = (ttl / 5).min(MAX_EXPIRY_WARNING);
        let warn = self.expires()?.checked_sub(before)?;
        (!self.warned && !self.task.status.is_terminal()).then_some(warn)
    }
}

/// The default intervals of the generation that sends such reports.
fn poll_defaults(report: &TaskReport) -> PollDefaults {
    match report.payload {
        ReportPayload::FetchSeparately => PollDefaults::V1,
        _ => PollDefaults::V2,
    }
}

/// Waits for work in flight. Without work in flight it never completes.
async fn in_flight<T>(work: &mut Option<RequestFuture<T>>) -> Result<T, Error> {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// How many polls in a row may be refused before the task counts as lost.
const MAX_REFUSALS: u32 = 3;

/// How long an early `tasks/result` may stay without a response after the task has ended.
const EARLY_RESULT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long before the end of the TTL a task counts as expiring, at most. For a short TTL it is a
/// fifth of it.
const MAX_EXPIRY_WARNING: Duration = Duration::from_secs(60);
