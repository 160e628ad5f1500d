//! A node under load, which a test kills: `node URL SEED OPEN_TASKS`.

fn main() {
    let mut words = std::env::args().skip(1);
    let mut next = || words.next().expect("usage: node URL SEED OPEN_TASKS");
    let url = next();
    let seed = next().parse().expect("the seed is a number");
    let open_tasks = next().parse().expect("the number of tasks is a number");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be built");
    runtime.block_on(outlast_testkit::nodes::work(&url, seed, open_tasks));
    runtime.shutdown_background();
}
