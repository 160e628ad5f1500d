//! The benchmark of nodes on PostgreSQL (`fsync` on): `nodes_bench [--quick]`. The table goes to stdout.
//!
//! The other side of the first rows is an implementation that writes one statement per change on a pool of
//! 16 connections. A round measures both sides, and the median of the rounds counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlast_engine::engine::{FnRunner, NewCall};
use outlast_engine::{
    Engine, InputKinds, Origin, Outcome, Owner, Policy, Quota, RetryClass, Scope, Store,
};
use outlast_store::{Postgres, PostgresUrl};
use outlast_testkit::{PostgresServer, PostgresSync};
use outlast_wire::Raw;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let quick = std::env::args().skip(1).any(|arg| arg == "--quick");
    let runtime = runtime()?;
    let server = PostgresServer::start(PostgresSync::On, "");
    println!("| figure | measured | other side | bar | met? |");
    println!("|---|---|---|---|---|");
    runtime.block_on(async {
        lifecycles(&server, quick).await?;
        wake_ups(&server, quick).await?;
        retained(&server, quick).await?;
        idle(&server).await?;
        recovery(&server).await
    })
}

/// Durable lifecycles: a task is created and ends, and its creator has the result.
async fn lifecycles(server: &PostgresServer, quick: bool) -> Result<(), Failure> {
    let ours = Arc::new(Ours::open(&server.url("lifecycles")).await?);
    let single = Arc::new(Single::open(server).await?);
    let (rounds, turn) = scale(quick);
    for callers in [1, 16, 256] {
        let mut rates = Vec::new();
        for _ in 0..=rounds {
            let one = ours.clone();
            let our_rate = rate(callers, turn, move || {
                let one = one.clone();
                async move { one.lifecycle().await }
            });
            let our_rate = our_rate.await?;
            let other = single.clone();
            let other_rate = rate(callers, turn, move || {
                let other = other.clone();
                async move { other.lifecycle().await }
            });
            rates.push((our_rate, other_rate.await?));
        }
        // The first round warms up.
        rates.remove(0);
        let own = median(rates.iter().map(|rates| rates.0).collect());
        let other = median(rates.iter().map(|rates| rates.1).collect());
        let ratio = median(rates.iter().map(|rates| rates.0 / rates.1).collect());
        // One caller waits for every commit on both sides.
        let bar = (callers > 1).then_some((ratio >= 2.0, "≥ 2 ×"));
        row(
            &format!("durable lifecycles, {callers} callers"),
            &format!("{own:.0} /s"),
            &format!("{other:.0} /s, {ratio:.2} ×"),
            bar,
        );
    }
    ours.close().await
}

/// From the creation on one node to the result that a waiter at another node has.
async fn wake_ups(server: &PostgresServer, quick: bool) -> Result<(), Failure> {
    let url = server.url("wake_ups");
    let (here, there) = (Ours::open(&url).await?, Ours::open(&url).await?);
    let count = if quick { 300 } else { 2_000 };
    let (mut all, mut ends) = (Vec::new(), Vec::new());
    for number in 0..count + 50 {
        let begun = Instant::now();
        let created = here.engine.create(call("gate")).await?;
        let id = created.task().id;
        let engine = there.engine.clone();
        let waiter = tokio::spawn(async move { engine.wait(&scope(), id).await });
        // The waiter reads the task and waits.
        while there.engine.subscribers() == 0 {
            tokio::task::yield_now().await;
        }
        let opened = Instant::now();
        here.gate.notify_one();
        waiter.await??;
        if number >= 50 {
            all.push(begun.elapsed().as_secs_f64() * 1e3);
            ends.push(opened.elapsed().as_secs_f64() * 1e3);
        }
    }
    let (p50, p99) = (median(all.clone()), quantile(all, 0.99));
    row(
        "create on A to the result on B, median",
        &format!("{p50:.2} ms"),
        "",
        Some((p50 <= 3.0, "≤ 3 ms")),
    );
    row(
        "the same, p99",
        &format!("{p99:.2} ms"),
        "",
        Some((p99 <= 20.0, "≤ 20 ms")),
    );
    row(
        "end on A to the result on B, median and p99",
        &format!(
            "{:.2} ms, {:.2} ms",
            median(ends.clone()),
            quantile(ends, 0.99)
        ),
        "",
        None,
    );
    here.close().await?;
    there.close().await
}

