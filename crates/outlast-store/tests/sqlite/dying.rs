//! Whatever was confirmed survives the death of the process.

use std::collections::HashMap;
use std::sync::Arc;

use outlast_engine::laws::given;
use outlast_engine::{Scope, Store, TaskId};
use outlast_store::{Sqlite, SqliteOptions};

use crate::locking::{another_process, given_path, said};
use crate::opened::Place;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs in a process of its own, started by the test below"]
async fn write_until_killed() {
    let Some(path) = given_path() else { return };
    let store = Sqlite::open(path, SqliteOptions::default()).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let writers = (0..16u64).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0.. {
                let task = given::stored(&store, given::task(n * 16 + writer)).await;
                println!("\nconfirmed {} 1", task.id);
                let text = format!("\"{}\"", task.id);
                let task = given::ended(&store, &task, given::result(&text)).await;
                println!("\nconfirmed {} 2", task.id);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

#[tokio::test]
async fn what_was_confirmed_survives_a_kill() {
    let place = Place::new();
    for round in 1..=3 {
        let mut child = another_process(&place, "dying::write_until_killed");
        let mut confirmed: HashMap<TaskId, u32> = HashMap::new();
        for line in said(&mut child, "confirmed ").take(round * 400) {
            // A line that death cut short was never said.
            let Some((id, revision)) = line.split_once(' ') else {
                continue;
            };
            let revision: u32 = revision.parse().unwrap();
            let known = confirmed.entry(id.parse().unwrap()).or_default();
            *known = revision.max(*known);
        }
        child.kill().unwrap();
        child.wait().unwrap();

        let store = place.open().await;
        for (id, revision) in &confirmed {
            let found = given::shown(&store, *id)
                .await
                .expect("a confirmed task is there");
            assert!(found.revision().0 >= *revision, "{id}");
            if found.ending().is_some() {
                let body = store.body(&Scope::Anyone, *id).await.unwrap();
                assert_eq!(body, Some(given::raw(&format!("\"{id}\""))));
            }
        }
        let all = store.page(&given::ada(), None, usize::MAX).await.unwrap();
        let all = all.tasks.iter().map(|task| (task.id(), task.revision()));
        let gone = store.remove(given::HERE, all.collect()).await.unwrap();
        assert!(gone.len() >= confirmed.len());
        store.close().await.unwrap();
    }
}
