//! The check of everything that the nodes reported, against the database and against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use outlast_engine::store::Snapshot;
use outlast_engine::{Scope, Store, TaskId};
use outlast_store::{Postgres, PostgresUrl};
use outlast_testkit::nodes::{Call, Ending, Reply, Report, Seen, TaskKind};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};

use crate::cluster::Finished;
use crate::spec::OneTask;

/// What was checked.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) tasks: usize,
    results: usize,
    cancelled: usize,
    unknown: usize,
    repeated: usize,
    events: usize,
}

/// The history of one task.
#[derive(Default)]
struct History {
    created: Option<(u64, u64, TaskKind)>,
    /// The attempts whose work was started.
    started: Vec<u32>,
    /// Operations: when they began, what they were, and the reply with its time.
    operations: BTreeMap<(usize, u64), Operation>,
}

struct Operation {
    begun: u64,
    call: Call,
    reply: Option<(u64, Reply)>,
}

/// Checks every acknowledged task.
pub(crate) fn all(finished: &Finished) -> Counts {
    let histories = histories(finished);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be built");
    runtime.block_on(async {
        let url = PostgresUrl::new(finished.server.url("outlast"));
        let store = Postgres::open(&url).await.expect("the database runs");
        let store: Arc<dyn Store> = Arc::new(store);
        let mut counts = Counts::default();
        for (id, history) in &histories {
            if let Some((_, _, kind)) = history.created {
                check(&store, id, history, kind, &mut counts).await;
            }
        }
        counts
    })
}

fn histories(finished: &Finished) -> BTreeMap<String, History> {
    let mut histories: BTreeMap<String, History> = BTreeMap::new();
    for (process, line) in finished
        .outputs
        .iter()
        .enumerate()
        .flat_map(|(n, lines)| lines.iter().map(move |line| (n, line)))
    {
        let history = histories.entry(line.task.clone()).or_default();
        match &line.report {
            Report::Created { begun, kind } => history.created = Some((*begun, line.at, *kind)),
            Report::Started { attempt } => history.started.push(*attempt),
            Report::Invoked(number, call) => {
                let operation = Operation {
                    begun: line.at,
                    call: call.clone(),
                    reply: None,
                };
                history.operations.insert((process, *number), operation);
            }
            Report::Returned(number, reply) => {
                let operation = history.operations.get_mut(&(process, *number));
                let operation = operation.expect("an operation begins before its reply");
                operation.reply = Some((line.at, reply.clone()));
            }
        }
    }
    histories
}

async fn check(
    store: &Arc<dyn Store>,
    name: &str,
    history: &History,
    kind: TaskKind,
    counts: &mut Counts,
) {
    let id: TaskId = name.parse().expect("it is the id of a task");
    // P1: an acknowledged task is not lost. P4: no task stays open.
    let found = store
        .get(&Scope::AnyTask, id)
        .await
        .expect("the database runs");
    let found = found.unwrap_or_else(|| panic!("task {name} was acknowledged and is lost"));
    let Snapshot::Ended(summary) = found else {
        panic!("task {name} is still open: {found:?}");
    };
    let body = store
        .body(&Scope::AnyTask, id)
        .await
        .expect("the database runs");
    let ended = outlast_engine::engine::EndedTask {
        summary: summary.clone(),
        body,
    };
    let ending = Ending::of(&ended);
    // P5: work runs once, unless it may be repeated; and never twice for one attempt.
    let attempts: BTreeSet<_> = history.started.iter().collect();
    assert_eq!(
        attempts.len(),
        history.started.len(),
        "task {name}: {:?}",
        history.started
    );
    if kind != TaskKind::Repeatable {
        assert!(
            history.started.len() <= 1,
            "task {name} ran twice: {:?}",
            history.started
        );
    }
    // P2: only the last attempt can write its result.
    if let (TaskKind::Repeatable | TaskKind::Once, Ending::Result(attempt)) = (kind, &ending) {
        assert_eq!(
            *attempt,
            u64::from(summary.attempt.0),
            "task {name}: an old attempt ended it"
        );
    }
    counts.tasks += 1;
    counts.repeated += usize::from(history.started.len() > 1);
    match ending {
        Ending::Result(_) => counts.results += 1,
        Ending::Cancelled => counts.cancelled += 1,
        Ending::Unknown => counts.unknown += 1,
    }
    counts.events += linearizable(name, history, &ending);
}

