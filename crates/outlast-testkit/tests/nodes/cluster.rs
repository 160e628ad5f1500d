//! The processes: three nodes and a database.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use outlast_testkit::death::SeededRandom;
use outlast_testkit::nodes::Line;
use outlast_testkit::{PostgresServer, PostgresSync};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

pub(crate) struct Cluster {
    server: PostgresServer,
    nodes: [Node; 3],
    seeds: SeededRandom,
    /// The output of every process so far.
    outputs: Vec<JoinHandle<Vec<Line>>>,
    events: Events,
    runtime: Runtime,
}

struct Node {
    process: Child,
    /// When it continues, if it is paused.
    paused_until: Option<Instant>,
}

/// How often what happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    kills: u32,
    pauses: u32,
    cuts: u32,
    crashes: u32,
    /// The numbers of open tasks, between the events.
    open_tasks: Vec<usize>,
}

/// A run that has ended. The database still runs.
pub(crate) struct Finished {
    pub(crate) server: PostgresServer,
    /// The lines of each process.
    pub(crate) outputs: Vec<Vec<Line>>,
    pub(crate) events: Events,
}

impl Cluster {
    pub(crate) fn start(random: &mut SeededRandom) -> Self {
        let server = PostgresServer::start(PostgresSync::On, "");
        let mut seeds = SeededRandom::new(random.next());
        let mut outputs = Vec::new();
        let nodes = [0, 1, 2].map(|_| Node::start(&server, &mut seeds, &mut outputs));
        let runtime = Runtime::new().expect("a runtime can be built");
        Self {
            server,
            nodes,
            seeds,
            outputs,
            events: Events::default(),
            runtime,
        }
    }

    /// Waits until the load is complete.
    pub(crate) fn wait_for_open_tasks(&mut self) {
        let until = Instant::now() + START_LIMIT;
        loop {
            self.run_for(Duration::from_millis(500));
            let open = self.open_tasks();
            if open.is_some_and(|open| open >= crate::MIN_OPEN_TASKS) {
                return;
            }
            assert!(
                Instant::now() < until,
                "the nodes have {open:?} open tasks, not {}",
                crate::MIN_OPEN_TASKS
            );
        }
    }

    /// Records the number of open tasks, unless the database is being restarted.
    pub(crate) fn count_open_tasks(&mut self) {
        let open = self.open_tasks();
        self.events.open_tasks.extend(open);
    }

    fn open_tasks(&self) -> Option<usize> {
        let open = "SELECT count(*) FROM outlast.tasks WHERE NOT ended";
        self.with_client(async |client| {
            let row = client.query_one(open, &[]).await.ok()?;
            usize::try_from(row.get::<_, i64>(0)).ok()
        })
    }

