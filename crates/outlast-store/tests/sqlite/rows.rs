//! The rows of tasks in the file, and what an operator sees there.

use std::sync::Arc;

use outlast_engine::laws::fixtures;
use outlast_engine::task::{Lifetime, NewTask, TtlPolicy};
use outlast_engine::transition::Command;
use outlast_engine::{ErrorCode, InputKinds, Outcome, Task};

use crate::harness::StoreFolder;

#[tokio::test]
async fn the_end_moves_a_row_to_its_final_bucket() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let lifetime = Lifetime::new(fixtures::TTL_MS, TtlPolicy::KeepLive, None);
    let task = fixtures::stored(&store, fixtures::task_with_lifetime(1, lifetime)).await;
    let first = bucket(&folder);
    assert_eq!(first, minutes(fixtures::CREATED.0 + fixtures::TTL_MS));

    let extended = Command::Extend {
        ttl: 10 * fixtures::TTL_MS,
    };
    let task = fixtures::changed(&store, &task, extended).await;
    assert_eq!(bucket(&folder), first, "an extension changes a column");
    assert_eq!(
        expires(&folder),
        fixtures::CREATED.0 + 10 * fixtures::TTL_MS
    );

    let task = fixtures::ended(&store, &task, fixtures::result("[1,2]")).await;
    assert_eq!(
        bucket(&folder),
        minutes(fixtures::CREATED.0 + 10 * fixtures::TTL_MS)
    );
    assert_eq!(folder.query::<u32>("SELECT count(*) FROM tasks"), 1);
    assert_eq!(
        fixtures::body(&store, task.id).await,
        Some(fixtures::raw("[1,2]"))
    );
    assert_eq!(fixtures::loaded(&store, task.id).await, Some(task.clone()));

    let last = bucket(&folder);
    let extended = Command::Extend {
        ttl: 20 * fixtures::TTL_MS,
    };
    fixtures::changed(&store, &task, extended).await;
    assert_eq!(bucket(&folder), last, "an extension changes a column");
    fixtures::removed(&store, &fixtures::loaded(&store, task.id).await.unwrap()).await;
    assert_eq!(folder.query::<u32>("SELECT count(*) FROM tasks"), 0);
}

#[tokio::test]
async fn an_end_in_time_stays_in_its_row() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let task = fixtures::stored(&store, fixtures::task(1)).await;
    let row = folder.query::<i64>("SELECT row FROM tasks");
    fixtures::ended(&store, &task, fixtures::result("1")).await;
    assert_eq!(folder.query::<i64>("SELECT row FROM tasks"), row);
}

/// Values that consecutive tasks share are bound once. Each task still gets its own values,
/// whatever the previous one had.
#[tokio::test]
async fn consecutive_tasks_do_not_share_wrong_values() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let mut tasks = Vec::new();
    for n in 0..64 {
        // Choices that change at different rates.
        let differs = |bit: u64| (n ^ n >> 3) >> bit & 1 == 1;
        let mut origin = fixtures::origin();
        if differs(0) {
            origin.tool = None;
        }
        if differs(1) {
            origin.method = "prompts/get".into();
            origin.runner = "remote".into();
            origin.accepts = InputKinds::default();
        }
        let mut new = NewTask {
            origin: Arc::new(origin),
            ..fixtures::new_task(n)
        };
        if differs(2) {
            new.owner = fixtures::bob();
            new.poll_interval_ms = 250;
            new.executor = fixtures::NODE_B;
            new.lifetime = Lifetime::new(2 * fixtures::TTL_MS, TtlPolicy::Strict, None);
        }
        let task = fixtures::stored(&store, Task::new(new, fixtures::CREATED)).await;
        tasks.push(if differs(3) {
            fixtures::ended(&store, &task, fixtures::result("1")).await
        } else {
            task
        });
    }
    drop(store);
    let store = folder.open().await;
    for task in tasks {
        assert_eq!(fixtures::loaded(&store, task.id).await, Some(task));
    }
}

