//! Acknowledged writes survive the end of the process.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outlast_engine::laws::fixtures;
use outlast_engine::{Scope, Store, TaskId};
use outlast_store::sqlite::{DiskFailure, FailPoint, FailPoints};
use outlast_store::{Sqlite, SqliteOptions};
use outlast_testkit::wait_for_end;

use crate::harness::StoreFolder;
use crate::locking::{another_process, given_path, lines_after};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs in a process of its own, started by the tests below"]
async fn write_until_killed() {
    let Some(path) = given_path() else { return };
    let fail_points = std::env::var(EXIT_VARIABLE).ok().map(|death| {
        let (moment, left) = death.split_once(' ').unwrap();
        let left = AtomicUsize::new(left.parse().unwrap());
        let moment = moment.to_owned();
        Arc::new(ExitAtPoint { moment, left }) as Arc<dyn FailPoints>
    });
    let mut options = SqliteOptions::default();
    options.fail_points = fail_points;
    let store: Arc<dyn Store> = Arc::new(Sqlite::open(path, options).await.unwrap());
    let writers = (0..16u64).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0.. {
                let task = fixtures::stored(&store, fixtures::task(n * 16 + writer)).await;
                println!("\nconfirmed {} 1", task.id);
                let text = format!("\"{}\"", task.id);
                let task = fixtures::ended(&store, &task, fixtures::result(&text)).await;
                println!("\nconfirmed {} 2", task.id);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

#[tokio::test]
async fn acknowledged_writes_survive_a_kill() {
    let folder = StoreFolder::new();
    for round in 1..=3 {
        let mut child = another_process(&folder, WRITER_TEST).spawn().unwrap();
        let mut confirmed = Acknowledged::default();
        for line in lines_after(&mut child, "confirmed ").take(round * 400) {
            confirmed.note(&line);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        confirmed.check(&folder).await;
    }
}

#[tokio::test]
async fn acknowledged_writes_survive_a_crash_at_every_fail_point() {
    for moment in ["BeforeCommit", "AfterCommit", "BeforeAck"] {
        let folder = StoreFolder::new();
        for commits in [1, 2, 30] {
            let mut child = another_process(&folder, WRITER_TEST)
                .env(EXIT_VARIABLE, format!("{moment} {commits}"))
                .spawn()
                .unwrap();
            let mut confirmed = Acknowledged::default();
            for line in lines_after(&mut child, "confirmed ") {
                confirmed.note(&line);
            }
            assert!(!wait_for_end(&mut child).success(), "it died");
            confirmed.check(&folder).await;
        }
    }
}

/// Ends the process when a point is reached for the n-th time.
struct ExitAtPoint {
    moment: String,
    left: AtomicUsize,
}

impl FailPoints for ExitAtPoint {
    fn reached(&self, point: FailPoint) -> Option<DiskFailure> {
        if format!("{point:?}") == self.moment && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::process::abort();
        }
        None
    }
}

/// The newest revision of each task that the process acknowledged before it ended.
#[derive(Default)]
struct Acknowledged(HashMap<TaskId, u32>);

impl Acknowledged {
    fn note(&mut self, line: &str) {
        // An incomplete line was not acknowledged.
        let lines_after = line.split_once(' ').and_then(|(id, revision)| {
            let id: TaskId = id.parse().ok()?;
            Some((id, revision.parse::<u32>().ok()?))
        });
        if let Some((id, revision)) = lines_after {
            let known = self.0.entry(id).or_default();
            *known = revision.max(*known);
        }
    }

    /// Checks that all of them are stored, and empties the store.
    async fn check(&self, folder: &StoreFolder) {
        let store = folder.open().await;
        for (id, revision) in &self.0 {
            let found = fixtures::snapshot(&store, *id).await;
            let found = found.expect("a confirmed task is there");
            assert!(found.revision().0 >= *revision, "{id}");
        }
        let all = store
            .page(&fixtures::ada(), None, usize::MAX)
            .await
            .unwrap();
        for task in all.tasks.iter().filter(|task| task.ending().is_some()) {
            let body = store.body(&Scope::AnyTask, task.id()).await.unwrap();
            assert_eq!(body, Some(fixtures::raw(&format!("\"{}\"", task.id()))));
        }
        let all = all.tasks.iter().map(|task| (task.id(), task.revision()));
        let gone = store.remove(fixtures::NODE_A, all.collect()).await.unwrap();
        assert!(gone.len() >= self.0.len());
        store.close().await.unwrap();
    }
}

const WRITER_TEST: &str = "crash::write_until_killed";

/// The point at which the process ends, and how often it is reached before.
const EXIT_VARIABLE: &str = "OUTLAST_TEST_DEATH";
