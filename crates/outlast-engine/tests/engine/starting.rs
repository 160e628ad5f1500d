//! Until the store is open and recovery has completed, no request is served and no task is "not
//! found".

use std::sync::Arc;

use outlast_engine::engine::EngineError;
use outlast_engine::store::{Health, OpeningStore, Reason};
use outlast_engine::{Engine, MemoryStore, Policy, Store, StoreError};
use tokio::sync::oneshot;

use crate::harness::{CountingTools, Harness, ada, call, owner};

type OpenResult = Result<Arc<dyn Store>, StoreError>;

/// A store that is opened when the sender sends the result.
fn opening() -> (oneshot::Sender<OpenResult>, Arc<OpeningStore>) {
    let (open, opened) = oneshot::channel();
    let store = OpeningStore::new(async { opened.await.unwrap() });
    (open, Arc::new(store))
}

fn is_starting<T: std::fmt::Debug>(reply: Result<T, EngineError>) {
    match reply {
        Err(EngineError::Store(StoreError::Starting)) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn requests_during_opening_are_refused_as_starting() {
    let before = Harness::new().await;
    let id = before.create("echo").await.id;
    before.wait(id).await;
    let (open, store) = opening();
    let builder = Engine::builder(store.clone()).clock(before.clock.clone());
    let (engine, start) = builder
        .runner("tools", Arc::new(CountingTools::default()))
        .start();
    let start = tokio::spawn(start);
    is_starting(engine.get(&ada(), id).await);
    is_starting(engine.load(&ada(), id).await);
    is_starting(engine.outcome(&ada(), id).await);
    is_starting(engine.wait(&ada(), id).await);
    is_starting(engine.watch(&ada(), id).await.map(|_| ()));
    is_starting(engine.page(&owner(), None, 10).await);
    is_starting(engine.usage(&owner()).await);
    is_starting(engine.cancel_now(&ada(), id).await);
    is_starting(engine.request_cancel(&ada(), id).await);
    is_starting(engine.create(call("echo")).await);
    is_starting(engine.start(call("echo")).map(|_| ()));
    assert!(engine.check_open().is_err());
    assert!(matches!(*store.health().borrow(), Health::Down(_)));

    open.send(Ok(before.store.clone())).ok().unwrap();
    start.await.unwrap().unwrap();
    assert_eq!(engine.check_open(), Ok(()));
    assert_eq!(*store.health().borrow(), Health::Ready);
    assert!(engine.get(&ada(), id).await.is_ok());
    let created = engine.create(call("echo")).await.unwrap();
    assert!(engine.wait(&ada(), created.task().id).await.is_ok());
    // Its health is that of the opened store.
    let mut health = store.health();
    store.close().await.unwrap();
    health
        .wait_for(|health| *health == Health::Closed)
        .await
        .unwrap();
}

#[tokio::test]
async fn no_request_is_served_before_recovery_completes() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (engine, start) = Engine::builder(store).policy(Policy::default()).start();
    is_starting(engine.page(&owner(), None, 10).await);
    start.await.unwrap();
    assert!(
        engine
            .page(&owner(), None, 10)
            .await
            .unwrap()
            .tasks
            .is_empty()
    );
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_returns_the_reason() {
    let (open, store) = opening();
    let (engine, start) = Engine::builder(store.clone()).start();
    let why = StoreError::Corrupt(Reason::new("no database"));
    open.send(Err(why.clone())).ok().unwrap();
    assert_eq!(start.await, Err(EngineError::Store(why.clone())));
    assert!(engine.check_open().is_err());
    assert_eq!(store.usage(&owner()).await, Err(why));
    assert!(matches!(*store.health().borrow(), Health::Down(_)));
    assert_eq!(store.close().await, Ok(()));
}