/// The same operations with few and with many retained tasks.
async fn retained(server: &PostgresServer, quick: bool) -> Result<(), Failure> {
    let url = server.url("retained");
    let (here, there) = (Ours::open(&url).await?, Ours::open(&url).await?);
    let here = Arc::new(here);
    let most = if quick { 100_000 } else { 1_000_000 };
    let open = here.engine.create(call("gate")).await?.task().id;
    here.lifecycle().await?;
    let (rounds, turn) = scale(quick);
    let mut figures = Vec::new();
    for tasks in [0, most] {
        fill(server, tasks).await?;
        let mut gets = Vec::new();
        for _ in 0..2_000 {
            let begun = Instant::now();
            there.engine.get(&scope(), open).await?;
            gets.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        let mut rates = Vec::new();
        for _ in 0..rounds {
            let one = here.clone();
            let work = move || {
                let one = one.clone();
                async move { one.lifecycle().await }
            };
            rates.push(rate(16, turn, work).await?);
        }
        figures.push((median(gets), median(rates)));
    }
    let [(few_get, few_rate), (many_get, many_rate)] = figures[..] else {
        return Err("both sizes are measured".into());
    };
    row(
        &format!("get of a task that another node runs, {most} retained tasks"),
        &format!("{many_get:.0} µs"),
        &format!("{few_get:.0} µs with few"),
        Some((many_get <= 1.5 * few_get, "≤ 1.5 ×")),
    );
    row(
        &format!("durable lifecycles, 16 callers, {most} retained tasks"),
        &format!("{many_rate:.0} /s"),
        &format!("{few_rate:.0} /s with few"),
        Some((many_rate * 1.5 >= few_rate, "≥ 1 / 1.5 ×")),
    );
    there.close().await?;
    here.gate.notify_one();
    here.close().await
}

/// Copies the ended task this many times.
async fn fill(server: &PostgresServer, tasks: usize) -> Result<(), Failure> {
    let client = connected(server).await?;
    let columns =
        "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
                   WHERE table_schema = 'retained' AND table_name = 'tasks'
                   AND column_name NOT IN ('id', 'position', 'request_key', 'request_digest')";
    let columns: String = client.query_one(columns, &[]).await?.get(0);
    client
        .batch_execute(&format!(
            "WITH one AS (SELECT * FROM retained.tasks WHERE ended LIMIT 1)
             INSERT INTO retained.tasks (id, {columns})
             SELECT lpad(number::text, 26, '0'), {columns} FROM one, generate_series(1, {tasks}) AS number;
             ANALYZE retained.tasks; CHECKPOINT"
        ))
        .await?;
    Ok(())
}

/// The queries of a node without work.
async fn idle(server: &PostgresServer) -> Result<(), Failure> {
    let url = server.url("idle");
    let nodes = [Ours::open(&url).await?, Ours::open(&url).await?];
    let client = connected(server).await?;
    let transactions =
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'";
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before: i64 = client.query_one(transactions, &[]).await?.get(0);
    let begun = Instant::now();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let after: i64 = client.query_one(transactions, &[]).await?.get(0);
    let per_second = (after - before) as f64 / begun.elapsed().as_secs_f64() / 2.0;
    row(
        "queries of an idle node",
        &format!("{per_second:.2} /s"),
        "",
        Some((per_second <= 2.0, "≤ 2 /s")),
    );
    for node in nodes {
        node.close().await?;
    }
    Ok(())
}

/// From the death of a node to the end of its tasks.
async fn recovery(server: &PostgresServer) -> Result<(), Failure> {
    let url = server.url("recovery");
    let live = Ours::open(&url).await?;
    let dying = runtime()?;
    let other = url.clone();
    let started = dying.spawn(async move {
        let node = Ours::open(&other).await?;
        for _ in 0..OPEN_TASKS {
            node.engine.create(call("gate")).await?;
        }
        Ok::<_, Failure>(())
    });
    started.await??;
    // The lease has been renewed, and the other node may mark it as lost.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let begun = Instant::now();
    dying.shutdown_background();
    while live.engine.usage(&owner()).await?.open > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let took = begun.elapsed().as_secs_f64();
    row(
        &format!("{OPEN_TASKS} tasks of a dead node are settled"),
        &format!("{took:.1} s after its death"),
        "",
        Some((took <= 20.0, "≤ 20 s")),
    );
    live.close().await
}

/// A node.
struct Ours {
    engine: Engine,
    store: Arc<dyn Store>,
    gate: Arc<Notify>,
}

impl Ours {
    async fn open(url: &str) -> Result<Self, Failure> {
        let store: Arc<dyn Store> = Arc::new(Postgres::open(&PostgresUrl::new(url)).await?);
        let gate = Arc::new(Notify::new());
        let opened = gate.clone();
        let quota = Quota::default()
            .with_owner_open(u32::MAX)
            .with_owner_retained(u32::MAX)
            .with_open(u64::MAX)
            .with_retained(u64::MAX);
        let policy = Policy::default().with_quota(quota);
        let immediate = FnRunner::new(|_, _| async { Outcome::Result(text()) });
        let gated = FnRunner::new(move |_, _| {
            let opened = opened.clone();
            async move {
                opened.notified().await;
                Outcome::Result(text())
            }
        });
        let builder = Engine::builder(store.clone()).policy(policy);
        let builder = builder
            .runner("immediate", Arc::new(immediate))
            .runner("gate", Arc::new(gated));
        let (engine, _) = builder.open().await?;
        Ok(Self {
            engine,
            store,
            gate,
        })
    }

    async fn lifecycle(&self) -> Result<(), Failure> {
        let created = self.engine.create(call("immediate")).await?;
        self.engine.wait(&scope(), created.task().id).await?;
        Ok(())
    }

    async fn close(&self) -> Result<(), Failure> {
        self.engine.clone().shutdown(Duration::from_secs(1)).await?;
        Ok(self.store.close().await?)
    }
}

/// A connection with its prepared statements.
struct Connection {
    client: Client,
    insert: Statement,
    end: Statement,
}

/// The other side: one statement per change, each on one of 16 connections.
struct Single {
    free: Mutex<Vec<Connection>>,
    permits: Semaphore,
    next: AtomicU64,
}

impl Single {
    async fn open(server: &PostgresServer) -> Result<Self, Failure> {
        let table = "CREATE TABLE single (
            id BIGINT PRIMARY KEY, owner TEXT NOT NULL, state TEXT NOT NULL, revision BIGINT NOT NULL,
            created BIGINT NOT NULL, updated BIGINT NOT NULL, expires BIGINT NOT NULL, params TEXT, body TEXT);
            CREATE INDEX ON single (owner, created);
            CREATE INDEX ON single (expires)";
        connected(server).await?.batch_execute(table).await?;
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let client = connected(server).await?;
            let insert = client
                .prepare("INSERT INTO single VALUES ($1, 'bench', 'working', 1, 1, 1, 1, $2, NULL)")
                .await?;
            let end = client
                .prepare(
                    "UPDATE single SET state = 'result', revision = 2, updated = 2, body = $2
                     WHERE id = $1 AND revision = 1",
                )
                .await?;
            clients.push(Connection {
                client,
                insert,
                end,
            });
        }
        Ok(Self {
            free: Mutex::new(clients),
            permits: Semaphore::new(CONNECTIONS),
            next: AtomicU64::new(0),
        })
    }

    async fn lifecycle(&self) -> Result<(), Failure> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (id, value) = (number.cast_signed(), text());
        for is_end in [false, true] {
            let _permit = self.permits.acquire().await?;
            let free = self.free.lock().expect("no holder panics").pop();
            let connection = free.expect("there is a connection for each permit");
            let statement = if is_end {
                &connection.end
            } else {
                &connection.insert
            };
            let client = &connection.client;
            let done = client.execute(statement, &[&id, &value.as_str()]).await;
            self.free.lock().expect("no holder panics").push(connection);
            done?;
        }
        Ok(())
    }
}