/// Checks that one order of single steps explains the history (P2). Returns the number of events.
fn linearizable(name: &str, history: &History, ending: &Ending) -> usize {
    let (begun, done, _) = history.created.as_ref().expect("it was acknowledged");
    let mut events = vec![
        (*begun, 0, Event::Invoked(Call::Create)),
        (*done, 0, Event::Returned(Reply::Done)),
        // Recovery may end the task at any time.
        (*begun, 1, Event::Invoked(Call::Recover)),
    ];
    let mut last = *done;
    for (number, operation) in history.operations.values().enumerate() {
        let actor = number + 2;
        let reads = matches!(operation.call, Call::Get | Call::Wait);
        if reads && operation.reply.is_none() {
            continue;
        }
        events.push((
            operation.begun,
            actor,
            Event::Invoked(operation.call.clone()),
        ));
        last = last.max(operation.begun);
        if let Some((at, reply)) = &operation.reply {
            events.push((*at, actor, Event::Returned(reply.clone())));
            last = last.max(*at);
        }
    }
    // The state in the database, read after everything else.
    let reader = history.operations.len() + 2;
    events.push((last + 1, reader, Event::Invoked(Call::Get)));
    let seen = Seen::Ended(ending.clone());
    events.push((last + 2, reader, Event::Returned(Reply::Seen(seen))));
    events.sort_by_key(|(at, ..)| *at);
    let mut tester = LinearizabilityTester::new(OneTask::Absent);
    for (_, actor, event) in &events {
        let recorded = match event.clone() {
            Event::Invoked(call) => tester.on_invoke(*actor, call).map(drop),
            Event::Returned(reply) => tester.on_return(*actor, reply).map(drop),
        };
        recorded.unwrap_or_else(|error| panic!("task {name}: {error}"));
    }
    assert!(
        tester.is_consistent(),
        "task {name}: no order of single steps explains {events:#?}"
    );
    events.len()
}

#[derive(Clone, Debug)]
enum Event {
    Invoked(Call),
    Returned(Reply),
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tasks,
            results,
            cancelled,
            unknown,
            repeated,
            events,
        } = self;
        write!(
            f,
            "{tasks} acknowledged tasks: {results} results, {cancelled} cancelled, {unknown} unknown, \
             {repeated} run again; {events} events explained; 0 lost, 0 run twice unasked"
        )
    }
}

/// The check must detect what it is for.
mod detects {
    use super::*;

    /// A history of reads, each with the ending that it saw.
    fn history(seen: &[Seen]) -> History {
        let operations = seen.iter().enumerate().map(|(n, seen)| {
            let (begun, end) = (10 * n as u64 + 10, 10 * n as u64 + 15);
            let reply = Some((end, Reply::Seen(seen.clone())));
            (
                (0, n as u64),
                Operation {
                    begun,
                    call: Call::Get,
                    reply,
                },
            )
        });
        History {
            created: Some((0, 5, TaskKind::Once)),
            started: vec![1],
            operations: operations.collect(),
        }
    }

    #[test]
    fn recovery_explains_an_unknown_outcome() {
        let seen = [Seen::Working, Seen::Ended(Ending::Unknown)];
        assert_eq!(linearizable("t", &history(&seen), &Ending::Unknown), 9);
    }

    #[test]
    #[should_panic(expected = "no order of single steps")]
    fn a_task_that_ends_twice() {
        let seen = [Seen::Ended(Ending::Unknown)];
        linearizable("t", &history(&seen), &Ending::Cancelled);
    }

    #[test]
    #[should_panic(expected = "no order of single steps")]
    fn a_task_that_works_after_its_end() {
        let seen = [Seen::Ended(Ending::Unknown), Seen::Working];
        linearizable("t", &history(&seen), &Ending::Unknown);
    }

    #[test]
    #[should_panic(expected = "no order of single steps")]
    fn a_result_that_no_call_returned() {
        linearizable("t", &history(&[]), &Ending::Result(1));
    }
}
