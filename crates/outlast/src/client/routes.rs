//! Routes events to executions: progress by its token, status by the task id. It also finds the
//! call that an input request belongs to, by the task that it names or by the request on whose
//! stream it arrived.
//!
//! A status notification may arrive before the response that names its task, so notifications of
//! unknown tasks are kept for a while (A1-27).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use outlast_wire::envelope::Id;
use outlast_wire::notice::Progress;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use super::error::Error;
use super::task_report::TaskReport;

/// An event for an execution. Small, because the channel of every call reserves space for dozens of
/// them.
#[derive(Clone, Debug)]
pub(crate) enum CallEvent {
    Progress(Box<Progress>),
    Status(Box<TaskReport>),
    /// The server refused an input response of the task.
    InputResponseRefused(Box<Error>),
}

const _: () = assert!(size_of::<CallEvent>() <= 16);

/// Sends events to an execution.
pub(crate) type CallEventSender = mpsc::Sender<CallEvent>;

#[derive(Default)]
pub(crate) struct Routes(Mutex<Table>);

#[derive(Default)]
struct Table {
    tokens: HashMap<Id, CallEventSender>,
    /// The latest progress that did not fit into its channel.
    missed: HashMap<Id, Progress>,
    tasks: HashMap<String, (CallEventSender, Option<Arc<str>>)>,
    /// The names of requests in flight.
    requests: HashMap<Id, Arc<str>>,
    early: VecDeque<(Instant, TaskReport)>,
}

/// An entry of the routing table. Dropping it removes the entry.
pub(crate) struct Route {
    routes: Arc<Routes>,
    of: RouteKey,
}

enum RouteKey {
    Token(Id),
    Task(String),
    Request(Id),
}

impl Routes {
    /// Routes the progress of a token (V1-PROG-3).
    pub(crate) fn route_progress(
        self: &Arc<Self>,
        token: Id,
        event_sender: CallEventSender,
    ) -> Route {
        self.table().tokens.insert(token.clone(), event_sender);
        Route {
            routes: self.clone(),
            of: RouteKey::Token(token),
        }
    }

    /// Assigns input requests on the stream of this request to the named call.
    pub(crate) fn name_request(self: &Arc<Self>, request: Id, call: Arc<str>) -> Route {
        self.table().requests.insert(request.clone(), call);
        Route {
            routes: self.clone(),
            of: RouteKey::Request(request),
        }
    }

    /// The name of the call that an input request belongs to: by the task that it names, or by the
    /// request on whose stream it arrived.
    pub(crate) fn call_name(&self, task: Option<&str>, request: Option<&Id>) -> Option<Arc<str>> {
        let table = self.table();
        let by_task = task.and_then(|task| table.tasks.get(task)?.1.clone());
        by_task.or_else(|| table.requests.get(request?).cloned())
    }

    /// Routes the status of a task, starting with reports that arrived early, and assigns its input
    /// requests to the named call. `None` if the task is already routed.
    pub(crate) fn route_task(
        self: &Arc<Self>,
        task: &str,
        event_sender: CallEventSender,
        call: Option<Arc<str>>,
    ) -> Option<Route> {
        let mut table = self.table();
        if table.tasks.contains_key(task) {
            return None;
        }
        table.early.retain(|(_, early)| {
            if early.task.id == task {
                let _ = event_sender.try_send(CallEvent::Status(Box::new(early.clone())));
            }
            early.task.id != task
        });
        table.tasks.insert(task.to_owned(), (event_sender, call));
        Some(Route {
            routes: self.clone(),
            of: RouteKey::Task(task.to_owned()),
        })
    }

    /// Forwards progress. Progress with an unknown token is ignored (A1-21).
    pub(crate) fn forward_progress(&self, progress: Progress) {
        let mut table = self.table();
        let Some(event_sender) = table.tokens.get(&progress.token) else {
            return;
        };
        let token = progress.token.clone();
        match event_sender.try_send(CallEvent::Progress(Box::new(progress))) {
            Err(TrySendError::Full(CallEvent::Progress(progress))) => {
                table.missed.insert(token, *progress);
            }
            _ => drop(table.missed.remove(&token)),
        }
    }

    /// The latest progress of a token, if it did not fit into its channel.
    pub(crate) fn take_missed(&self, token: &Id) -> Option<Progress> {
        self.table().missed.remove(token)
    }

    /// Forwards a status report, or keeps it for a while.
    pub(crate) fn forward_status(&self, report: TaskReport) {
        let mut table = self.table();
        if let Some((event_sender, _)) = table.tasks.get(&report.task.id) {
            // If the channel is full, the next poll shows the status.
            let _ = event_sender.try_send(CallEvent::Status(Box::new(report)));
            return;
        }
        let now = Instant::now();
        let oldest = |early: &VecDeque<(Instant, TaskReport)>| {
            let stale =
                |(at, _): &(Instant, TaskReport)| now.duration_since(*at) > EARLY_REPORT_AGE;
            early.len() >= MAX_EARLY_REPORTS || early.front().is_some_and(stale)
        };
        while oldest(&table.early) {
            table.early.pop_front();
        }
        table.early.push_back((now, report));
    }

    /// Reports that the server refused an input response of a task.
    pub(crate) fn input_response_refused(&self, task: &str, why: Error) {
        if let Some((event_sender, _)) = self.table().tasks.get(task) {
            // If the channel is full, the next poll shows the status.
            let _ = event_sender.try_send(CallEvent::InputResponseRefused(Box::new(why)));
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        let mut table = self.routes.table();
        match &self.of {
            RouteKey::Token(token) => {
                table.missed.remove(token);
                table.tokens.remove(token);
            }
            RouteKey::Task(task) => drop(table.tasks.remove(task)),
            RouteKey::Request(request) => drop(table.requests.remove(request)),
        }
    }
}

/// How many events the channel of an execution holds.
pub(crate) const EVENT_CAPACITY: usize = 64;

/// How many reports of unknown tasks are kept, and for how long.
const MAX_EARLY_REPORTS: usize = 256;
const EARLY_REPORT_AGE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_wire::{PeerTask, Status};

    fn task(id: &str, status: Status) -> TaskReport {
        TaskReport::plain(PeerTask {
            id: id.into(),
            status,
            message: None,
            created: None,
            updated: None,
            ttl_ms: None,
            poll_interval_ms: None,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn early_reports_are_delivered_once_and_expire() {
        // A1-27.
        let routes = Arc::new(Routes::default());
        routes.forward_status(task("late", Status::Working));
        tokio::time::advance(EARLY_REPORT_AGE + Duration::from_secs(1)).await;
        routes.forward_status(task("a", Status::Completed));
        routes.forward_status(task("b", Status::Working));
        let (event_sender, mut events) = mpsc::channel(EVENT_CAPACITY);
        let route = routes
            .route_task("a", event_sender.clone(), Some("one".into()))
            .unwrap();
        assert_eq!(routes.call_name(Some("a"), None).as_deref(), Some("one"));
        assert!(
            matches!(events.try_recv(), Ok(CallEvent::Status(report)) if report.task.id == "a")
        );
        assert!(routes.route_task("a", event_sender.clone(), None).is_none());
        drop(route);
        let _again = routes.route_task("a", event_sender.clone(), None).unwrap();
        let _late = routes.route_task("late", event_sender, None).unwrap();
        assert!(events.try_recv().is_err());
        for n in 0..1_000 {
            routes.forward_status(task(&format!("x{n}"), Status::Working));
        }
        assert!(routes.table().early.len() <= MAX_EARLY_REPORTS);
    }
}