/// Runs `work` in this number of callers for `turn`. Returns how often it ended per second.
async fn rate<F>(
    callers: usize,
    turn: Duration,
    work: impl Fn() -> F + Clone + Send + 'static,
) -> Result<f64, Failure>
where
    F: Future<Output = Result<(), Failure>> + Send,
{
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..callers {
        let work = work.clone();
        running.spawn(async move {
            let mut count = 0_u32;
            while begun.elapsed() < turn {
                work().await?;
                count += 1;
            }
            Ok::<_, Failure>(count)
        });
    }
    let mut count = 0;
    while let Some(done) = running.join_next().await {
        count += done??;
    }
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}

fn row(figure: &str, measured: &str, other: &str, bar: Option<(bool, &str)>) {
    let (bar, met) = match bar {
        Some((true, bar)) => (bar, "yes"),
        Some((false, bar)) => (bar, "**no**"),
        None => ("", ""),
    };
    println!("| {figure} | {measured} | {other} | {bar} | {met} |");
}

async fn connected(server: &PostgresServer) -> Result<Client, Failure> {
    let config = format!(
        "host=127.0.0.1 port={} user=outlast dbname=postgres",
        server.port()
    );
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(2).enable_all().build()?)
}

/// The number of rounds and the time of each side in a round.
fn scale(quick: bool) -> (usize, Duration) {
    if quick {
        (3, Duration::from_millis(700))
    } else {
        (7, Duration::from_secs(2))
    }
}

fn median(figures: Vec<f64>) -> f64 {
    quantile(figures, 0.5)
}

fn quantile(mut figures: Vec<f64>, part: f64) -> f64 {
    figures.sort_by(f64::total_cmp);
    let at = (figures.len() as f64 * part) as usize;
    figures[at.min(figures.len() - 1)]
}

fn call(runner: &str) -> NewCall {
    let origin = Origin {
        method: "tools/call".into(),
        tool: Some("bench".into()),
        params: Some(text()),
        runner: runner.into(),
        progress_token: None,
        retry: RetryClass::Never,
        accepts: InputKinds::all(),
    };
    NewCall::new(owner(), origin)
}

fn owner() -> Owner {
    Owner::principal("bench")
}

fn scope() -> Scope {
    Scope::OwnedBy(owner())
}

/// 200 bytes.
fn text() -> Raw {
    Raw::parse(format!("\"{}\"", "x".repeat(198))).expect("it is JSON")
}

const CONNECTIONS: usize = 16;

const OPEN_TASKS: usize = 1_000;
