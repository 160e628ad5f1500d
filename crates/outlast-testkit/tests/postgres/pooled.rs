//! The store behind PgBouncer in transaction mode, which delivers no notifications: changes of other nodes
//! are polled.

use std::sync::OnceLock;

use outlast_engine::RetryClass;
use outlast_testkit::{PgBouncer, PostgresServer, until};

use crate::node::{Node, raw, scope};
use crate::opened;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_behind_a_pooler_work_together() {
    let url = fresh_url("pooled_nodes");
    let (one, two) = (Node::start(&url).await, Node::start(&url).await);
    let id = one.create("gate", RetryClass::Never).await;
    let (ended, ()) = tokio::join!(two.ended(id), async { one.open_gate() });
    assert_eq!(ended.body, Some(raw("1")));
    let request = one.create("ask", RetryClass::Never).await;
    two.answer(request).await;
    assert_eq!(one.ended(request).await.body, Some(raw("7")));
    let [other, gate] = [
        two.create("ask", RetryClass::Never).await,
        two.create("gate", RetryClass::Rerun).await,
    ];
    let engine = one.engine.clone();
    let cancel = async move { engine.cancel_now(&scope(), other).await.map(|_| ()) };
    one.run("a cancel", cancel).await.expect("it is stored");
    until("the call stops", || two.engine.running() == 1);
    // The work of a lost node is recovered.
    two.die();
    assert_eq!(one.ended(gate).await.body, Some(raw("1")));
}

fn pooler() -> &'static PgBouncer {
    static POOLER: OnceLock<PgBouncer> = OnceLock::new();
    POOLER.get_or_init(|| PgBouncer::start(PostgresServer::shared()))
}

fn fresh_url(schema: &str) -> String {
    pooler().url(schema)
}

mod laws {
    use std::sync::atomic::{AtomicU32, Ordering};

    static SCHEMAS: AtomicU32 = AtomicU32::new(0);

    fn url() -> String {
        let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
        super::fresh_url(&format!("pooled_{number}"))
    }

    outlast_engine::store_laws!(super::opened(&url()));
}
