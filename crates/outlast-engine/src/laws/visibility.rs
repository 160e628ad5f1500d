//! Visibility: a write is visible immediately, in order, and unchanged.

use std::sync::Arc;

use crate::id::InputKey;
use crate::input::{InputKind, InputKinds};
use crate::laws::fixtures::*;
use crate::origin::{Origin, RetryClass};
use crate::outcome::{ErrorCode, Outcome};
use crate::owner::Owner;
use crate::store::{Store, TaskSummary, Usage};
use crate::task::{Lifetime, NewTask, ResumeState, Task, TtlPolicy};
use crate::transition::Command;

/// A task is found, loaded, listed and counted as soon as `insert` has returned (P1).
pub async fn created_task_is_visible_at_once(store: &Arc<dyn Store>) {
    let given = task(1);
    let reply = stored(store, given.clone()).await;
    assert_eq!(*reply, given);
    assert_eq!(open_snapshot(store, given.id).await, reply);
    assert_eq!(loaded(store, given.id).await, Some(reply));
    assert_eq!(listed(store, &ada(), 10).await, [given.id]);
    let used = store.usage(&ada()).await.expect("the store is open");
    let one = Usage {
        owner_open: 1,
        owner_retained: 1,
        open: 1,
        retained: 1,
    };
    assert_eq!(used, one);
}

/// A task that was never stored is not found.
pub async fn unknown_task_is_not_found(store: &Arc<dyn Store>) {
    stored(store, task(1)).await;
    assert_eq!(snapshot(store, id(2)).await, None);
    assert_eq!(loaded(store, id(2)).await, None);
    assert_eq!(body(store, id(2)).await, None);
}

/// Each write of a caller is visible before the next starts.
pub async fn writes_in_sequence_are_all_visible(store: &Arc<dyn Store>) {
    let mut task = stored(store, task(1)).await;
    for n in 0..100 {
        task = changed(store, &task, status(&task, &format!("page {n}"))).await;
        assert_eq!(open_snapshot(store, task.id).await, task);
    }
    assert_eq!(task.revision.0, 101);
}

/// The snapshot of an open task contains all of it.
pub async fn snapshot_of_an_open_task_is_complete(store: &Arc<dyn Store>) {
    let task = everything(store).await;
    assert_eq!(open_snapshot(store, task.id).await, task);
    assert_eq!(loaded(store, task.id).await, Some(task));
}

/// The snapshot of an ended task is [`TaskSummary::of`], and the whole task can still be loaded.
pub async fn snapshot_of_an_ended_task_is_a_summary(store: &Arc<dyn Store>) {
    let outcomes = [
        result(r#"{"content":[]}"#),
        Outcome::ToolError(raw(r#"{"isError":true}"#), Some("no paper".into())),
        Outcome::error(ErrorCode(-32_603), "no ink"),
        Outcome::error(ErrorCode(i64::MIN), "a code from the edge"),
        Outcome::Cancelled,
    ];
    for (n, outcome) in outcomes.into_iter().enumerate() {
        let task = stored(store, task(n as u64)).await;
        let reply = ended(store, &task, outcome).await;
        let summary = TaskSummary::of(&reply).expect("it has ended");
        assert_eq!(*ended_snapshot(store, task.id).await, summary);
        assert_eq!(loaded(store, task.id).await, Some(reply));
    }
}

/// The whole history of a task can be loaded after its end.
pub async fn history_survives_the_end(store: &Arc<dyn Store>) {
    let task = everything(store).await;
    let reply = ended(store, &task, result("1")).await;
    assert_eq!(loaded(store, task.id).await, Some(reply.clone()));
    assert!(reply.timeline.entries.len() > 5);
    assert_eq!(reply.input.keys.len(), 2);
}

/// Text is stored unchanged: quotes, line breaks, other scripts, characters outside the basic
/// multilingual plane.
pub async fn unusual_texts_survive(store: &Arc<dyn Store>) {
    for (n, text) in ODD.iter().enumerate() {
        let owner = Owner::principal(*text);
        let new = NewTask {
            owner: owner.clone(),
            origin: Arc::new(Origin {
                tool: Some((*text).into()),
                runner: (*text).into(),
                ..origin()
            }),
            request_key: Some((*text).into()),
            ..new_task(n as u64)
        };
        let task = stored(store, Task::new(new, CREATED)).await;
        let task = changed(store, &task, request_input(&task, text)).await;
        let task = changed(store, &task, status(&task, &format!("said {text}"))).await;
        assert_eq!(loaded(store, task.id).await, Some(task.clone()));
        assert_eq!(listed(store, &owner, 10).await, [task.id], "{text:?}");

        let outcome = Outcome::ToolError(raw(r#""\u0000 \" 🦀""#), Some((*text).into()));
        let task = ended(store, &task, outcome).await;
        let found = snapshot(store, task.id).await.expect("it is found");
        assert_eq!(found.message(), Some(*text));
        assert_eq!(loaded(store, task.id).await, Some(task.clone()));
        assert_eq!(body(store, task.id).await, Some(raw(r#""\u0000 \" 🦀""#)));
    }
}

/// A task in which no field is empty.
async fn everything(store: &Arc<dyn Store>) -> Arc<Task> {
    let new = NewTask {
        origin: Arc::new(Origin {
            progress_token: Some(raw(r#""p-1""#)),
            retry: RetryClass::Rerun,
            accepts: [InputKind::Sample, InputKind::Roots].into_iter().collect(),
            ..origin()
        }),
        request_key: Some("r-1".into()),
        lifetime: Lifetime::new(TTL_MS, TtlPolicy::KeepLive, Some(30_000)),
        poll_interval_ms: 250,
        ..new_task(1)
    };
    assert_ne!(new.origin.accepts, InputKinds::all());
    let task = stored(store, Task::new(new, CREATED)).await;
    let task = changed(store, &task, request_input(&task, "first")).await;
    let task = changed(store, &task, provide_input("first")).await;
    let task = changed(store, &task, take_over(NODE_B)).await;
    let task = changed(store, &task, request_input(&task, "second")).await;
    let attach = Command::SaveResumeState {
        attempt: task.attempt,
        state: ResumeState(Arc::from([0, 159, 146, 150, 255])),
    };
    let task = changed(store, &task, attach).await;
    let task = changed(store, &task, status(&task, "drawing")).await;
    let deadline = task.updated.plus(5_000);
    let task = changed(store, &task, Command::RequestCancel { deadline }).await;
    let task = changed(store, &task, Command::Extend { ttl: 2 * TTL_MS }).await;
    assert!(task.outstanding().is_some() && !task.input.responses.is_empty());
    assert!(task.input.responses.contains_key(&InputKey::new("first")));
    assert!(task.lifetime.waited_ms > 0 && task.lifetime.waiting_since.is_some());
    task
}

const ODD: [&str; 8] = [
    "a\nb\r\nc\td",
    r#"it's "quoted" \ and -- commented; DROP TABLE task"#,
    "%_*?[a]",
    "Grüße aus Zürich",
    "日本語のテキスト",
    "👩‍👩‍👧‍👦 🦀",
    " leading and trailing ",
    "\u{feff}\u{202e}gnp.exe",
];
