//! Input requests and responses.

use outlast_engine::task::State;
use outlast_engine::{Ending, InputKey, InputKinds};

use crate::harness::{Harness, accept, ada, advance_clock, call, open_keys, raw};

#[tokio::test(start_paused = true)]
async fn an_input_response_continues_the_work() {
    let harness = Harness::new().await;
    let task = harness.create("ask").await;
    advance_clock(10).await;
    let task = harness.engine.load(&ada(), task.id).await.unwrap();
    let keys = open_keys(&task);
    assert_eq!(keys.len(), 1);
    harness
        .engine
        .provide_input(&ada(), task.id, accept(&keys[0]))
        .await
        .unwrap();
    // V2-UPD-11: the key is no longer outstanding when the response is acknowledged.
    let state = harness
        .engine
        .load(&ada(), task.id)
        .await
        .unwrap()
        .state
        .clone();
    assert!(!matches!(state, State::AwaitingInput(_)));
    assert_eq!(
        harness.wait(task.id).await.body,
        Some(raw(r#"{"action":"accept"}"#))
    );
}

#[tokio::test(start_paused = true)]
async fn with_two_open_input_requests_one_response_is_not_enough() {
    let harness = Harness::new().await;
    let id = harness.create("ask-twice").await.id;
    advance_clock(10).await;
    let keys = open_keys(&harness.engine.load(&ada(), id).await.unwrap());
    assert_eq!(keys.len(), 2);
    harness
        .engine
        .provide_input(&ada(), id, accept(&keys[1]))
        .await
        .unwrap();
    advance_clock(10).await;
    // V1-INPUT-8, V2-UPD-13.
    assert_eq!(
        open_keys(&harness.engine.load(&ada(), id).await.unwrap()),
        [keys[0].clone()]
    );
    harness
        .engine
        .provide_input(&ada(), id, accept(&keys[0]))
        .await
        .unwrap();
    assert_eq!(harness.wait(id).await.body, Some(raw("\"both\"")));
}

#[tokio::test(start_paused = true)]
async fn unrequested_input_responses_are_ignored() {
    let harness = Harness::new().await;
    let id = harness.create("ask").await.id;
    advance_clock(10).await;
    harness
        .engine
        .provide_input(&ada(), id, accept(&InputKey::new("never")))
        .await
        .unwrap();
    let keys = open_keys(&harness.engine.load(&ada(), id).await.unwrap());
    assert_eq!(keys.len(), 1);
    harness
        .engine
        .provide_input(&ada(), id, accept(&keys[0]))
        .await
        .unwrap();
    harness.wait(id).await;
    // V2-UPD-12, A2-4: also after the end.
    harness
        .engine
        .provide_input(&ada(), id, accept(&keys[0]))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_used_input_response_is_not_stored() {
    let harness = Harness::new().await;
    let id = harness.create("ask-twice").await.id;
    advance_clock(10).await;
    let keys = open_keys(&harness.engine.load(&ada(), id).await.unwrap());
    harness
        .engine
        .provide_input(&ada(), id, accept(&keys[0]))
        .await
        .unwrap();
    assert!(
        harness
            .engine
            .load(&ada(), id)
            .await
            .unwrap()
            .input
            .responses
            .contains_key(&keys[0])
    );
    advance_clock(100).await;
    let task = harness.engine.load(&ada(), id).await.unwrap();
    assert_eq!((open_keys(&task).len(), task.input.responses.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_input_request_is_withdrawn() {
    let harness = Harness::new().await;
    let id = harness.create("ask-briefly").await.id;
    advance_clock(100).await;
    let keys = open_keys(&harness.engine.load(&ada(), id).await.unwrap());
    assert_eq!(keys.len(), 1);
    advance_clock(500).await;
    let task = harness.engine.load(&ada(), id).await.unwrap();
    assert_eq!(task.state, State::Working);
    harness
        .engine
        .provide_input(&ada(), id, accept(&keys[0]))
        .await
        .unwrap();
    assert_eq!(harness.wait(id).await.body, Some(raw("false")));
}

#[tokio::test(start_paused = true)]
async fn unsupported_input_requests_are_not_sent() {
    let harness = Harness::new().await;
    let mut deaf = call("ask");
    deaf.origin.accepts = InputKinds::NONE;
    let id = harness.engine.create(deaf).await.unwrap().task().id;
    let settled = harness.wait(id).await;
    assert!(matches!(settled.summary.ending, Ending::Error(_)));
    assert!(
        settled
            .summary
            .message
            .as_deref()
            .unwrap()
            .contains("Unsupported")
    );
}
