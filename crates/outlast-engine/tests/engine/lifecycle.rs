//! Tasks from creation to outcome.

use std::time::Duration;

use outlast_engine::engine::{CreatedTask, EngineError, Event, Follower, FollowerFuture, Watch};
use outlast_engine::store::{Filter, Snapshot, Status};
use outlast_engine::task::TimelineEvent;
use outlast_engine::{Clock, Ending, ErrorCode, Scope, StoreError, TaskId};
use outlast_testkit::within;
use outlast_wire::log::Level;
use tokio::sync::oneshot;

use crate::harness::{Harness, ada, advance_clock, call, owner, raw};

#[tokio::test(start_paused = true)]
async fn a_created_task_works_and_completes() {
    let harness = Harness::new().await;
    let task = harness.create("second").await;
    let Snapshot::Open(found) = harness.engine.get(&ada(), task.id).await.unwrap() else {
        panic!("it has not ended");
    };
    assert_eq!(found, task);
    assert_eq!(harness.engine.outcome(&ada(), task.id).await, Ok(None));

    let settled = harness.wait(task.id).await;
    assert_eq!(settled.summary.ending, Ending::Result);
    assert_eq!(settled.body, Some(raw("1")));
    // V1-RES-10: retrieval does not consume the result.
    assert_eq!(
        harness.engine.outcome(&ada(), task.id).await,
        Ok(Some(settled))
    );
    assert_eq!(harness.engine.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn every_ending_has_its_body_and_its_message() {
    let harness = Harness::new().await;
    for (tool, ending, message) in [
        ("echo", Ending::Result, None),
        ("fail", Ending::ToolError, Some("it broke")),
        ("error", Ending::Error(ErrorCode(-32000)), Some("no luck")),
    ] {
        let task = harness.create(tool).await;
        let settled = harness.wait(task.id).await;
        assert_eq!(settled.summary.ending, ending, "{tool}");
        assert_eq!(settled.summary.message.as_deref(), message, "{tool}");
        assert!(settled.body.is_some(), "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_error_and_the_engine_continues() {
    let harness = Harness::new().await;
    let task = harness.create("panic").await;
    let settled = harness.wait(task.id).await;
    assert_eq!(settled.summary.ending, Ending::Error(ErrorCode(-32603)));
    let task = harness.create("echo").await;
    assert_eq!(harness.wait(task.id).await.summary.ending, Ending::Result);
}

#[tokio::test(start_paused = true)]
async fn every_waiter_gets_the_same_outcome() {
    let harness = Harness::new().await;
    let id = harness.create("second").await.id;
    let waiters: Vec<_> = (0..50)
        .map(|_| {
            let engine = harness.engine.clone();
            tokio::spawn(async move { engine.wait(&ada(), id).await })
        })
        .collect();
    let expected = harness.wait(id).await;
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap(), Ok(expected.clone()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_wakes_by_event_and_not_by_polling() {
    let harness = Harness::new().await;
    let task = harness.create("second").await;
    let before = harness.clock.now();
    harness.wait(task.id).await;
    assert_eq!(harness.clock.now().since(before), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_every_step_and_then_the_end() {
    let harness = Harness::new().await;
    let task = harness.create("talk").await;
    let mut watch = harness.engine.watch(&ada(), task.id).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = within("an event", watch.next()).await {
        if let Event::Stored(task) = event {
            seen.push((task.message.clone(), task.state.ending()));
        }
    }
    let messages: Vec<_> = seen
        .iter()
        .filter_map(|(message, _)| message.as_deref())
        .collect();
    assert_eq!(messages, ["step 1", "step 2", "step 3"]);
    assert_eq!(seen.last().unwrap().1, Some(Ending::Result));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_receives_logs_or_an_oversize_notice() {
    let harness = Harness::new().await;
    let mut running = harness.engine.start(call("log")).unwrap();
    let mut received = Vec::new();
    while let Some(event) = running.event().await {
        if let Event::Log(log) = event {
            received.push((log.level, log.data.as_str().to_owned()));
        }
    }
    assert_eq!(received[0], (Level::Warning, r#"{"left":3}"#.to_owned()));
    assert_eq!(received[1].0, Level::Info);
    assert!(received[1].1.contains("1048578 bytes"), "{}", received[1].1);
    assert!(
        received[1].1.contains("sizes.log_bytes"),
        "{}",
        received[1].1
    );
    assert_eq!(received.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_follower_from_the_beginning_misses_nothing() {
    let harness = Harness::new().await;
    let (follower, received) = recording_follower();
    let created = harness.engine.create_followed(call("log"), follower).await;
    let received = received.await.expect("the task ends");
    assert_eq!(received.task, created.unwrap().task().id);
    let Some(Event::Log(first)) = received.events.first() else {
        panic!("the status comes first: {:?}", received.events);
    };
    assert_eq!(first.level, Level::Warning);
    let is_end =
        |event: &Event| matches!(event, Event::Stored(task) if task.state.ending().is_some());
    assert!(received.events.last().is_some_and(is_end));
}

#[tokio::test(start_paused = true)]
async fn only_a_new_task_has_a_new_follower() {
    let harness = Harness::new().await;
    let mut keyed = call("second");
    keyed.request_key = Some("once".into());
    let (follower, received) = recording_follower();
    let first = harness
        .engine
        .create_followed(keyed.clone(), follower)
        .await;
    let (unused, nothing) = recording_follower();
    let again = harness.engine.create_followed(keyed, unused).await.unwrap();
    assert!(matches!(again, CreatedTask::Existing(_)));
    assert_eq!(again.task().id, first.unwrap().task().id);
    assert_eq!(received.await.expect("the task ends").task, again.task().id);
    assert!(nothing.await.is_err(), "there was nothing to follow");
}

/// The events that a follower received.
struct ReceivedEvents {
    task: TaskId,
    events: Vec<Event>,
}

/// A follower that collects all events until the task has ended.
fn recording_follower() -> (Follower, oneshot::Receiver<ReceivedEvents>) {
    let (tell, reply) = oneshot::channel();
    let follower = |mut watch: Watch| -> FollowerFuture {
        Box::pin(async move {
            let mut events = Vec::new();
            while let Some(event) = within("an event", watch.next()).await {
                events.push(event);
            }
            let task = watch.first.id();
            let _ = tell.send(ReceivedEvents { task, events });
        })
    };
    (Box::new(follower), reply)
}

#[tokio::test(start_paused = true)]
async fn of_many_status_texts_the_last_one_is_stored() {
    let harness = Harness::new().await;
    let task = harness.create("chatter").await;
    harness.wait(task.id).await;
    let task = harness.engine.load(&ada(), task.id).await.unwrap();
    let texts: Vec<_> = task
        .timeline
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            TimelineEvent::Status(text) => Some(&**text),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["step 9999"]);
    // One write for the end and the text together.
    assert!(task.revision.0 <= 3, "{:?}", task.revision);
}

#[tokio::test(start_paused = true)]
async fn one_request_key_creates_one_task() {
    let harness = Harness::new().await;
    let mut keyed = call("second");
    keyed.request_key = Some("k1".into());
    let CreatedTask::New(first) = harness.engine.create(keyed.clone()).await.unwrap() else {
        panic!("the key was not used before");
    };
    let CreatedTask::Existing(second) = harness.engine.create(keyed.clone()).await.unwrap() else {
        panic!("the key was used before");
    };
    assert_eq!(first.id, second.id);

    let mut other = keyed.clone();
    other.origin.params = Some(raw("{}"));
    let refused = harness.engine.create(other).await.map(drop);
    assert_eq!(refused, Err(EngineError::KeyConflict("k1".into())));

    advance_clock(2_000).await;
    assert!(
        matches!(harness.engine.create(keyed).await, Ok(CreatedTask::Existing(task)) if task.state.ending().is_some())
    );
    assert_eq!(
        harness
            .tools
            .started
            .load(std::sync::atomic::Ordering::SeqCst),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn running_tasks_of_an_owner_are_limited_by_the_policy() {
    let harness = Harness::new().await;
    for _ in 0..32 {
        let _ = harness.create("second").await;
    }
    let refused = harness.engine.create(call("second")).await.map(drop);
    let busy = StoreError::OwnerBusy {
        owner: owner(),
        limit: 32,
    };
    assert_eq!(refused, Err(EngineError::Store(busy)));
    advance_clock(1_001).await;
    let _ = harness.create("echo").await;
}

#[tokio::test(start_paused = true)]
async fn all_pages_together_list_every_task_once() {
    let harness = Harness::new().await;
    let mut made = Vec::new();
    for _ in 0..25 {
        let id = harness.create("echo").await.id;
        harness.wait(id).await;
        made.push(id);
    }
    made.reverse();
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = harness
            .engine
            .page(&owner(), cursor.as_deref(), 10)
            .await
            .unwrap();
        seen.extend(page.tasks.iter().map(Snapshot::id));
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
        let _ = harness.create("echo").await;
    }
    assert_eq!(seen, made);
}

#[tokio::test(start_paused = true)]
async fn the_scope_any_task_finds_tasks_of_every_owner() {
    let harness = Harness::new().await;
    let task = harness.create("echo").await;
    assert!(harness.engine.get(&Scope::AnyTask, task.id).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_ended_task_runs_again_as_a_new_task() {
    let harness = Harness::new().await;
    let first = harness.create("second").await;
    assert_eq!(harness.engine.rerun(&ada(), first.id).await, Ok(None));
    let settled = harness.wait(first.id).await;

    let again = harness.engine.rerun(&ada(), first.id).await;
    let again = again.unwrap().expect("it has ended");
    assert_ne!(again.id, first.id);
    assert!(again.origin.same_request(&first.origin));
    assert_eq!(again.owner, first.owner);
    assert_eq!(harness.wait(again.id).await.body, settled.body);

    let other = Scope::OwnedBy(outlast_engine::Owner::principal("eve"));
    let foreign = harness.engine.rerun(&other, first.id).await;
    assert_eq!(foreign, Err(EngineError::NotFound));
}

#[tokio::test(start_paused = true)]
async fn a_search_shows_no_expired_task() {
    let harness = Harness::new().await;
    let open = harness.create("second").await;
    let filter = Filter {
        statuses: [Status::Working].into_iter().collect(),
        ..Filter::default()
    };
    let found = |page: outlast_engine::store::Page| -> Vec<TaskId> {
        page.tasks.iter().map(Snapshot::id).collect()
    };
    let page = harness.engine.search(&filter, None, 10).await.unwrap();
    assert_eq!(found(page), [open.id]);
    harness.wait(open.id).await;
    let page = harness.engine.search(&filter, None, 10).await.unwrap();
    assert_eq!(found(page), []);
    let all = Filter::default();
    let page = harness.engine.search(&all, None, 10).await.unwrap();
    assert_eq!(found(page), [open.id]);
    let ttl = Duration::from_millis(open.lifetime.ttl_ms);
    harness.clock.advance(ttl);
    let page = harness.engine.search(&all, None, 10).await.unwrap();
    assert_eq!(found(page), []);
}
