//! The observation of one task, from its creation to its outcome.
//!
//! Looks follow the server's pace ([`Pace`]). In V1 a status that is terminal or asks for input is followed by
//! `tasks/result` at once, whoever told it; only one of a task is under way at a time, because some servers answer only
//! one of two. If a task has ended and a `tasks/result` from before its end is not answered, it is asked for again: the stream
//! of the first may be lost. In V2 a look brings the outcome and the questions along, whose answers go out as they come ([`Inputs`]).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{ErrorCode, Outcome};
use outlast_wire::v2::Answer;
use outlast_wire::{PeerTask, Raw, Status, codes};
use tokio::time::Instant;

use super::audit;
use super::client::Core;
use super::driver::{Cancels, Driver};
use super::error::{Fault, PeerError};
use super::execution::{CallOwner, Command, NotCancelled, Unsettled};
use super::modern::{Inputs, Refused};
use super::outcome::{has_no_result, is_hollow, of_error, of_result};
use super::poll_schedule::{Habit, Pace};
use super::routes::Told;
use super::task_report::{Brings, Sight};
use super::{legacy, modern};
use crate::sleep::sleep_until;

/// A task under observation.
pub(super) struct Observed {
    pub(super) core: Arc<Core>,
    pub(super) task: PeerTask,
    pub(super) cancels: Cancels,
    created: Instant,
    pace: Pace,
    inputs: Inputs,
    seed: Option<Sight>,
    look: Option<Work<Sight>>,
    fetch: Option<Work<Raw>>,
    /// Whether the result was asked for before the task had ended.
    early: bool,
    /// When the result is asked for again, although it was asked for before the end.
    refetch_at: Option<Instant>,
    cancel: Option<Work<Option<PeerTask>>>,
    update: Option<Work<Vec<Answer>>>,
    /// How often the result of a task that has ended could not be fetched.
    unfetched: u32,
    /// How often answers were refused in a row.
    unheard: u32,
    /// Why a question was refused, which ends the task.
    refused: Option<Refused>,
    warned: bool,
}

type Work<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

/// The end of an observation.
type Ended = Result<Outcome, Unsettled>;

impl Observed {
    pub(super) fn new(
        core: Arc<Core>,
        seed: Sight,
        inputs: Inputs,
        created: Instant,
        cancels: Cancels,
    ) -> Self {
        Self {
            pace: Pace::new(habit(&seed), Instant::now(), seed.task.poll_interval_ms),
            core,
            task: seed.task.clone(),
            cancels,
            created,
            inputs,
            seed: Some(seed),
            look: None,
            fetch: None,
            early: false,
            refetch_at: None,
            cancel: None,
            update: None,
            unfetched: 0,
            unheard: 0,
            refused: None,
            warned: false,
        }
    }

    /// The same, with a look before anything else: what is known is old.
    pub(super) fn looking_at_once(mut self) -> Self {
        self.look = Some(self.looking());
        self
    }

    /// Observes the task to its end.
    pub(super) async fn observe<O: CallOwner>(&mut self, driver: &mut Driver<'_, O>) -> Ended {
        audit::followed(&driver.view, &self.task);
        let ended = self.watch(driver).await;
        audit::settled(&driver.view, &self.task, &ended);
        ended
    }

