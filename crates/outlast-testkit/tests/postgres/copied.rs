//! A copy of a stopped store in a file.

use std::sync::Arc;

use outlast_engine::laws::fixtures::{
    CREATED, NODE_A, ada, changed, ended, put, record, request_input, result, stored, task, task_at,
};
use outlast_engine::store::{Filter, Position};
use outlast_engine::{NodeId, Scope, Store};
use outlast_store::postgres::{CopyCounts, CopyError, copy_from_sqlite};
use outlast_store::{OpenError, PostgresUrl, Sqlite, SqliteOptions};
use outlast_testkit::PostgresServer;

use crate::opened;

#[tokio::test]
async fn a_copy_has_every_task_body_and_record_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    let url = PostgresServer::shared().url("copied");
    let to = PostgresUrl::new(&url);
    let missing = copy_from_sqlite(&path, &to).await;
    assert!(matches!(missing, Err(CopyError::NoStore(_))), "{missing:?}");
    let file = Sqlite::open(&path, SqliteOptions::default()).await;
    let file: Arc<dyn Store> = Arc::new(file.expect("a new file"));
    let open = stored(&file, task_at(1, NodeId(77))).await;
    changed(&file, &open, request_input(&open, "name")).await;
    for number in 2..500 {
        let given = stored(&file, task(number)).await;
        ended(&file, &given, result(&number.to_string())).await;
    }
    let records = (0..300).map(|number| put(&record("key", &number.to_string())));
    file.write_records(records.collect())
        .await
        .expect("there is room");
    let in_use = copy_from_sqlite(&path, &to).await;
    assert!(
        matches!(in_use, Err(CopyError::Open(OpenError::InUse { .. }))),
        "{in_use:?}"
    );
    let before = contents(&file).await;
    file.close().await.expect("it closes");
    let counts = CopyCounts {
        tasks: 499,
        records: 300,
    };
    assert_eq!(copy_from_sqlite(&path, &to).await.unwrap(), counts);
    let again = copy_from_sqlite(&path, &to).await;
    assert!(matches!(again, Err(CopyError::NotEmpty(_))), "{again:?}");
    let copy: Arc<dyn Store> = Arc::new(opened(&url).await);
    assert_eq!(contents(&copy).await, before);
    assert_eq!(copy.records("key", None, CREATED).await.unwrap().len(), 300);
    // The open task is recovered by the first node.
    let _events = copy.join(NODE_A).await.unwrap();
    let offered = copy.claim(NODE_A, 10).await.unwrap();
    assert_eq!(
        offered.iter().map(|task| task.id).collect::<Vec<_>>(),
        [open.id]
    );
    let usage = copy.usage(&ada()).await.unwrap();
    assert_eq!((usage.open, usage.retained), (1, 499));
}

/// Every task with its body, newest first.
async fn contents(store: &Arc<dyn Store>) -> Vec<(outlast_engine::Task, Option<String>)> {
    let mut found = Vec::new();
    let mut after: Option<Position> = None;
    loop {
        let page = store.search(&Filter::default(), after, 200).await;
        let page = page.expect("the store is open");
        for snapshot in page.tasks {
            let id = snapshot.id();
            let task = store.load(&Scope::AnyTask, id).await;
            let task = task.expect("the store is open").expect("it is listed");
            let body = store.body(&Scope::AnyTask, id).await;
            let body = body.expect("the store is open");
            found.push(((*task).clone(), body.map(|body| body.as_str().to_owned())));
        }
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}
