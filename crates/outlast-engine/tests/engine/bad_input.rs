//! Invalid input gets a typed error and changes nothing.

use outlast_engine::engine::EngineError;
use outlast_engine::store::Usage;
use outlast_engine::{Ending, ErrorCode, Owner, Policy, Scope, TaskId};

use crate::harness::{Harness, accept, ada, advance_clock, call, open_keys, owner, raw};

#[tokio::test(start_paused = true)]
async fn an_unknown_id_is_not_found() {
    let harness = Harness::new().await;
    let id = TaskId::from_bits(7);
    assert_eq!(
        harness.engine.get(&ada(), id).await.map(drop),
        Err(EngineError::NotFound)
    );
    assert_eq!(
        harness.engine.load(&ada(), id).await.map(drop),
        Err(EngineError::NotFound)
    );
    assert_eq!(
        harness.engine.wait(&ada(), id).await,
        Err(EngineError::NotFound)
    );
    assert_eq!(
        harness.engine.cancel_now(&ada(), id).await.map(drop),
        Err(EngineError::NotFound)
    );
    assert_eq!(
        harness.engine.request_cancel(&ada(), id).await,
        Err(EngineError::NotFound)
    );
    assert_eq!(
        harness
            .engine
            .provide_input(&ada(), id, Default::default())
            .await,
        Err(EngineError::NotFound)
    );
    assert!(harness.engine.watch(&ada(), id).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn foreign_and_unknown_tasks_get_the_same_error() {
    let harness = Harness::new().await;
    let id = harness.create("ask").await.id;
    advance_clock(10).await;
    let keys = open_keys(&harness.engine.load(&ada(), id).await.unwrap());
    let eve = Scope::OwnedBy(Owner::principal("eve"));
    // V1-SEC-2.
    assert_eq!(
        harness.engine.get(&eve, id).await.map(drop),
        Err(EngineError::NotFound)
    );
    assert_eq!(
        harness.engine.wait(&eve, id).await,
        Err(EngineError::NotFound)
    );
    assert_eq!(
        harness.engine.cancel_now(&eve, id).await.map(drop),
        Err(EngineError::NotFound)
    );
    assert_eq!(
        harness
            .engine
            .provide_input(&eve, id, accept(&keys[0]))
            .await,
        Err(EngineError::NotFound)
    );
    assert!(
        harness
            .engine
            .page(&Owner::principal("eve"), None, 10)
            .await
            .unwrap()
            .tasks
            .is_empty()
    );
    assert_eq!(
        open_keys(&harness.engine.load(&ada(), id).await.unwrap()),
        keys
    );
}

#[tokio::test(start_paused = true)]
async fn bad_cursors_are_refused() {
    let harness = Harness::new().await;
    for cursor in [
        "",
        "x",
        "0123456789abcdef01234567",
        "é",
        "00000000000000010000000g",
    ] {
        let refused = harness
            .engine
            .page(&owner(), Some(cursor), 10)
            .await
            .map(drop);
        assert_eq!(refused, Err(EngineError::BadCursor), "{cursor}");
    }
}

#[tokio::test(start_paused = true)]
async fn oversize_requests_are_refused_and_not_stored() {
    let harness = Harness::with(small_limits()).await;
    let mut large = call("echo");
    large.origin.params = Some(raw(&format!("\"{}\"", "x".repeat(2_000))));
    let refused = harness.engine.create(large).await.map(drop);
    assert!(
        matches!(refused, Err(EngineError::TooLarge { limit: 1_000, .. })),
        "{refused:?}"
    );
    let mut large = call("echo");
    large.request_key = Some("k".repeat(100_000).into());
    assert!(matches!(
        harness.engine.create(large).await,
        Err(EngineError::TooLarge { .. })
    ));
    let mut large = call("echo");
    large.owner = Owner::principal("o".repeat(100_000));
    assert!(matches!(
        harness.engine.create(large).await,
        Err(EngineError::TooLarge { .. })
    ));
    assert_eq!(harness.engine.usage(&owner()).await, Ok(Usage::default()));
}

#[tokio::test(start_paused = true)]
async fn an_oversize_input_response_leaves_its_request_open() {
    let harness = Harness::with(small_limits()).await;
    let id = harness.create("ask").await.id;
    advance_clock(10).await;
    let key = open_keys(&harness.engine.load(&ada(), id).await.unwrap()).remove(0);
    let large = outlast_engine::InputResponse::Result(raw(&format!("\"{}\"", "x".repeat(2_000))));
    let refused = harness
        .engine
        .provide_input(&ada(), id, [(key.clone(), large)].into())
        .await;
    assert!(matches!(refused, Err(EngineError::TooLarge { .. })));
    assert_eq!(
        open_keys(&harness.engine.load(&ada(), id).await.unwrap()),
        [key]
    );
}

#[tokio::test(start_paused = true)]
async fn an_oversize_result_fails_the_task_and_names_the_setting() {
    let harness = Harness::new().await;
    let id = harness.create("large").await.id;
    let settled = harness.wait(id).await;
    assert_eq!(settled.summary.ending, Ending::Error(ErrorCode(-32603)));
    let message = settled.summary.message.as_deref().unwrap();
    assert!(
        message.contains("20971522") && message.contains("sizes.payload_bytes"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_runner_is_refused() {
    let harness = Harness::new().await;
    let mut lost = call("echo");
    lost.origin.runner = "elsewhere".into();
    let refused = harness.engine.create(lost).await.map(drop);
    assert_eq!(refused, Err(EngineError::NoRunner("elsewhere".into())));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_goes_back_removes_no_task() {
    let harness = Harness::new().await;
    advance_clock(100_000).await;
    let task = harness.create("ask").await;
    harness.clock.set_back(std::time::Duration::from_secs(50));
    advance_clock(10).await;
    let waiting = harness.engine.load(&ada(), task.id).await.unwrap();
    assert!(waiting.updated >= task.updated);
    let keys = open_keys(&waiting);
    harness
        .engine
        .provide_input(&ada(), task.id, accept(&keys[0]))
        .await
        .unwrap();
    let settled = harness.wait(task.id).await;
    assert!(settled.summary.updated >= waiting.updated);
}

fn small_limits() -> Policy {
    let sizes = Policy::default().sizes.with_payload_bytes(1_000);
    Policy::default().with_sizes(sizes)
}
