//! The task manager for host programs, without a connection (seed 000).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::client::{
    NewManagedTask, ReceiverTtl, TASK_CANCELLED, TASK_EXPIRED, TaskManager, TaskManagerOptions,
    WaitingStatus,
};
use outlast::wire::ErrorObject;
use outlast::wire::{PeerTask, Raw, Status};
use outlast_testkit::{eventually, within};
use serde_json::json;

async fn manager() -> TaskManager {
    TaskManager::open(TaskManagerOptions::default())
        .await
        .unwrap()
}

async fn create(manager: &TaskManager) -> PeerTask {
    let new = NewManagedTask::new("sampling/createMessage");
    manager
        .create(new.with_ttl(Duration::from_secs(60)))
        .await
        .unwrap()
}

fn raw(value: serde_json::Value) -> Raw {
    Raw::from(&value)
}

#[tokio::test]
async fn a_managed_task_moves_through_its_statuses() {
    // S0-20, S0-50, S0-98, S0-104.
    let manager = manager().await;
    let task = create(&manager).await;
    assert_eq!((task.status, task.ttl_ms), (Status::Working, Some(60_000)));
    let message = Some("Awaiting user approval");
    let update = manager.update_status(&task.id, WaitingStatus::InputRequired, message);
    update.await.unwrap();
    let waiting = manager.task(&task.id).await.unwrap();
    assert_eq!(waiting.status, Status::InputRequired);
    assert_eq!(waiting.message.as_deref(), message);
    let update = manager.update_status(&task.id, WaitingStatus::Working, None);
    update.await.unwrap();
    let working = manager.task(&task.id).await.unwrap();
    assert_eq!(working.status, Status::Working);
    let listed = manager.list(None).await.unwrap();
    assert_eq!((listed.tasks, listed.next_cursor), (vec![working], None));
    let ended = manager.set_result(&task.id, raw(json!({ "a": 1 }))).await;
    assert_eq!(ended.unwrap().status, Status::Completed);
    let again = manager.update_status(&task.id, WaitingStatus::Working, None);
    let refused = again.await.unwrap_err();
    assert_eq!(
        refused.message,
        "Cannot transition from terminal status 'completed'"
    );
    manager.cleanup(&task.id).await.unwrap();
    assert_eq!(manager.task(&task.id).await.unwrap_err().code, -32602);
}

#[tokio::test]
async fn an_update_of_an_unknown_task_is_ignored() {
    // S0-49.
    let manager = manager().await;
    let known = create(&manager).await.id;
    manager.cleanup(&known).await.unwrap();
    for unknown in [known.as_str(), "nonsense"] {
        let update = manager.update_status(unknown, WaitingStatus::Working, Some("x"));
        update.await.unwrap();
        let refused = manager.result(unknown).await.unwrap_err();
        assert_eq!(
            (refused.code, &*refused.message),
            (-32602, "Task not found")
        );
    }
}

#[tokio::test]
async fn a_result_wakes_every_waiter_and_only_one_end_wins() {
    // S0-52, S0-56, S0-57, S0-88, S0-108.
    let manager = manager().await;
    let task = create(&manager).await.id;
    let waiter = tokio::spawn({
        let (manager, task) = (manager.clone(), task.clone());
        async move { manager.result(&task).await }
    });
    let error = ErrorObject::new(-1, "no");
    let ended = tokio::join!(
        manager.set_result(&task, raw(json!({ "a": 1 }))),
        manager.set_error(&task, &error),
        manager.cancel(&task),
    );
    let won = [ended.0.is_ok(), ended.1.is_ok(), ended.2.is_ok()];
    assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
    let outcome = within("the outcome", waiter).await.unwrap();
    assert_eq!(outcome, manager.result(&task).await);
    assert_eq!(outcome.is_ok(), won[0]);
}

