//! Which execution hears of what: progress by its token, status by the task's id.
//!
//! Status that comes before anybody knows the task is kept for a moment (A1-27): the notification may overtake the
//! answer that names the task.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_wire::PeerTask;
use outlast_wire::envelope::Id;
use outlast_wire::notice::Progress;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Something an execution hears.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Progress(Progress),
    Status(PeerTask),
}

/// An execution's ear.
pub(crate) type Ear = mpsc::Sender<Told>;

#[derive(Default)]
pub(crate) struct Routes(Mutex<Table>);

#[derive(Default)]
struct Table {
    tokens: HashMap<Id, Ear>,
    tasks: HashMap<String, Ear>,
    early: VecDeque<(Instant, PeerTask)>,
}

/// That an execution hears of something, until this is dropped.
pub(crate) struct Route {
    routes: Arc<Routes>,
    of: Of,
}

enum Of {
    Token(Id),
    Task(String),
}

impl Routes {
    /// Lets `ear` hear the progress under a token (V1-PROG-3).
    pub(crate) fn hear_progress(self: &Arc<Self>, token: Id, ear: Ear) -> Route {
        self.table().tokens.insert(token.clone(), ear);
        Route {
            routes: self.clone(),
            of: Of::Token(token),
        }
    }

    /// Lets `ear` hear the status of a task, beginning with what came early. Fails if somebody hears of it already.
    pub(crate) fn hear_task(self: &Arc<Self>, task: &str, ear: Ear) -> Option<Route> {
        let mut table = self.table();
        if table.tasks.contains_key(task) {
            return None;
        }
        table.early.retain(|(_, early)| {
            if early.id == task {
                let _ = ear.try_send(Told::Status(early.clone()));
            }
            early.id != task
        });
        table.tasks.insert(task.to_owned(), ear);
        Some(Route {
            routes: self.clone(),
            of: Of::Task(task.to_owned()),
        })
    }

    /// Passes on progress. Under a token that nobody uses, or uses any more, it is ignored (A1-21).
    pub(crate) fn progress(&self, progress: Progress) {
        if let Some(ear) = self.table().tokens.get(&progress.token) {
            // An ear that is full hears of later progress.
            let _ = ear.try_send(Told::Progress(progress));
        }
    }

    /// Passes on a status, or keeps it for a moment.
    pub(crate) fn status(&self, task: PeerTask) {
        let mut table = self.table();
        if let Some(ear) = table.tasks.get(&task.id) {
            // An ear that is full belongs to one who polls anyway.
            let _ = ear.try_send(Told::Status(task));
            return;
        }
        let now = Instant::now();
        let oldest = |early: &VecDeque<(Instant, PeerTask)>| {
            let stale = |(at, _): &(Instant, PeerTask)| now.duration_since(*at) > EARLY_TIME;
            early.len() >= EARLY || early.front().is_some_and(stale)
        };
        while oldest(&table.early) {
            table.early.pop_front();
        }
        table.early.push_back((now, task));
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Every critical section is a few map operations.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        let mut table = self.routes.table();
        match &self.of {
            Of::Token(token) => table.tokens.remove(token),
            Of::Task(task) => table.tasks.remove(task),
        };
    }
}

/// How much an execution may be behind.
pub(crate) const LAG: usize = 64;

/// How many notifications of unknown tasks are kept, and how long.
const EARLY: usize = 256;
const EARLY_TIME: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_wire::Status;

    fn task(id: &str, status: Status) -> PeerTask {
        PeerTask {
            id: id.into(),
            status,
            message: None,
            created: None,
            updated: None,
            ttl_ms: None,
            poll_interval_ms: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_early_is_heard_once_and_only_for_a_while() {
        // A1-27.
        let routes = Arc::new(Routes::default());
        routes.status(task("late", Status::Working));
        tokio::time::advance(EARLY_TIME + Duration::from_secs(1)).await;
        routes.status(task("a", Status::Completed));
        routes.status(task("b", Status::Working));
        let (ear, mut heard) = mpsc::channel(LAG);
        let route = routes.hear_task("a", ear.clone()).unwrap();
        assert!(matches!(heard.try_recv(), Ok(Told::Status(task)) if task.id == "a"));
        assert!(routes.hear_task("a", ear.clone()).is_none());
        drop(route);
        let _again = routes.hear_task("a", ear.clone()).unwrap();
        let _late = routes.hear_task("late", ear).unwrap();
        assert!(heard.try_recv().is_err());
        for n in 0..1_000 {
            routes.status(task(&format!("x{n}"), Status::Working));
        }
        assert!(routes.table().early.len() <= EARLY);
    }
}
