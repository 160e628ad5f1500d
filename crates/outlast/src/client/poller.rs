//! The observation of one task, from its creation to its outcome.
//!
//! Looks follow the server's pace ([`PollSchedule`]). In V1 a status that is terminal or asks for input is followed by
//! `tasks/result` at once, whoever told it; only one of a task is under way at a time, because some servers answer only
//! one of two. If a task has ended and a `tasks/result` from before its end is not answered, it is asked for again: the stream
//! of the first may be lost. In V2 a look brings the outcome and the questions along, whose answers go out as they come ([`TaskInputs`]).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{ErrorCode, Outcome};
use outlast_wire::v2::Answer;
use outlast_wire::{PeerTask, Raw, Status, codes};
use tokio::time::Instant;

use super::audit;
use super::client::Core;
use super::driver::{CancelWaiters, Driver};
use super::error::{Error, PeerError};
use super::execution::{CallController, CancelError, Command, OutcomeError};
use super::modern::{InputRefusal, TaskInputs};
use super::outcome::{has_no_result, is_empty_result};
use super::poll_schedule::{PollDefaults, PollSchedule};
use super::routes::CallEvent;
use super::task_report::{ReportPayload, TaskReport};
use super::{legacy, modern};
use crate::sleep::sleep_until;

/// A task under observation.
pub(super) struct TaskPoller {
    pub(super) core: Arc<Core>,
    pub(super) task: PeerTask,
    pub(super) cancels: CancelWaiters,
    created: Instant,
    schedule: PollSchedule,
    inputs: TaskInputs,
    seed: Option<TaskReport>,
    poll: Option<Work<TaskReport>>,
    fetch: Option<Work<Raw>>,
    /// Whether the result was asked for before the task had ended.
    early: bool,
    /// When the result is asked for again, although it was asked for before the end.
    refetch_at: Option<Instant>,
    cancel: Option<Work<Option<PeerTask>>>,
    update: Option<Work<Vec<Answer>>>,
    /// How often the result of a task that has ended could not be fetched.
    fetch_failures: u32,
    /// How often answers were refused in a row.
    update_failures: u32,
    /// Why a question was refused, which ends the task.
    refused: Option<InputRefusal>,
    warned: bool,
}

