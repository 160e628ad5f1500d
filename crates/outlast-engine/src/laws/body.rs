//! The body of a task: stored from the end of the task to its removal, byte for byte.

use std::sync::Arc;

use crate::laws::fixtures::*;
use crate::outcome::Outcome;
use crate::store::Store;
use crate::transition::Command;

/// A task has no body before it has ended.
pub async fn no_body_before_the_end(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    assert_eq!(body(store, task.id).await, None);
    let task = changed(store, &task, status(&task, "drawing")).await;
    assert_eq!(body(store, task.id).await, None);
}

/// A result is read back byte for byte, however it is formatted.
pub async fn body_is_stored_byte_for_byte(store: &Arc<dyn Store>) {
    let bodies = [
        "null",
        r#"{ "b" : 1.0e0,  "a":1, "a":2 }"#,
        r#""\ud83e\udd80 and 🦀 are not the same bytes""#,
        "[]",
        "123456789012345678901234567890.10",
    ];
    for (n, text) in bodies.into_iter().enumerate() {
        let task = stored(store, task(n as u64)).await;
        ended(store, &task, result(text)).await;
        assert_eq!(body(store, task.id).await, Some(raw(text)));
    }
}

/// An error is a body too.
pub async fn error_is_a_body(store: &Arc<dyn Store>) {
    let outcome = Outcome::error(crate::outcome::ErrorCode(-32_603), "no ink");
    let task = stored(store, task(1)).await;
    ended(store, &task, outcome.clone()).await;
    assert_eq!(body(store, task.id).await.as_ref(), outcome.body());
}

/// A cancelled task has no body.
pub async fn cancelled_task_has_no_body(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let reply = changed(store, &task, Command::CancelNow).await;
    assert_eq!(body(store, task.id).await, None);
    assert_eq!(loaded(store, task.id).await, Some(reply));
}

/// A body is still stored after the TTL of its task was extended after the end.
pub async fn body_survives_an_extension(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let task = ended(store, &task, result("[1,2]")).await;
    let reply = changed(store, &task, Command::Extend { ttl: 2 * TTL_MS }).await;
    assert_eq!(body(store, task.id).await, Some(raw("[1,2]")));
    assert_eq!(loaded(store, task.id).await, Some(reply));
}

/// A body of one mebibyte is stored like any other.
pub async fn large_body_survives(store: &Arc<dyn Store>) {
    let text = format!("\"{}\"", "0123456789abcdef".repeat(1 << 16));
    let large = stored(store, task(1)).await;
    ended(store, &large, result(&text)).await;
    let found = body(store, large.id).await.expect("there is a body");
    assert!(found.as_str() == text, "a large body changed");
    // Another body is not affected.
    let other = stored(store, task(2)).await;
    ended(store, &other, result("2")).await;
    assert_eq!(body(store, other.id).await, Some(raw("2")));
}

/// A body is removed with its task.
pub async fn body_is_removed_with_its_task(store: &Arc<dyn Store>) {
    let task = stored(store, task(1)).await;
    let task = ended(store, &task, result("1")).await;
    removed(store, &task).await;
    assert_eq!(body(store, task.id).await, None);
}
