//! The observation of one task, from its creation to its outcome.
//!
//! Looks follow the server's pace ([`Pace`]); a status that is terminal or asks for input is followed by `tasks/result`
//! at once, whoever told it. Only one `tasks/result` of a task is under way at a time, because some servers answer
//! only one of two.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Outcome;
use outlast_wire::{PeerTask, Raw, Status, codes};
use tokio::time::Instant;

use super::client::Core;
use super::drive::{Cancels, Driver};
use super::execution::{Command, NotCancelled, Unsettled};
use super::fault::Fault;
use super::legacy;
use super::outcome::{is_hollow, of_error, of_result};
use super::pace::Pace;
use super::routes::Told;

/// A task under observation.
pub(super) struct Observed {
    pub(super) core: Arc<Core>,
    pub(super) task: PeerTask,
    pub(super) cancels: Cancels,
    created: Instant,
    pace: Pace,
    look: Option<Work<PeerTask>>,
    fetch: Option<Work<Raw>>,
    cancel: Option<Work<PeerTask>>,
    /// How often the result of a task that has ended could not be fetched.
    unfetched: u32,
    warned: bool,
}

type Work<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

/// The end of an observation.
type Ended = Result<Outcome, Unsettled>;

impl Observed {
    pub(super) fn new(core: Arc<Core>, task: PeerTask, created: Instant, cancels: Cancels) -> Self {
        Self {
            pace: Pace::new(Instant::now(), task.poll_interval_ms),
            core,
            task,
            cancels,
            created,
            look: None,
            fetch: None,
            cancel: None,
            unfetched: 0,
            warned: false,
        }
    }

    /// The same, with a look before anything else: what is known is old.
    pub(super) fn looking_at_once(mut self) -> Self {
        self.look = Some(self.looking());
        self
    }