#[tokio::test]
async fn an_error_is_the_outcome_of_a_failed_task() {
    // S0-53.
    let manager = manager().await;
    let task = create(&manager).await.id;
    let error = ErrorObject::new(-1, "User declined sampling request");
    let failed = manager.set_error(&task, &error).await.unwrap();
    assert_eq!(failed.status, Status::Failed);
    assert_eq!(failed.message.as_deref(), Some(error.message.as_str()));
    assert_eq!(manager.result(&task).await.unwrap_err(), error);
    let again = manager.set_error(&task, &error).await.unwrap_err();
    assert_eq!(
        (again.code, again.message.as_str()),
        (-32602, "Cannot transition from terminal status 'failed'")
    );
}

#[tokio::test]
async fn cancel_fires_the_abort_signal_of_the_task() {
    // S0-61, S0-62, S0-65, S0-89, S0-90.
    let manager = manager().await;
    let task = create(&manager).await.id;
    let mut signal = manager.abort_signal(&task).expect("the task is open");
    assert_eq!(signal.reason(), None);
    let cancelled = manager.cancel(&task).await.unwrap();
    assert_eq!(cancelled.status, Status::Cancelled);
    assert_eq!(
        cancelled.message.as_deref(),
        Some("Task cancelled by server")
    );
    assert_eq!(within("the abort", signal.aborted()).await, TASK_CANCELLED);
    let refused = manager.cancel(&task).await.unwrap_err();
    assert_eq!(
        refused.message,
        "Cannot cancel task: already in terminal status 'cancelled'"
    );
    eventually("the signal is removed", async || {
        manager.abort_signal(&task).is_none()
    })
    .await;
}

#[tokio::test]
async fn the_end_of_the_ttl_fires_the_abort_signal() {
    // S0-48, S0-66, S1-25: the TTL is read when the task is created.
    let options = TaskManagerOptions::default()
        .with_ttl(ReceiverTtl::Chosen(Arc::new(|| Duration::from_millis(50))));
    let manager = TaskManager::open(options).await.unwrap();
    let task = manager
        .create(NewManagedTask::new("elicitation/create"))
        .await;
    let task = task.unwrap();
    assert_eq!(task.ttl_ms, Some(50));
    if let Some(mut signal) = manager.abort_signal(&task.id) {
        assert_eq!(within("the abort", signal.aborted()).await, TASK_EXPIRED);
    }
    let refused = within("the end", manager.result(&task.id))
        .await
        .unwrap_err();
    assert_eq!(refused.code, -32602);
}

#[tokio::test]
async fn a_failing_sink_changes_no_task() {
    // S0-69, S1-33, S1-34: errors and panics of the sink are logged.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let seen = seen.clone();
        move |task: &PeerTask| {
            seen.lock().unwrap().push(task.status);
            assert_ne!(task.status, Status::Completed, "on purpose");
            Err("the connection is closed".into())
        }
    };
    let options = TaskManagerOptions::default().with_sink(sink);
    let manager = TaskManager::open(options).await.unwrap();
    let task = create(&manager).await.id;
    let update = manager.update_status(&task, WaitingStatus::InputRequired, None);
    update.await.unwrap();
    let ended = manager.set_result(&task, raw(json!({}))).await.unwrap();
    assert_eq!(ended.status, Status::Completed);
    eventually("the sink gets the end", async || {
        seen.lock().unwrap().last() == Some(&Status::Completed)
    })
    .await;
    assert_eq!(seen.lock().unwrap().first(), Some(&Status::InputRequired));
    assert_eq!(manager.task(&task).await.unwrap(), ended);
}

#[tokio::test]
async fn the_number_of_open_tasks_is_bounded() {
    let options = TaskManagerOptions::default().with_max_open_tasks(1);
    let manager = TaskManager::open(options).await.unwrap();
    let task = create(&manager).await.id;
    let refused = manager
        .create(NewManagedTask::new("elicitation/create"))
        .await;
    assert_eq!(refused.unwrap_err().code, -32603);
    manager.cancel(&task).await.unwrap();
    create(&manager).await;
}
