//! Records that are stored with each change of a status.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_engine::engine::{Promotion, StatusRecorder};
use outlast_engine::store::{Record, RecordKey, RecordWrite, Status};
use outlast_engine::{Engine, MemoryStore, Store, Task, TaskId};
use outlast_testkit::eventually;

use crate::harness::{CountingTools, accept, ada, call, open_keys};

/// Records each status of a task under its revision.
#[derive(Default)]
struct Statuses {
    notified: AtomicUsize,
}

impl StatusRecorder for Statuses {
    fn records(&self, task: &Task) -> Vec<RecordWrite> {
        let key = format!("{}/{:04}", task.id, task.revision.0);
        vec![RecordWrite::Put(Record {
            key: RecordKey::new("status", key),
            owner: None,
            expires: None,
            bytes: Status::of_task(task).word().as_bytes().into(),
        })]
    }

    fn stored(&self) {
        self.notified.fetch_add(1, Ordering::SeqCst);
    }
}

/// An engine on `store` with a recorder.
async fn open(store: &Arc<dyn Store>) -> (Engine, Arc<Statuses>) {
    let recorder = Arc::new(Statuses::default());
    let tools: Arc<CountingTools> = Arc::default();
    let builder = Engine::builder(store.clone()).runner("tools", tools);
    let (engine, _) = builder
        .status_recorder(recorder.clone())
        .open()
        .await
        .unwrap();
    (engine, recorder)
}

/// The recorded statuses of a task, in their order.
async fn recorded(engine: &Engine, id: TaskId) -> Vec<String> {
    let all = engine
        .store()
        .records("status", None, engine.now())
        .await
        .unwrap();
    let of_task = all
        .into_iter()
        .filter(|record| record.key.key.starts_with(&id.to_string()));
    of_task
        .map(|record| String::from_utf8_lossy(&record.bytes).into_owned())
        .collect()
}

#[tokio::test]
async fn each_change_of_a_status_is_recorded_once() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (engine, recorder) = open(&store).await;
    let mut first = call("ask");
    first.request_key = Some("key".into());
    let id = engine.create(first.clone()).await.unwrap().task().id;
    // The same request again creates nothing.
    engine.create(first).await.unwrap();
    eventually("it asks", async || {
        engine
            .load(&ada(), id)
            .await
            .unwrap()
            .outstanding()
            .is_some()
    })
    .await;
    let task = engine.load(&ada(), id).await.unwrap();
    let keys = open_keys(&task);
    engine
        .provide_input(&ada(), id, accept(&keys[0]))
        .await
        .unwrap();
    engine.wait(&ada(), id).await.unwrap();
    let expected = ["working", "input_required", "working", "completed"];
    assert_eq!(recorded(&engine, id).await, expected);
    assert_eq!(recorder.notified.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_call_is_recorded_from_its_promotion_on() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (engine, _) = open(&store).await;
    let plain = engine.start(call("obedient")).unwrap();
    let id = plain.id();
    assert_eq!(recorded(&engine, id).await, [""; 0]);
    let promoted = plain.promote().await.map_err(|(_, error)| error).unwrap();
    assert!(matches!(promoted, Promotion::Stored(_)));
    assert_eq!(recorded(&engine, id).await, ["working"]);
    let _ = engine.cancel_now(&ada(), id).await.unwrap();
    assert_eq!(recorded(&engine, id).await, ["working", "cancelled"]);
}

#[tokio::test]
async fn the_end_of_a_lost_task_is_recorded() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (engine, _) = open(&store).await;
    let id = engine
        .create(call("ignores_cancel"))
        .await
        .unwrap()
        .task()
        .id;
    store.leave(engine.node()).await.unwrap();
    let (second, _) = open(&store).await;
    eventually("it is ended", async || {
        recorded(&second, id).await == ["working", "failed"]
    })
    .await;
}