type Work<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// The end of an observation.
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

    /// The same, with a look before anything else: what is known is old.
    pub(super) fn polling_first(mut self) -> Self {
        self.poll = Some(self.start_poll());
        self
    }

    /// Observes the task to its end.
    pub(super) async fn observe<O: CallController>(
        &mut self,
        driver: &mut Driver<'_, O>,
    ) -> PollEnd {
        audit::followed(&driver.status, &self.task);
        let ended = self.watch(driver).await;
        audit::settled(&driver.status, &self.task, &ended);
        ended
    }

    async fn watch<O: CallController>(&mut self, driver: &mut Driver<'_, O>) -> PollEnd {
        driver.show_task(&self.task).await;
        if !self.cancels.is_empty() {
            self.begin_cancel();
        }
        if let Some(seed) = self.seed.take() {
            // V2-CREATE-3, A2-25: what it is in brief, it never is in full.
            let brief = matches!(seed.payload, ReportPayload::None);
            if brief && seed.task.status != Status::Working {
                self.schedule.poll_soon(Instant::now());
            }
            if let Some(ended) = self.learn(seed) {
                return ended;
            }
        }
        loop {
            if self.task.status == Status::Cancelled {
                // A notification may say so before the answer does.
                self.notify_cancel_waiters(&Ok(()));
                // V1-CANCEL-6: there is nothing to fetch.
                return Ok(Outcome::Cancelled);
            }
            let look_at = self.schedule.next();
            let looks =
                self.poll.is_none() && !(self.task.status.is_terminal() && self.fetch.is_some());
            let warn_at = self.warn_at();
            let ended = tokio::select! {
                biased;
                fetched = running(&mut self.fetch) => {
                    self.fetch = None;
                    self.fetched(fetched)
                }
                cancelled = running(&mut self.cancel) => {
                    self.cancel = None;
                    self.cancelled(cancelled)
                }
                updated = running(&mut self.update) => {
                    self.update = None;
                    self.updated(updated)
                }
                answered = self.inputs.answered() => {
                    match answered {
                        Ok(()) => self.begin_update(),
                        Err(refused) => self.refuse(refused),
                    }
                    None
                }
                polled = running(&mut self.poll) => {
                    self.poll = None;
                    driver.show_outage(polled.as_ref().err()).await;
                    self.polled(polled)
                }
                command = driver.controller.command() => match command {
                    Command::Cancel(sender) => {
                        self.cancels.push(sender);
                        self.begin_cancel();
                        driver.status.cancelling = true;
                        driver.show().await;
                        None
                    }
                    Command::Detach => Some(Err(OutcomeError::Detached)),
                    Command::ReportStatus => {
                        driver.show().await;
                        None
                    }
                },
                Some(event) = driver.events.recv() => {
                    match event {
                        // A task that has ended waits for no answer.
                        CallEvent::InputResponseRefused(_) if self.task.status.is_terminal() => None,
                        CallEvent::InputResponseRefused(why) => Some(Err(OutcomeError::InputResponseRefused {
                            task: self.task.id.clone(),
                            why: *why,
                        })),
                        CallEvent::Status(mut report) => {
                            self.schedule.notified(Instant::now(), report.task.poll_interval_ms);
                            // Some servers notify of another TTL than they grant. The answers to our requests count.
                            report.task.ttl_ms = self.task.ttl_ms;
                            self.learn(*report)
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
                    self.react();
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

    /// Takes what a server says of the task. What has ended stays so (V1-NOTIF-7, V2-LIFE-6).
    fn learn(&mut self, report: TaskReport) -> Option<PollEnd> {
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
                self.react();
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
                    None => Err(self.lost(Error::Malformed("its error is none".into()))),
                })
            }
            (ReportPayload::InputRequests(asks), Status::InputRequired) => {
                match self.inputs.outstanding(asks) {
                    Ok(()) => {
                        self.begin_update();
                        None
                    }
                    Err(why) => Some(Err(self.lost(Error::Malformed(why.to_string())))),
                }
            }
            (_, Status::Working) => {
                // Nothing is outstanding, so nothing is wrong with it.
                let _ = self.inputs.outstanding(Vec::new());
                None
            }
            // CallEvent in brief: a look shows the rest.
            _ => None,
        }
    }

    /// Keeps the status message of `before` if that was reported later: a poll may be answered before a notification is
    /// sent and arrive after it.
    fn keep_newer_message(&mut self, before: PeerTask) {
        let is_older = self.task.updated.is_some() && self.task.updated < before.updated;
        if is_older && !self.task.status.is_terminal() {
            self.task.updated = before.updated;
            self.task.message = before.message;
        }
    }

    /// Fetches the result where that is called for: the task has ended (A1-2), or its questions may travel with the
    /// result (V1-INPUT-3, A1-4).
    fn react(&mut self) {
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

    fn start_poll(&self) -> Work<TaskReport> {
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
                let ended = self.learn(report);
                if !incomplete || ended.is_some() {
                    return ended;
                }
                self.fetch_failures += 1;
                let why = Error::Malformed("its task ended without its outcome".into());
                return (self.fetch_failures > MAX_REFUSALS).then(|| Err(self.lost(why)));
            }
            Err(error) => error,
        };
        self.back_off(&error);
        self.end_after_failure(error, self.schedule.failures())
    }

    /// Plans the next look after a failure.
    fn back_off(&mut self, error: &Error) {
        let now = Instant::now();
        match error.retry_after() {
            Some(pause) => self.schedule.retry_after(now, pause),
            None => self.schedule.failed(now),
        }
    }

    /// How the observation ends after so many failures in a row, the last of them with `fault`; `None` if it goes on. What
    /// may pass ends it only when the server may have forgotten the task, or when there is no way back to the server.
    fn end_after_failure(&self, error: Error, failures: u32) -> Option<PollEnd> {
        let expired = self.is_expired(Instant::now());
        if expired && error.code() == Some(codes::INVALID_PARAMS) {
            return Some(Err(OutcomeError::Expired(self.task.id.clone())));
        }
        let is_closed = if error.is_passing() {
            expired || matches!(error, Error::Transport(_)) && self.core.is_closed()
        } else if matches!(error, Error::Transport(_)) {
            // It would be as large the next time.
            true
        } else {
            // A1-15.
            failures > MAX_REFUSALS
        };
        is_closed.then(|| Err(self.lost(error)))
    }

    fn fetched(&mut self, fetched: Result<Raw, Error>) -> Option<PollEnd> {
        let error = match fetched {
            // Says nothing: what it means is seen at the next look (A1-1).
            Ok(result) if is_empty_result(&result) && !self.task.status.is_terminal() => {
                return None;
            }
            // The failure is all there is.
            Ok(result) if is_empty_result(&result) && self.task.status == Status::Failed => {
                return Some(Ok(self.failed()));
            }
            Ok(result) => return Some(Ok(Outcome::of_tool(result))),
            Err(error) => error,
        };
        if !self.task.status.is_terminal() {
            // A1-3: some servers refuse instead of waiting; or the task has failed with this very error. The next
            // look tells.
            let over = matches!(error, Error::Transport(_)) && self.core.is_closed();
            return over.then(|| Err(self.lost(error)));
        }
        if self.early {
            // A1-3: it ended while the refusal was on its way.
            self.react();
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
                // The error is about the fetch: the task has failed, and its server stored no result.
                Ok(self.failed())
            } else {
                // V1-RES-4: that is the outcome.
                Ok(error.clone().into())
            });
        }
        // The next look is followed by another attempt.
        self.fetch_failures += 1;
        self.back_off(&error);
        self.end_after_failure(error, self.fetch_failures)
    }

    /// The outcome of a failed task of which only the status message is known.
    fn failed(&self) -> Outcome {
        let why = self.task.message.as_deref();
        let why = why.unwrap_or("the task failed, and its server does not say why");
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

    /// Sends the answers that are there, unless some are on their way.
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

    fn updated(&mut self, updated: Result<Vec<Answer>, Error>) -> Option<PollEnd> {
        match updated {
            Ok(answers) => {
                self.update_failures = 0;
                self.inputs.delivered(&answers);
                self.begin_update();
                None
            }
            // A2-4: it may be over. The next look shows it, or asks again, and then the answers are sent again.
            Err(error) => {
                self.update_failures += 1;
                if error.retry_after().is_some() {
                    self.back_off(&error);
                }
                self.end_after_failure(error, self.update_failures)
            }
        }
    }

    /// A question was refused, and there is no way to say so: the task is cancelled (A2-19).
    fn refuse(&mut self, refused: InputRefusal) {
        let (InputRefusal::Invalid(why) | InputRefusal::Denied(why)) = &refused;
        tracing::info!(
            code = why.code,
            task = self.task.id,
            "a question was refused; the task is cancelled"
        );
        self.refused = Some(refused);
        self.begin_cancel();
    }

    fn cancelled(&mut self, cancelled: Result<Option<PeerTask>, Error>) -> Option<PollEnd> {
        let refusal = self.refused.as_ref().map(|refused| match refused {
            // The caller hears why: it has cancelled nothing.
            InputRefusal::Invalid(why) => why.clone().into(),
            InputRefusal::Denied(_) => Outcome::Cancelled,
        });
        let ended = refusal.map(|refusal| match &cancelled {
            // V2-CANCEL-6: nobody wants to know what became of it.
            Ok(_) => Ok(refusal),
            // It was over already, or is not there any more.
            Err(error) if error.code() == Some(codes::INVALID_PARAMS) => Ok(refusal),
            Err(error) => Err(self.lost(error.clone())),
        });
        let result = match cancelled {
            Ok(None) => Ok(()),
            Ok(Some(task)) => {
                let result = match task.status {
                    // Some servers answer so for a task that was over (A1-14).
                    Status::Completed | Status::Failed => Err(CancelError::Finished),
                    _ => Ok(()),
                };
                self.learn(TaskReport::plain(task));
                result
            }
            Err(Error::Unsupported(_)) => Err(CancelError::Unsupported),
            Err(error) if error.code() == Some(codes::INVALID_PARAMS) => Err(CancelError::Finished),
            Err(error) => Err(CancelError::Request(error)),
        };
        self.notify_cancel_waiters(&result);
        ended
    }

    /// Tells those who wait for the cancellation what became of it.
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

    /// When the server may forget the task, by our own clock.
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

/// What is usual where a task is shown like this.
fn poll_defaults(report: &TaskReport) -> PollDefaults {
    match report.payload {
        ReportPayload::FetchSeparately => PollDefaults::V1,
        _ => PollDefaults::V2,
    }
}

/// The answer to what is under way; never, if nothing is.
async fn running<T>(work: &mut Option<Work<T>>) -> Result<T, Error> {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// How many looks in a row may be refused before the task counts as lost.
const MAX_REFUSALS: u32 = 3;

/// How long a `tasks/result` from before the end of its task may take after the end.
const EARLY_RESULT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long before the end of its time a task counts as expiring, at most; a fifth of its time if that is less.
const MAX_EXPIRY_WARNING: Duration = Duration::from_secs(60);
