//! What the clients and the work of all nodes report, and its checks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};

use outlast_engine::TaskId;
use outlast_testkit::nodes::{Ending, TaskKind};
use tokio::time::Instant;

pub(crate) struct Report {
    begun: Instant,
    contents: Mutex<Contents>,
}

#[derive(Default)]
pub(crate) struct Contents {
    /// The acknowledged tasks.
    pub(crate) created: BTreeMap<TaskId, TaskKind>,
    /// The attempts of each task whose work was started.
    pub(crate) started: BTreeMap<TaskId, Vec<u32>>,
    /// The endings that clients have seen.
    pub(crate) ended: BTreeMap<TaskId, Ending>,
    pub(crate) counts: Counts,
    /// Every report with its time in microseconds.
    pub(crate) trace: Vec<(u128, String)>,
}

/// What happened in some runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) tasks: u64,
    results: u64,
    cancelled: u64,
    unknown: u64,
    repeated: u64,
    pub(crate) kills: u64,
    pub(crate) freezes: u64,
    pub(crate) cuts: u64,
    pub(crate) shutdowns: u64,
    pub(crate) restarts: u64,
    pub(crate) stalls: u64,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            contents: Mutex::default(),
        }
    }

    pub(crate) fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().expect("no test panics here")
    }

    pub(crate) fn trace(&self, what: String) {
        let at = self.begun.elapsed().as_micros();
        self.contents().trace.push((at, what));
    }

    pub(crate) fn created(&self, id: TaskId, kind: TaskKind) {
        self.trace(format!("created {id}"));
        self.contents().created.insert(id, kind);
    }

    pub(crate) fn started(&self, id: TaskId, attempt: u32) {
        self.trace(format!("started {id} attempt {attempt}"));
        self.contents().started.entry(id).or_default().push(attempt);
    }

    /// Whether a client has seen the end of a task.
    pub(crate) fn has_ended(&self, id: TaskId) -> bool {
        self.contents().ended.contains_key(&id)
    }

    /// A client has seen a task open, after it knew whether the task had ended (P2).
    pub(crate) fn seen_open(&self, id: TaskId, had_ended: bool) {
        assert!(!had_ended, "task {id} is open after its end");
    }

    /// A client has seen the end of a task, which is final (P2).
    pub(crate) fn seen_ended(&self, id: TaskId, ending: Ending) {
        self.trace(format!("ended {id} {ending:?}"));
        let mut contents = self.contents();
        let first = contents.ended.entry(id).or_insert_with(|| ending.clone());
        assert_eq!(*first, ending, "task {id} ended twice");
    }

    /// Checks a task at the end of a run. Only its last attempt may have ended it.
    pub(crate) fn check(&self, id: TaskId, kind: TaskKind, last_attempt: u32, ending: &Ending) {
        self.seen_ended(id, ending.clone());
        let mut contents = self.contents();
        let started = contents.started.get(&id).cloned().unwrap_or_default();
        let mut attempts = started.clone();
        attempts.sort_unstable();
        attempts.dedup();
        assert_eq!(attempts.len(), started.len(), "task {id}: {started:?}");
        if kind != TaskKind::Repeatable {
            // P5: at most once.
            assert!(started.len() <= 1, "task {id} ran twice: {started:?}");
        }
        if let (TaskKind::Repeatable | TaskKind::Once, Ending::Result(attempt)) = (kind, ending) {
            assert_eq!(
                *attempt,
                u64::from(last_attempt),
                "task {id}: an old attempt ended it"
            );
        }
        let counts = &mut contents.counts;
        counts.tasks += 1;
        counts.repeated += u64::from(started.len() > 1);
        match ending {
            Ending::Result(_) => counts.results += 1,
            Ending::Cancelled => counts.cancelled += 1,
            Ending::Unknown => counts.unknown += 1,
        }
    }
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        let own = [
            &mut self.tasks,
            &mut self.results,
            &mut self.cancelled,
            &mut self.unknown,
            &mut self.repeated,
            &mut self.kills,
            &mut self.freezes,
            &mut self.cuts,
            &mut self.shutdowns,
            &mut self.restarts,
            &mut self.stalls,
        ];
        let others = [
            other.tasks,
            other.results,
            other.cancelled,
            other.unknown,
            other.repeated,
            other.kills,
            other.freezes,
            other.cuts,
            other.shutdowns,
            other.restarts,
            other.stalls,
        ];
        for (own, other) in own.into_iter().zip(others) {
            *own += other;
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tasks,
            results,
            cancelled,
            unknown,
            repeated,
            kills,
            freezes,
            cuts,
            shutdowns,
            restarts,
            stalls,
        } = self;
        write!(
            f,
            "{kills} kills, {freezes} freezes, {cuts} cuts, {shutdowns} shutdowns, {restarts} restarts and \
             {stalls} stalls of the database; {tasks} acknowledged tasks: {results} results, {cancelled} \
             cancelled, {unknown} unknown, {repeated} run again; 0 lost, 0 run twice unasked"
        )
    }
}