#[tokio::test]
async fn an_operator_can_read_the_tables() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let working = fixtures::stored(&store, fixtures::task(1)).await;
    fixtures::changed(&store, &working, fixtures::status(&working, "page 1 of 3")).await;
    let asking = fixtures::stored(&store, fixtures::task(2)).await;
    fixtures::changed(&store, &asking, fixtures::request_input(&asking, "name")).await;
    let failed = fixtures::stored(&store, fixtures::task(3)).await;
    let error = Outcome::error(ErrorCode(-32603), "out of paper");
    fixtures::ended(&store, &failed, error).await;

    let file = rusqlite::Connection::open(folder.path()).unwrap();
    let mut overview = file
        .prepare("SELECT id, owner, state, what, message, created, expires FROM overview ORDER BY id = ?1, state")
        .unwrap();
    let lines = overview.query_map([failed.id.to_string()], |row| {
        let cell = |n| {
            row.get::<_, Option<String>>(n)
                .map(Option::unwrap_or_default)
        };
        (0..7).map(cell).collect::<Result<Vec<_>, _>>()
    });
    let lines: Vec<Vec<String>> = lines.unwrap().map(Result::unwrap).collect();
    let (created, expires) = ("2026-07-25 17:20:00", "2026-07-25 18:20:00");
    let id = |task: &Task| task.id.to_string();
    assert_eq!(
        lines,
        [
            [
                &id(&asking),
                "principal:ada",
                "awaiting_input",
                "render",
                "",
                created,
                expires
            ],
            [
                &id(&working),
                "principal:ada",
                "working",
                "render",
                "page 1 of 3",
                created,
                expires
            ],
            [
                &id(&failed),
                "principal:ada",
                "error -32603",
                "render",
                "out of paper",
                created,
                expires
            ],
        ]
    );
    let asks: String = folder
        .query("SELECT json_extract(details, '$.asks') FROM tasks WHERE state = 'awaiting_input'");
    assert_eq!(
        asks,
        r#"[{"key":"name","kind":"elicit_form","timing":"during_work","params":{"message":"who?"}}]"#
    );
    let timeline: String = folder.query("SELECT timeline FROM tasks WHERE state = 'working'");
    assert_eq!(
        timeline,
        r#"[{"at":1785000001000,"what":{"status":"page 1 of 3"}}]"#
    );
}

#[tokio::test]
async fn a_history_is_read_as_it_was_written() {
    let folder = StoreFolder::new();
    let store = folder.open().await;
    let lifetime = Lifetime::new(
        fixtures::TTL_MS,
        TtlPolicy::KeepLive,
        Some(fixtures::TTL_MS),
    );
    let mut task = fixtures::stored(&store, fixtures::task_with_lifetime(1, lifetime)).await;
    for page in 0..2 {
        task = fixtures::changed(&store, &task, fixtures::status(&task, &page.to_string())).await;
    }
    let mut task = fixtures::ended(&store, &task, fixtures::result("1")).await;
    assert_eq!(fixtures::loaded(&store, task.id).await, Some(task.clone()));
    // An end that is not the last event, and one that is dropped from the history.
    for more in 2..100 {
        let ttl = more * fixtures::TTL_MS;
        task = fixtures::changed(&store, &task, Command::Extend { ttl }).await;
        assert_eq!(fixtures::loaded(&store, task.id).await, Some(task.clone()));
    }
    assert!(task.timeline.dropped > 0);
}

fn bucket(folder: &StoreFolder) -> u64 {
    folder.query::<i64>("SELECT row >> 36 FROM tasks") as u64
}

fn expires(folder: &StoreFolder) -> u64 {
    folder.query::<i64>("SELECT expires FROM tasks") as u64
}

fn minutes(millis: u64) -> u64 {
    millis / 60_000
}
