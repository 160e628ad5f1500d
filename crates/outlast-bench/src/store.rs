//! The SQLite store: durable lifecycles compared with a raw log, and the cost of a retained task.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::environment::Environment;
use crate::http::mcp_client::Generation;
use crate::http::serve::{OutlastServer, Server};
use crate::http::target::MeasuredServer;
use crate::machine::{processor, resident_of};
use crate::rawlog::RawLog;
use crate::rounds::Rounds;
use crate::table::{Row, Table, Unit, count, with_thousands_separators};
use crate::{BenchResult, runtime};

/// Lifecycles per second through the engine in one process, without HTTP.
pub(crate) fn lifecycles(environment: &Environment, table: &mut Table) -> BenchResult<()> {
    let runtime = runtime()?;
    let file = environment.folder.path().join("lifecycles.db");
    let ours = runtime
        .block_on(async { OutlastServer::open(OutlastServer::sqlite(&file).await?).await })?;
    let log = RawLog::start(&environment.folder.path().join("lifecycles.log"))?;
    for callers in [1, 16, 256] {
        let rounds = Rounds::<2, Pace>::run(environment.scale.rounds, |side| {
            let turn = environment.scale.turn;
            match side {
                0 => measure_lifecycles(&runtime, callers, turn, &ours),
                _ => measure_lifecycles(&runtime, callers, turn, &log),
            }
        })?;
        let (per_second, cpu) = (
            rounds.map(|pace| pace.per_second),
            rounds.map(|pace| pace.cpu),
        );
        let show = |side| {
            format!(
                "{} /s, {:.0} µs CPU",
                with_thousands_separators(per_second.median_of(side)),
                cpu.median_of(side)
            )
        };
        table.row(Row {
            figure: format!("durable lifecycles, {callers} callers; beside a raw log"),
            ours: show(0),
            other: show(1),
            value: per_second.ratio(0, 1),
            unit: Unit::Ratio,
            bar: None,
        });
    }
    runtime.block_on(ours.close())
}

/// Memory and disk of a retained task, and the time to open a store with many.
pub(crate) fn retained(environment: &Environment, table: &mut Table) -> BenchResult<()> {
    let (most, folder) = (environment.scale.most, environment.folder.path());
    let file = folder.join("retained.db");
    let server = |path: &Path, tasks| Server::Sqlite(path.to_owned(), tasks);
    let resident = |target: &MeasuredServer| resident_of(target.process());
    let empty = resident(&start(&server(&folder.join("empty.db"), 0))?)?;
    // It fills the store before it listens.
    let filled = start(&server(&file, most))?;
    let filled_bytes = (resident(&filled)? - empty) / most as f64;
    filled.stop()?;
    let mut opened_bytes = 0.0;
    let rounds = Rounds::<2>::run(3, |side| {
        let began = Instant::now();
        if side == 1 {
            read_all(&file)?;
            return BenchResult::Ok(began.elapsed().as_secs_f64());
        }
        let opened = start(&server(&file, 0))?;
        let took = began.elapsed().as_secs_f64();
        opened_bytes = (resident(&opened)? - empty) / most as f64;
        opened.stop()?;
        Ok(took)
    })?;
    let peer_empty = resident(&start(&Server::Rmcp(0))?)?;
    let peer = (resident(&start(&Server::Rmcp(PEER_TASKS))?)? - peer_empty) / PEER_TASKS as f64;
    for (how, bytes) in [
        ("made by this process", filled_bytes),
        ("found at open", opened_bytes),
    ] {
        table.row(Row {
            figure: format!(
                "memory of a retained task with a 200-byte result, {} {how}; beside rmcp",
                count(most)
            ),
            ours: format!("{} B", with_thousands_separators(bytes)),
            other: format!("{} B", with_thousands_separators(peer)),
            value: bytes,
            unit: Unit::Bytes,
            bar: Some(1024.0),
        });
    }
    let disk = std::fs::metadata(&file)?.len() as f64 / most as f64;
    table.note(format!(
        "disk of a retained task: {} B",
        with_thousands_separators(disk)
    ));
    table.row(Row {
        figure: format!(
            "open with {} tasks, from the start of the process until it takes calls; beside reading the file",
            count(most)
        ),
        ours: format!("{:.2} s", rounds.median_of(0)),
        other: format!("{:.2} s", rounds.median_of(1)),
        value: rounds.median_of(0),
        unit: Unit::Seconds,
        bar: Some(3.0),
    });
    Ok(())
}

fn start(server: &Server) -> BenchResult<MeasuredServer> {
    MeasuredServer::start(server, Generation::V2)
}

fn read_all(path: &Path) -> BenchResult<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

/// The throughput that callers see, and the cost of a lifecycle.
#[derive(Clone, Copy)]
struct Pace {
    per_second: f64,
    /// The processor time of one, in microseconds.
    cpu: f64,
}

/// Something that runs the lifecycle of a task.
pub(crate) trait Lifecycle: Clone + Send + Sync + 'static {
    fn lifecycle(&self) -> impl Future<Output = BenchResult<()>> + Send;
}

/// Runs lifecycles in `callers` concurrent callers for about `turn`.
fn measure_lifecycles(
    runtime: &Runtime,
    callers: usize,
    turn: Duration,
    subject: &impl Lifecycle,
) -> BenchResult<Pace> {
    let (before, began) = (processor()?, Instant::now());
    let lifecycles = runtime.block_on(async {
        let mut running = JoinSet::new();
        for _ in 0..callers {
            let subject = subject.clone();
            running.spawn(async move {
                let mut lifecycles = 0;
                while began.elapsed() < turn {
                    subject.lifecycle().await?;
                    lifecycles += 1;
                }
                BenchResult::Ok(lifecycles)
            });
        }
        let mut lifecycles = 0;
        while let Some(done) = running.join_next().await {
            lifecycles += done??;
        }
        BenchResult::Ok(lifecycles)
    })?;
    let lifecycles = f64::from(lifecycles);
    Ok(Pace {
        per_second: lifecycles / began.elapsed().as_secs_f64(),
        cpu: (processor()? - before) * 1e6 / lifecycles,
    })
}

/// The number of tasks that the peer retains: its calls take time in proportion to them.
const PEER_TASKS: usize = 10_000;
