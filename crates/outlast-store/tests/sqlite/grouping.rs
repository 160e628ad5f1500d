//! Many callers share a commit, and a version that nobody can see costs nothing.

use std::sync::Arc;

use outlast_engine::laws::given;

use crate::opened::{Place, Saboteur};

#[tokio::test(flavor = "multi_thread")]
async fn many_callers_share_few_commits() {
    let place = Place::new();
    let probe = Arc::new(Saboteur::default());
    let store = place.open_with(probe.options()).await;
    let callers = (0..256).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { given::stored(&store, given::task(n)).await })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    assert!(probe.commits() <= 128, "{} commits", probe.commits());
}

#[tokio::test]
async fn a_change_of_a_task_whose_insertion_is_under_way_rides_with_it() {
    let place = Place::new();
    let probe = Arc::new(Saboteur::default());
    let store = place.open_with(probe.options()).await;
    let other = given::stored(&store, given::task(0)).await;
    let before = probe.commits();

    // The first keeps the writer busy; the rest queues up behind it.
    let task = given::task(1);
    let noted = given::change(&task, given::status(&task, "at work"), given::CREATED);
    let ended = given::change(
        &noted.next,
        given::end(&noted.next, given::result("7")),
        given::CREATED,
    );
    let first = given::change(&other, given::status(&other, "busy"), given::CREATED);
    let (first, inserted, noted, ended) = tokio::join!(
        store.replace(first),
        store.insert(given::insertion(task.clone())),
        store.replace(noted),
        store.replace(ended),
    );
    assert_eq!(first.unwrap().revision.0, 2);
    inserted.unwrap();
    assert_eq!(noted.unwrap().revision.0, 2);
    assert_eq!(ended.unwrap().revision.0, 3);
    assert!(probe.commits() - before <= 4);
    assert_eq!(place.look::<u32>("SELECT max(revision) FROM tasks"), 3);
    assert_eq!(given::body(&store, task.id).await, Some(given::raw("7")));
}

#[tokio::test]
async fn large_removals_are_taken_in_portions() {
    let place = Place::new();
    let probe = Arc::new(Saboteur::default());
    let store = place.open_with(probe.options()).await;
    let inserts = (0..1_000).map(|n| store.insert(given::insertion(given::task(n))));
    let mut all = Vec::new();
    for insert in inserts.collect::<Vec<_>>() {
        insert.await.unwrap();
    }
    for n in 0..1_000 {
        all.push((given::id(n), outlast_engine::Revision(1)));
    }
    let before = probe.commits();
    let gone = store.remove(given::HERE, all).await.unwrap();
    assert_eq!(gone.len(), 1_000);
    assert_eq!(probe.commits() - before, 4, "256 rows to a commit");
    assert_eq!(place.look::<u32>("SELECT count(*) FROM tasks"), 0);
}