    /// Lets the nodes work, and continues those whose pause is over.
    pub(crate) fn run_for(&mut self, duration: Duration) {
        let until = Instant::now() + duration;
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
            for node in &mut self.nodes {
                if node
                    .paused_until
                    .is_some_and(|until| until <= Instant::now())
                {
                    node.resume();
                }
                let ended = node.process.try_wait().expect("it is our child");
                assert!(ended.is_none(), "a node ended by itself: {ended:?}");
            }
        }
    }

    /// Kills a node like `kill -9`, and starts another.
    pub(crate) fn kill(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        node.process.kill().expect("it is our child");
        node.process.wait().expect("it is our child");
        self.events.kills += 1;
        self.nodes[number] = Node::start(&self.server, &mut self.seeds, &mut self.outputs);
    }

    /// Stops the process of a node for a while.
    pub(crate) fn pause(&mut self, number: usize, duration: Duration) {
        let node = &mut self.nodes[number];
        if node.paused_until.is_none() {
            node.signal(Signal::STOP);
            node.paused_until = Some(Instant::now() + duration);
            self.events.pauses += 1;
        }
    }

    /// Ends all connections of the nodes.
    pub(crate) fn cut_connections(&mut self) {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE application_name = 'outlast'";
        self.with_client(async |client| client.query(cut, &[]).await.ok());
        self.events.cuts += 1;
    }

    /// Stops the database without a checkpoint and starts it again.
    pub(crate) fn crash_database(&mut self) {
        self.server.crash_and_restart();
        self.events.crashes += 1;
    }

    /// Ends the load, waits until the nodes have settled every task, and collects their lines.
    pub(crate) fn finish(mut self) -> Finished {
        for node in &mut self.nodes {
            node.resume();
            drop(node.process.stdin.take());
        }
        let until = Instant::now() + SETTLE_LIMIT;
        for number in 0..self.nodes.len() {
            loop {
                let node = &mut self.nodes[number];
                if let Some(ended) = node.process.try_wait().expect("it is our child") {
                    assert!(ended.success(), "a node failed: {ended}");
                    break;
                }
                assert!(
                    Instant::now() < until,
                    "tasks are still open: {}",
                    self.describe_open_tasks()
                );
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let outputs = self.outputs.drain(..);
        let outputs = outputs.map(|output| output.join().expect("lines can be read"));
        Finished {
            outputs: outputs.collect(),
            server: self.server,
            events: self.events,
        }
    }

    /// The open tasks by state and node, for a failure.
    fn describe_open_tasks(&self) -> String {
        let sql = "SELECT format('%s of node %s (%s), offered to %s: %s tasks, for example %s', state, node,
                       (SELECT CASE WHEN lost THEN 'lost' ELSE 'joined' END FROM outlast.nodes WHERE node = t.node),
                       offered, count(*), min(id))
                   FROM outlast.tasks AS t WHERE NOT ended GROUP BY state, node, offered";
        let rows = self.with_client(async |client| client.query(sql, &[]).await.ok());
        let rows = rows.unwrap_or_default();
        rows.iter()
            .map(|row| row.get::<_, String>(0) + "; ")
            .collect()
    }

    fn with_client<T>(&self, work: impl AsyncFnOnce(&Client) -> Option<T>) -> Option<T> {
        let port = self.server.port();
        let config = format!("host=127.0.0.1 port={port} user=outlast dbname=postgres");
        self.runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&config, NoTls).await.ok()?;
            tokio::spawn(connection);
            work(&client).await
        })
    }
}

impl Node {
    fn start(
        server: &PostgresServer,
        seeds: &mut SeededRandom,
        outputs: &mut Vec<JoinHandle<Vec<Line>>>,
    ) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_node"))
            .arg(server.url("outlast"))
            .arg(seeds.next().to_string())
            .arg(OPEN_TASKS.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the node starts");
        let output = BufReader::new(process.stdout.take().expect("it is a pipe"));
        outputs.push(std::thread::spawn(move || {
            // The last line of a killed process may be incomplete.
            let lines = output.lines().map_while(Result::ok);
            lines
                .filter_map(|line| serde_json::from_str(&line).ok())
                .collect()
        }));
        Self {
            process,
            paused_until: None,
        }
    }

    fn resume(&mut self) {
        if self.paused_until.take().is_some() {
            self.signal(Signal::CONT);
        }
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        kill_process(id.expect("a process has an id"), signal).expect("it is our child");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It has ended, unless the test failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Events {
    pub(crate) fn median_open_tasks(&self) -> usize {
        let mut sorted = self.open_tasks.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0)
    }
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kills,
            pauses,
            cuts,
            crashes,
            open_tasks,
        } = self;
        let fewest = open_tasks.iter().min().copied().unwrap_or(0);
        write!(
            f,
            "{kills} kills, {pauses} pauses, {cuts} cuts, {crashes} database crashes; open tasks: median {}, \
             at least {fewest}",
            self.median_open_tasks()
        )
    }
}

/// The open tasks of each node. Two nodes alone have enough of them.
const OPEN_TASKS: usize = 600;

/// How long the nodes may take until their load is complete.
const START_LIMIT: Duration = Duration::from_secs(120);

/// How long the nodes may take to settle all tasks: a lease, the longest call, and time for slow machines.
const SETTLE_LIMIT: Duration = Duration::from_secs(180);