    async fn watch<O: CallOwner>(&mut self, driver: &mut Driver<'_, O>) -> Ended {
        driver.show_task(&self.task).await;
        if !self.cancels.is_empty() {
            self.begin_cancel();
        }
        if let Some(seed) = self.seed.take() {
            // V2-CREATE-3, A2-25: what it is in brief, it never is in full.
            let brief = matches!(seed.brings, Brings::Nothing);
            if brief && seed.task.status != Status::Working {
                self.pace.soon(Instant::now());
            }
            if let Some(ended) = self.learn(seed) {
                return ended;
            }
        }
        loop {
            if self.task.status == Status::Cancelled {
                // A notification may say so before the answer does.
                self.tell_cancels(&Ok(()));
                // V1-CANCEL-6: there is nothing to fetch.
                return Ok(Outcome::Cancelled);
            }
            let look_at = self.pace.next();
            let looks =
                self.look.is_none() && !(self.task.status.is_terminal() && self.fetch.is_some());
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
                looked = running(&mut self.look) => {
                    self.look = None;
                    driver.show_outage(looked.as_ref().err()).await;
                    self.looked(looked)
                }
                command = driver.owner.command() => match command {
                    Command::Cancel(tell) => {
                        self.cancels.push(tell);
                        self.begin_cancel();
                        driver.view.cancelling = true;
                        driver.show().await;
                        None
                    }
                    Command::Leave => Some(Err(Unsettled::Left)),
                    Command::Show => {
                        driver.show().await;
                        None
                    }
                },
                Some(told) = driver.told.recv() => {
                    match told {
                        // A task that has ended waits for no answer.
                        Told::Undelivered(_) if self.task.status.is_terminal() => None,
                        Told::Undelivered(why) => Some(Err(Unsettled::Undelivered {
                            task: self.task.id.clone(),
                            why: *why,
                        })),
                        Told::Status(mut sight) => {
                            self.pace.heard(Instant::now(), sight.task.poll_interval_ms);
                            // Some servers notify of another TTL than they grant. The answers to our requests count.
                            sight.task.ttl_ms = self.task.ttl_ms;
                            self.learn(*sight)
                        }
                        progress => {
                            driver.hear_progress(progress).await;
                            None
                        }
                    }
                }
                () = tokio::time::sleep_until(look_at), if looks => {
                    self.look = Some(self.looking());
                    None
                }
                () = sleep_until(self.refetch_at) => {
                    self.fetch = None;
                    self.react();
                    None
                }
                () = sleep_until(warn_at) => {
                    self.warned = true;
                    driver.view.expiring = true;
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
    fn learn(&mut self, sight: Sight) -> Option<Ended> {
        let was_terminal = self.task.status.is_terminal();
        if sight.task.id != self.task.id || was_terminal && !sight.task.status.is_terminal() {
            return None;
        }
        if !was_terminal {
            let before = std::mem::replace(&mut self.task, sight.task);
            self.keep_newer_message(before);
        }
        match (sight.brings, self.task.status) {
            (Brings::Elsewhere, _) => {
                self.react();
                None
            }
            (Brings::Result(result), Status::Completed) => {
                Some(match modern::check_complete(&result) {
                    Ok(()) => Ok(of_result(result)),
                    // A2-26.
                    Err(fault) => Err(self.lost(fault)),
                })
            }
            (Brings::Error(error), Status::Failed) => Some(match PeerError::read(error.borrow()) {
                Some(error) => Ok(of_error(error)),
                None => Err(self.lost(Fault::Malformed("its error is none".into()))),
            }),
            (Brings::Asks(asks), Status::InputRequired) => match self.inputs.outstanding(asks) {
                Ok(()) => {
                    self.begin_update();
                    None
                }
                Err(why) => Some(Err(self.lost(Fault::Malformed(why.to_string())))),
            },
            (_, Status::Working) => {
                // Nothing is outstanding, so nothing is wrong with it.
                let _ = self.inputs.outstanding(Vec::new());
                None
            }
            // Told in brief: a look shows the rest.
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
                self.refetch_at = Some(Instant::now() + EARLY_RESULT);
            }
        } else if wanted {
            let patience = if self.task.status.is_terminal() {
                self.core.options.request
            } else {
                self.core.options.result
            };
            self.early = !self.task.status.is_terminal();
            self.refetch_at = None;
            let (core, id) = (self.core.clone(), self.task.id.clone());
            self.fetch = Some(Box::pin(async move {
                let up = core.up().await?;
                legacy::fetch(&up, &id, patience).await
            }));
        }
    }

    fn looking(&self) -> Work<Sight> {
        let (core, id) = (self.core.clone(), self.task.id.clone());
        Box::pin(async move {
            let up = core.up().await?;
            up.look(&id, core.options.request).await
        })
    }

    fn looked(&mut self, looked: Result<Sight, Fault>) -> Option<Ended> {
        let fault = match looked {
            Ok(sight) => {
                let told = sight.task.poll_interval_ms;
                self.pace.looked(habit(&sight), Instant::now(), told);
                let incomplete = matches!(
                    (&sight.brings, sight.task.status),
                    (Brings::Nothing, Status::Completed | Status::Failed)
                );
                let ended = self.learn(sight);
                if !incomplete || ended.is_some() {
                    return ended;
                }
                self.unfetched += 1;
                let why = Fault::Malformed("its task ended without its outcome".into());
                return (self.unfetched > REFUSALS).then(|| Err(self.lost(why)));
            }
            Err(fault) => fault,
        };
        self.back_off(&fault);
        self.given_up(fault, self.pace.failures())
    }

    /// Plans the next look after a failure.
    fn back_off(&mut self, fault: &Fault) {
        let now = Instant::now();
        match fault.retry_after() {
            Some(pause) => self.pace.sent_away(now, pause),
            None => self.pace.failed(now),
        }
    }

    /// How the observation ends after so many failures in a row, the last of them with `fault`; `None` if it goes on. What
    /// may pass ends it only when the server may have forgotten the task, or when there is no way back to the server.
    fn given_up(&self, fault: Fault, failures: u32) -> Option<Ended> {
        let expired = self.is_expired(Instant::now());
        if expired && fault.code() == Some(codes::INVALID_PARAMS) {
            return Some(Err(Unsettled::Expired(self.task.id.clone())));
        }
        let is_over = if fault.is_passing() {
            expired || matches!(fault, Fault::Link(_)) && self.core.is_over()
        } else if matches!(fault, Fault::Link(_)) {
            // It would be as large the next time.
            true
        } else {
            // A1-15.
            failures > REFUSALS
        };
        is_over.then(|| Err(self.lost(fault)))
    }

    fn fetched(&mut self, fetched: Result<Raw, Fault>) -> Option<Ended> {
        let fault = match fetched {
            // Says nothing: what it means is seen at the next look (A1-1).
            Ok(result) if is_hollow(&result) && !self.task.status.is_terminal() => return None,
            // The failure is all there is.
            Ok(result) if is_hollow(&result) && self.task.status == Status::Failed => {
                return Some(Ok(self.failed()));
            }
            Ok(result) => return Some(Ok(of_result(result))),
            Err(fault) => fault,
        };
        if !self.task.status.is_terminal() {
            // A1-3: some servers refuse instead of waiting; or the task has failed with this very error. The next
            // look tells.
            let over = matches!(fault, Fault::Link(_)) && self.core.is_over();
            return over.then(|| Err(self.lost(fault)));
        }
        if self.early {
            // A1-3: it ended while the refusal was on its way.
            self.react();
            return None;
        }
        if let Fault::Error(error) = &fault
            && error.refused.is_none()
        {
            let expired = error.code == codes::INVALID_PARAMS && self.is_expired(Instant::now());
            let is_failed = self.task.status == Status::Failed;
            return Some(if expired {
                Err(Unsettled::Expired(self.task.id.clone()))
            } else if is_failed && has_no_result(error, &self.task) {
                // The error is about the fetch: the task has failed, and its server stored no result.
                Ok(self.failed())
            } else {
                // V1-RES-4: that is the outcome.
                Ok(of_error(error.clone()))
            });
        }
        // The next look is followed by another attempt.
        self.unfetched += 1;
        self.back_off(&fault);
        self.given_up(fault, self.unfetched)
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
            let up = core.up().await?;
            up.cancel(&id, core.options.request).await
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
            let up = core.up().await?;
            up.update(&id, &answers, core.options.request).await?;
            Ok(answers)
        }));
    }

    fn updated(&mut self, updated: Result<Vec<Answer>, Fault>) -> Option<Ended> {
        match updated {
            Ok(answers) => {
                self.unheard = 0;
                self.inputs.delivered(&answers);
                self.begin_update();
                None
            }
            // A2-4: it may be over. The next look shows it, or asks again, and then the answers are sent again.
            Err(fault) => {
                self.unheard += 1;
                if fault.retry_after().is_some() {
                    self.back_off(&fault);
                }
                self.given_up(fault, self.unheard)
            }
        }
    }

    /// A question was refused, and there is no way to say so: the task is cancelled (A2-19).
    fn refuse(&mut self, refused: Refused) {
        let (Refused::Unfit(why) | Refused::Denied(why)) = &refused;
        tracing::info!(
            code = why.code,
            task = self.task.id,
            "a question was refused; the task is cancelled"
        );
        self.refused = Some(refused);
        self.begin_cancel();
    }

    fn cancelled(&mut self, cancelled: Result<Option<PeerTask>, Fault>) -> Option<Ended> {
        let refusal = self.refused.as_ref().map(|refused| match refused {
            // The caller hears why: it has cancelled nothing.
            Refused::Unfit(why) => of_error(why.clone()),
            Refused::Denied(_) => Outcome::Cancelled,
        });
        let ended = refusal.map(|refusal| match &cancelled {
            // V2-CANCEL-6: nobody wants to know what became of it.
            Ok(_) => Ok(refusal),
            // It was over already, or is not there any more.
            Err(fault) if fault.code() == Some(codes::INVALID_PARAMS) => Ok(refusal),
            Err(fault) => Err(self.lost(fault.clone())),
        });
        let told = match cancelled {
            Ok(None) => Ok(()),
            Ok(Some(task)) => {
                let told = match task.status {
                    // Some servers answer so for a task that was over (A1-14).
                    Status::Completed | Status::Failed => Err(NotCancelled::Finished),
                    _ => Ok(()),
                };
                self.learn(Sight::plain(task));
                told
            }
            Err(Fault::Unsupported(_)) => Err(NotCancelled::Unsupported),
            Err(fault) if fault.code() == Some(codes::INVALID_PARAMS) => {
                Err(NotCancelled::Finished)
            }
            Err(fault) => Err(NotCancelled::Fault(fault)),
        };
        self.tell_cancels(&told);
        ended
    }

    /// Tells those who wait for the cancellation what became of it.
    fn tell_cancels(&mut self, told: &Result<(), NotCancelled>) {
        for tell in self.cancels.drain(..) {
            let _ = tell.send(told.clone());
        }
    }

    fn lost(&self, why: Fault) -> Unsettled {
        Unsettled::Lost {
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
        let before = (ttl / 5).min(WARNING);
        let warn = self.expires()?.checked_sub(before)?;
        (!self.warned && !self.task.status.is_terminal()).then_some(warn)
    }
}

/// What is usual where a task is shown like this.
fn habit(sight: &Sight) -> Habit {
    match sight.brings {
        Brings::Elsewhere => Habit::V1,
        _ => Habit::V2,
    }
}

/// The answer to what is under way; never, if nothing is.
async fn running<T>(work: &mut Option<Work<T>>) -> Result<T, Fault> {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// How many looks in a row may be refused before the task counts as lost.
const REFUSALS: u32 = 3;

/// How long a `tasks/result` from before the end of its task may take after the end.
const EARLY_RESULT: Duration = Duration::from_secs(2);

/// How long before the end of its time a task counts as expiring, at most; a fifth of its time if that is less.
const WARNING: Duration = Duration::from_secs(60);