    /// Observes the task to its end.
    pub(super) async fn observe(&mut self, driver: &mut Driver) -> Ended {
        self.show(driver);
        if !self.cancels.is_empty() {
            self.begin_cancel();
        }
        self.react();
        loop {
            if self.task.status == Status::Cancelled {
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
                    self.cancelled(cancelled);
                    None
                }
                looked = running(&mut self.look) => {
                    self.look = None;
                    self.looked(looked)
                }
                command = driver.commands.recv() => match command {
                    Some(Command::Cancel(tell)) => {
                        driver.view.send_modify(|view| view.cancelling = true);
                        self.cancels.push(tell);
                        self.begin_cancel();
                        None
                    }
                    Some(Command::Leave) | None => Some(Err(Unsettled::Left)),
                },
                Some(told) = driver.told.recv() => {
                    match told {
                        Told::Status(task) => {
                            self.pace.heard(Instant::now(), task.poll_interval_ms);
                            self.learn(task);
                            self.react();
                        }
                        progress => driver.hear_progress(progress),
                    }
                    None
                }
                () = tokio::time::sleep_until(look_at), if looks => {
                    self.look = Some(self.looking());
                    None
                }
                () = sleep_until(warn_at) => {
                    self.warned = true;
                    driver.view.send_modify(|view| view.expiring = true);
                    None
                }
            };
            if let Some(ended) = ended {
                return ended;
            }
            self.show(driver);
        }
    }

    /// Takes what a server says of the task. What has ended stays so (V1-NOTIF-7).
    fn learn(&mut self, task: PeerTask) {
        if task.id == self.task.id && !self.task.status.is_terminal() {
            self.task = task;
        }
    }

    /// Fetches the result where that is called for: the task has ended (A1-2), or its questions may travel with the
    /// result (V1-INPUT-3, A1-4).
    fn react(&mut self) {
        let wanted = matches!(
            self.task.status,
            Status::InputRequired | Status::Completed | Status::Failed
        );
        if wanted && self.fetch.is_none() {
            let patience = match self.task.status.is_terminal() {
                true => self.core.options.request,
                false => self.core.options.result,
            };
            let (core, id) = (self.core.clone(), self.task.id.clone());
            self.fetch = Some(Box::pin(async move {
                let up = core.up().await?;
                legacy::fetch(&up.exchange, &id, patience).await
            }));
        }
    }

    fn looking(&self) -> Work<PeerTask> {
        let (core, id) = (self.core.clone(), self.task.id.clone());
        Box::pin(async move {
            let up = core.up().await?;
            legacy::look(&up.exchange, &id, core.options.request).await
        })
    }

    fn looked(&mut self, looked: Result<PeerTask, Fault>) -> Option<Ended> {
        let now = Instant::now();
        let fault = match looked {
            Ok(task) => {
                self.pace.looked(now, task.poll_interval_ms);
                self.learn(task);
                self.react();
                return None;
            }
            Err(fault) => fault,
        };
        self.pace.failed(now);
        let gone = fault.code() == Some(codes::INVALID_PARAMS);
        if gone && self.is_expired(now) {
            return Some(Err(Unsettled::Expired(self.task.id.clone())));
        }
        // A1-15: any error of a known task means that it is lost, after a few looks.
        let patience = match &fault {
            Fault::Error(_) | Fault::Malformed(_) | Fault::Unsupported(_) => REFUSALS,
            Fault::Link(_) if self.core.is_over() => 0,
            Fault::Link(_) | Fault::TimedOut(_) => OUTAGES,
        };
        (self.pace.failures() > patience).then(|| Err(self.lost(fault)))
    }

    fn fetched(&mut self, fetched: Result<Raw, Fault>) -> Option<Ended> {
        let fault = match fetched {
            // Says nothing: what it means is seen at the next look (A1-1).
            Ok(result) if is_hollow(&result) && !self.task.status.is_terminal() => return None,
            Ok(result) => return Some(Ok(of_result(result))),
            Err(fault) => fault,
        };
        if !self.task.status.is_terminal() {
            // A1-3: some servers refuse instead of waiting; or the task has failed with this very error. The next
            // look tells.
            let over = matches!(fault, Fault::Link(_)) && self.core.is_over();
            return over.then(|| Err(self.lost(fault)));
        }
        self.unfetched += 1;
        match fault {
            Fault::Error(error)
                if error.code == codes::INVALID_PARAMS && self.is_expired(Instant::now()) =>
            {
                Some(Err(Unsettled::Expired(self.task.id.clone())))
            }
            // V1-RES-4: that is the outcome.
            Fault::Error(error) => Some(Ok(of_error(error))),
            fault if self.unfetched > OUTAGES || self.core.is_over() => Some(Err(self.lost(fault))),
            // The next look is followed by another attempt.
            _ => None,
        }
    }

    fn begin_cancel(&mut self) {
        if self.cancel.is_some() {
            return;
        }
        let (core, id) = (self.core.clone(), self.task.id.clone());
        self.cancel = Some(Box::pin(async move {
            let up = core.up().await?;
            if !up.server.generation.cancels() {
                return Err(Fault::Unsupported("cancelling tasks".into()));
            }
            legacy::cancel(&up.exchange, &id, core.options.request).await
        }));
    }

    fn cancelled(&mut self, cancelled: Result<PeerTask, Fault>) {
        let told = match cancelled {
            Ok(task) => {
                let told = match task.status {
                    // Some servers answer so for a task that was over (A1-14).
                    Status::Completed | Status::Failed => Err(NotCancelled::Finished),
                    _ => Ok(()),
                };
                self.learn(task);
                self.react();
                told
            }
            Err(Fault::Unsupported(_)) => Err(NotCancelled::Unsupported),
            Err(fault) if fault.code() == Some(codes::INVALID_PARAMS) => {
                Err(NotCancelled::Finished)
            }
            Err(fault) => Err(NotCancelled::Fault(fault)),
        };
        for tell in self.cancels.drain(..) {
            let _ = tell.send(told.clone());
        }
    }

    fn show(&self, driver: &Driver) {
        driver.view.send_if_modified(|view| {
            let news = view.task.as_ref() != Some(&self.task);
            if news {
                view.task = Some(self.task.clone());
            }
            news
        });
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

/// The answer to what is under way; never, if nothing is.
async fn running<T>(work: &mut Option<Work<T>>) -> Result<T, Fault> {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// How many looks in a row may be refused before the task counts as lost.
const REFUSALS: u32 = 3;

/// How many may fail because the server cannot be reached or does not answer.
const OUTAGES: u32 = 10;

/// How long before the end of its time a task counts as expiring, at most; a fifth of its time if that is less.
const WARNING: Duration = Duration::from_secs(60);
