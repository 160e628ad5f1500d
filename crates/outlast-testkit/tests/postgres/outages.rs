//! The database goes away and comes back.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::laws::fixtures::{loaded, stored, task};
use outlast_engine::store::Health;
use outlast_engine::{Scope, Store, StoreError};
use outlast_testkit::{PostgresServer, PostgresSync, within};

use crate::opened;

#[tokio::test]
async fn a_store_reports_an_outage_and_works_after_it() {
    let server = PostgresServer::start(PostgresSync::On, "");
    let store: Arc<dyn Store> = Arc::new(opened(&server.url("outage")).await);
    let before = stored(&store, task(1)).await;
    server.crash();
    let read = store.load(&Scope::AnyTask, before.id).await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    assert!(matches!(*store.health().borrow(), Health::Down(_)));
    let insert = store
        .insert(outlast_engine::laws::fixtures::insertion(task(2)))
        .await;
    assert!(
        matches!(insert, Err(StoreError::Unavailable(_))),
        "{insert:?}"
    );
    server.launch().unwrap();
    let back = async {
        while store.load(&Scope::AnyTask, before.id).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("the store works again", back).await;
    assert_eq!(*store.health().borrow(), Health::Ready);
    assert_eq!(loaded(&store, before.id).await.as_ref(), Some(&before));
    stored(&store, task(3)).await;
}
